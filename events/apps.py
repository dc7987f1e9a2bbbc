from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "events"
    verbose_name = "Event stream"

    def ready(self) -> None:
        from events import checks, receivers, tripwire  # noqa: F401, PLC0415  (models are loaded only now; checks register themselves)

        receivers.connect()
        tripwire.connect()
