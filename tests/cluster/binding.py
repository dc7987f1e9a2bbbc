"""A program that creates two streams for a tenant: `python -m tests.cluster.binding <tenant> <URL of a SCIM server>`.

The first stream sends every event since the beginning of the log to a recorder of the tests. The second stream sends events of users to the
SCIM server, beginning with the first event after the creation of this stream. The program prints the ids of both streams as JSON.
"""

from __future__ import annotations

import json
import sys

import django

django.setup()

from events.record.catalogue import EVENT_TYPES  # noqa: E402
from identity.exports.exports import start_export  # noqa: E402
from identity.models import Tenant  # noqa: E402
from provisioning.engine.streams import create_stream  # noqa: E402
from tests.factories.models.provisioning import ActionFactory  # noqa: E402
from tests.factories.scim import TOKEN  # noqa: E402
from tests.provisioning.engine.logs import make_stream  # noqa: E402

OF_USERS = ["user.created", "user.updated", "user.deleted"]


def main(tenant_id: str, base_url: str) -> None:
    recorder = make_stream(Tenant.objects.get(pk=tenant_id), subscriptions=list(EVENT_TYPES))
    # With the default, requests to the server would time out on a busy machine.
    secrets = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN, "SCIM_TIMEOUT_MS": "10000"}
    action = ActionFactory.create(tenant_id=tenant_id, name="to scim", template="scim-user-provisioning", secrets=secrets, deploy=True)
    scim = create_stream(tenant_id=tenant_id, subscriptions=OF_USERS, destination_type="action", destination={"action_id": str(action.pk)})
    print(json.dumps({"recorder": recorder.pk, "scim": scim.pk}))  # noqa: T201  (the answer)


def export(tenant_id: str) -> None:
    """Start an export of all users."""
    print(start_export(tenant_id=tenant_id).pk)  # noqa: T201  (the answer)


if __name__ == "__main__":
    export(sys.argv[2]) if sys.argv[1] == "export" else main(*sys.argv[1:])
