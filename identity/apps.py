from django.apps import AppConfig


class IdentityConfig(AppConfig):
    name = "identity"
    verbose_name = "People"

    def ready(self) -> None:
        from identity.purging import cover  # noqa: PLC0415  (models are loaded only now)

        cover("identity", platform_wide=("Tenant", "FormerTenant"))
        # What staff did in the admin, found by the account.
        cover("admin")
