"""A worker is killed before its request to a SCIM server, after the response, or after it has stored the link of the account.

Afterwards, the user has exactly one account, and a deleted user has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from events.log.numbering import number_tenant
from events.models import EventStream
from identity.models import Connection, Tenant, User
from identity.services.users import delete_user, update_user
from provisioning.engine.streams import create_stream
from provisioning.models import AccountLink, DeadLetter
from tests.deadlines import eventually
from tests.factories.models.identity import UserFactory
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import RealServer, running_scim_server
from tests.faults.delivery_invariants import is_settled
from tests.faults.worker import Worker

pytestmark = pytest.mark.fault

QUICK = {"DELIVERY_LEASE_SECONDS": "7", "DELIVERY_RETRY_DELAYS": "0.5,1,2"}


@pytest.fixture
def server() -> Iterator[RealServer]:
    with running_scim_server() as running:
        yield running


@pytest.fixture
def stream(tenant: Tenant, server: RealServer, start_worker: Callable[..., Worker]) -> EventStream:
    start_worker(**QUICK)
    secrets = {"SCIM_BASE_URL": server.base_url, "SCIM_BEARER_TOKEN": server.token}
    action = ActionFactory.create(tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets, deploy=True)
    types = ["user.created", "user.updated", "user.deleted"]
    return create_stream(tenant_id=tenant.pk, subscriptions=types, destination_type="action", destination={"action_id": str(action.pk)})


# The state at each failpoint. `doubted`: the doubt is stored, but the create request is not sent. `ran`: the server has responded, but
# the outcome is not stored. `settled`: the outcome and the link are stored.
@pytest.mark.parametrize("failpoint", ["doubted", "ran", "settled"])
def test_a_worker_killed_during_a_create_leaves_one_account_that_gets_later_changes(
    failpoint: str, tenant: Tenant, database_connection: Connection, stream: EventStream, server: RealServer, directory: Path
) -> None:
    (directory / failpoint).touch()
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test", name="Ada")
    number_tenant(tenant.pk)
    eventually(lambda: not (directory / failpoint).exists(), seconds=60)

    eventually(lambda: is_settled(stream), seconds=90)
    account = server.user(user.user_id)
    assert account is not None
    assert [one["id"] for one in server.users()] == [account["id"]]
    assert link_of(user).remote_id == account["id"]

    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"name": "Ada Lovelace"})
    number_tenant(tenant.pk)
    eventually(lambda: is_settled(stream), seconds=60)
    changed = server.user(user.user_id)
    assert changed is not None
    assert (changed["id"], changed["displayName"]) == (account["id"], "Ada Lovelace")


@pytest.mark.parametrize("failpoint", ["ran", "settled"])
def test_a_worker_killed_during_a_deletion_leaves_no_account_and_no_valid_link(
    failpoint: str, tenant: Tenant, database_connection: Connection, stream: EventStream, server: RealServer, directory: Path
) -> None:
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test", name="Ada")
    number_tenant(tenant.pk)
    eventually(lambda: server.users(), seconds=60)
    eventually(lambda: is_settled(stream), seconds=60)

    (directory / failpoint).touch()
    delete_user(tenant_id=tenant.pk, user_id=user.user_id)
    number_tenant(tenant.pk)
    eventually(lambda: not (directory / failpoint).exists(), seconds=60)

    eventually(lambda: is_settled(stream), seconds=90)
    assert server.users() == []
    assert link_of(user).ended is not None
    assert not DeadLetter.objects.filter(stream_id=stream.pk).exists()


def link_of(user: User) -> AccountLink:
    return AccountLink.objects.get(tenant_id=user.tenant_id, user_id=user.user_id)
