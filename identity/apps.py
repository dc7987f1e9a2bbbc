from django.apps import AppConfig


class IdentityConfig(AppConfig):
    name = "identity"
    verbose_name = "People"

    def ready(self) -> None:
        # This import is here because the models are loaded only now. The import registers the checks.
        from identity import checks  # noqa: F401, PLC0415
        from identity.moving import own_tables  # noqa: PLC0415
        from identity.purging import cover  # noqa: PLC0415

        # The audit log outlives its tenant: after the deletion, it still shows the actor that deleted the tenant, and the changes in the
        # tenant.
        cover("identity", platform_wide=("Tenant", "FormerTenant"), last=("TenantMove",), outliving=("AuditEntry",))
        # Entries of Django's admin log. The staff account of an entry determines its tenant.
        cover("admin")
        own_tables.declare()
