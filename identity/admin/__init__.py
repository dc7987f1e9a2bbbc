"""Admin pages of who exists. `register` puts them on a site; `tenant_scope` is the base of every admin class of the project."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.admin.models import LogEntry

from identity.admin.connections import ConnectionAdmin
from identity.admin.staff import ActivityAdmin, StaffAdmin
from identity.admin.tenants import CustomDomainAdmin, TenantAdmin
from identity.admin.users import LinkedIdentityAdmin, PasswordCredentialAdmin, UserAdmin
from identity.models import Connection, CustomDomain, LinkedIdentity, PasswordCredential, Staff, Tenant, User


def register(site: admin.AdminSite) -> None:
    """Register every model of this app with `site`, and the record of what staff did there."""
    site.register(User, UserAdmin)
    site.register(LinkedIdentity, LinkedIdentityAdmin)
    site.register(PasswordCredential, PasswordCredentialAdmin)
    site.register(Connection, ConnectionAdmin)
    site.register(Tenant, TenantAdmin)
    site.register(CustomDomain, CustomDomainAdmin)
    site.register(Staff, StaffAdmin)
    site.register(LogEntry, ActivityAdmin)
