from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "events"
    verbose_name = "Event stream"

    def ready(self) -> None:
        # Imported here, because the models are not loaded yet when this module is imported. The import registers the checks.
        from events import checks, figures  # noqa: F401, PLC0415
        from events.log import head_cursor, leaving  # noqa: PLC0415
        from events.record import receivers, tripwire  # noqa: PLC0415
        from foundation import hooks  # noqa: PLC0415
        from identity import purging  # noqa: PLC0415
        from identity.moving import stopping  # noqa: PLC0415

        hooks.snapshot_cursor.fill(head_cursor.head_cursor)
        figures.register(figures.EVENTS)
        stopping.before_export(leaving.unfinished)
        leaving.declare()
        receivers.connect()
        tripwire.connect()
        # Purge the head and the streams first. Without the head, no event is recorded or numbered. Without the streams, no event is
        # dispatched. Purge marks last, because a late change of a recorded row leaves a mark.
        purging.cover("events", first=("Head", "EventStream"), last=("Mark",), platform_wide=("DatabaseIdentity", "Tally", "Timeline"))
