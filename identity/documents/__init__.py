"""The JSON document of each resource. API responses, event data and the input of provisioning are all built here."""

from identity.documents.connection import connection_document
from identity.documents.user import user_document

__all__ = ["connection_document", "user_document"]
