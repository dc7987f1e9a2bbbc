from django.apps import AppConfig


class IdentityConfig(AppConfig):
    name = "identity"
    verbose_name = "People"

    def ready(self) -> None:
        # Models are loaded only now; the checks register themselves.
        from identity import checks  # noqa: F401, PLC0415
        from identity.purging import cover  # noqa: PLC0415

        # Who ended a tenant, and what was done in it before, is still asked when it is gone.
        cover("identity", platform_wide=("Tenant", "FormerTenant"), outliving=("AuditEntry",))
        # What staff did in the admin, found by the account.
        cover("admin")
