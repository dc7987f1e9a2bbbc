"""A process that redelivers every dead letter of a stream, as a web request does. The tests kill this process while it redelivers."""

from __future__ import annotations

import sys

import django

if __name__ == "__main__":
    django.setup()
    from provisioning.dead_letters.redelivery import Order, redeliver_letters
    from provisioning.models import DeadLetter

    tenant_id, stream_id = sys.argv[1:]
    letters = DeadLetter.objects.filter(tenant_id=tenant_id, stream_id=stream_id).values_list("pk", flat=True)
    print(redeliver_letters(tenant_id=tenant_id, letter_ids=letters, order=Order("ada@example.test", reason="mended")).count)  # noqa: T201
