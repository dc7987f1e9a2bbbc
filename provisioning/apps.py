from django.apps import AppConfig


class ProvisioningConfig(AppConfig):
    name = "provisioning"
    verbose_name = "Provisioning"

    def ready(self) -> None:
        from events import hooks, numbering  # noqa: PLC0415  (models are loaded only now)
        from provisioning import log_follower, nudges  # noqa: PLC0415

        numbering.on_numbered(nudges.dispatch_numbered)
        hooks.follow_logs(log_follower.DeliveryFollower())
