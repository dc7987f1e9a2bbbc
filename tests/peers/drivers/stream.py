"""Subscribes to the event stream with the unmodified Python client, and prints one line for each message.

Runs in a separate Python environment.
"""

from __future__ import annotations

import json
import sys

from auth0.management.client import Auth0  # type: ignore[import-untyped]  # not installed where types are checked


def main(base_url: str, token: str, from_timestamp: str | None = None) -> None:
    client = Auth0(base_url=base_url, token=token)
    for message in client.events.subscribe(from_timestamp=from_timestamp, request_options={"timeout": 20}):
        event = getattr(message, "event", None)
        seen = {
            "kind": type(message).__name__,
            "offset": getattr(message, "offset", None),
            "id": getattr(event, "id", None),
            "purpose": getattr(event, "a_0_purpose", None),
        }
        print(json.dumps(seen), flush=True)  # noqa: T201 (the test reads this output)


if __name__ == "__main__":
    main(*sys.argv[1:])
