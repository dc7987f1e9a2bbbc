"""Creates a stream to the test destination, and events, for a tenant of a fault test.

Usage: `python -m tests.faults.appending <tenant> <keys> <rounds>`.
"""

from __future__ import annotations

import sys

import django

django.setup()

from events.models import Head  # noqa: E402
from identity.models import Tenant  # noqa: E402
from tests.provisioning.engine.logs import append_events, make_stream  # noqa: E402


def main(tenant_id: str, keys: int, rounds: int) -> None:
    """Start a stream that begins at the end of the tenant's log and delivers to the test destination. Then append `rounds` numbered
    events for each of `keys` users. The events of the users alternate."""
    tenant = Tenant.objects.get(pk=tenant_id)
    stream = make_stream(tenant, position=Head.objects.get(pk=tenant.pk).position)
    names = [f"user:{tenant.pk}-{number}" for number in range(keys)]
    append_events(tenant, names * rounds, data=[number for number in range(rounds) for _ in names])
    print(stream.pk)  # noqa: T201  (the answer)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
