from django.apps import AppConfig


class ProvisioningConfig(AppConfig):
    name = "provisioning"
    verbose_name = "Provisioning"

    def ready(self) -> None:
        from events import numbering
        from provisioning import nudges

        numbering.on_numbered(nudges.dispatch_numbered)
