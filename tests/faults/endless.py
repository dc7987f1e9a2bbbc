"""An installed action that never ends. The module is imported by a worker and by the process of the test."""

from __future__ import annotations

import time

from provisioning.actions.event_stream import v1
from provisioning.actions.event_stream.v1.objects import Api, Event

ENTRY_POINT = f"{v1.__name__}.Endless"


class Endless:
    """Sleeps or loops forever, depending on its secret, for users with the nickname `endless`."""

    def on_execute_event_stream(self, event: Event, api: Api) -> None:
        api.log("info", "begun")
        while (event.message.data.object or {}).get("nickname") == "endless":
            if event.secrets["WAY"] == "sleep":
                time.sleep(60)


Endless.__module__ = f"{v1.__name__}.endless"
v1.Endless = Endless  # type: ignore[attr-defined]  # installed for this test
