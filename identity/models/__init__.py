"""The rows behind tenants and their people; each module holds one noun."""

from identity.models.connections import Connection
from identity.models.staff import Staff
from identity.models.tenants import CustomDomain, Tenant
from identity.models.users import LinkedIdentity, PasswordCredential, User

__all__ = ["Connection", "CustomDomain", "LinkedIdentity", "PasswordCredential", "Staff", "Tenant", "User"]
