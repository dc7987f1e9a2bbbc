from django.apps import AppConfig

from config import collector


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Wiring"

    def ready(self) -> None:
        from config.audited_models import watch_models  # noqa: PLC0415  (models are loaded only now)
        from config.server.request_counts import count_sign_ins  # noqa: PLC0415  (models are loaded only now)

        watch_models()
        count_sign_ins()
        collector.begin()
