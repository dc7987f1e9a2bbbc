from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "events"
    verbose_name = "Event stream"

    def ready(self) -> None:
        # Imported in this method, because models are loaded only now. The import registers the checks.
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
        # Purge the head first: without it, no more events are recorded or numbered. Purge the streams first, too: without them, no more
        # events are dispatched. Purge marks last, because a late change of a recorded row leaves a mark.
        purging.cover("events", first=("Head", "EventStream"), last=("Mark",), platform_wide=("DatabaseIdentity", "Tally", "Timeline"))
