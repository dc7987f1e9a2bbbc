"""The one JSON shape per resource: API answers, event data and provisioning input are all made here."""

from identity.documents.connection import connection_document
from identity.documents.user import user_document

__all__ = ["connection_document", "user_document"]
