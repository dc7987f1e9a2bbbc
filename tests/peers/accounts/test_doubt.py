"""The response to the creation of an account was lost. The account may exist, so the deletion of its user is never skipped."""

from __future__ import annotations

import pytest

from tests.factories.scim import HANG_UP, RealServer
from tests.factories.scim_relay import Relay
from tests.peers.accounts.keys import KEYS, MISSED
from tests.peers.accounts.side import Side
from tests.peers.accounts.strangers import Strangers

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("identifier", KEYS.values(), ids=KEYS)
def test_account_from_an_unconfirmed_creation_is_deleted_or_reported(
    server: RealServer, side: Side, strangers: Strangers, relay: Relay, identifier: str
) -> None:
    relay.after["POST"] = [lambda answer: HANG_UP]
    assert side.create("anna@example.test", identifier=identifier).is_dead
    assert len(strangers.others()) == 1
    deleted = side.delete()
    assert (deleted.state, len(strangers.others())) in {("delivered", 0), ("dead", 1)}
    if server.name == "scim2-server" or (server.name in ("scimmy", "django-scim2") and identifier != MISSED["backslash"]):
        # The service finds the account by the key, or by the name if the server refuses a filter on the key.
        assert deleted.state == "delivered"
    assert strangers.untouched()


@pytest.mark.parametrize("identifier", KEYS.values(), ids=KEYS)
def test_account_is_not_created_twice_after_an_unconfirmed_creation_and_is_then_updated(
    server: RealServer, side: Side, strangers: Strangers, relay: Relay, identifier: str
) -> None:
    relay.after["POST"] = [lambda answer: HANG_UP]
    assert side.create("anna@example.test", identifier=identifier, verified=True).is_dead
    side.redeliver_all(force=False)
    assert len(strangers.others()) == 1
    if server.name == "canaille":
        # The service cannot find the account on this server, which does not store keys. So an administrator must confirm the account.
        assert side.outcomes()[-1].is_dead
        return
    assert side.outcomes()[-1].state == "delivered"
    assert side.change(given_name="Anni").state == "delivered"
    (account,) = strangers.others()
    assert account["name"]["givenName"] == "Anni"
    assert side.delete().state == "delivered"
    assert strangers.others() == []
    assert strangers.untouched()
