from django.apps import AppConfig


class ProvisioningConfig(AppConfig):
    name = "provisioning"
    verbose_name = "Provisioning"

    def ready(self) -> None:
        from events import figures, hooks  # noqa: PLC0415  (models are loaded only now)
        from events.log import numbering  # noqa: PLC0415  (models are loaded only now)
        from foundation import hooks as identity_hooks  # noqa: PLC0415
        from identity.moving.stopping import before_export  # noqa: PLC0415
        from identity.purging import cover  # noqa: PLC0415
        from provisioning.engine import draining, leaving, log_follower, nudges  # noqa: PLC0415
        from provisioning.figures import PROVISIONING  # noqa: PLC0415
        from provisioning.stream_figures import STREAMS  # noqa: PLC0415

        cover("provisioning", platform_wide=("Sweeper",))
        before_export(leaving.unfinished)
        leaving.declare()
        identity_hooks.before_tenant_ends(draining.is_drained)
        identity_hooks.job_waits.connect(nudges.work_on_waiting_job, dispatch_uid="provisioning.job_waits")
        identity_hooks.work_waits.connect(nudges.begin_waiting_work, dispatch_uid="provisioning.work_waits")
        figures.register(PROVISIONING)
        figures.register(STREAMS)
        numbering.on_numbered(nudges.dispatch_numbered)
        hooks.follow_logs(log_follower.DeliveryFollower())
