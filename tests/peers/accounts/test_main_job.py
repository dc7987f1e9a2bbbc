"""The account of a user gets every change of the user, on every server and with every kind of response to lookups."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories.scim import RealServer
from tests.peers.accounts.keys import KEYS
from tests.peers.accounts.side import Side
from tests.peers.accounts.strangers import Strangers

pytestmark = pytest.mark.peer


def only(strangers: Strangers) -> dict[str, Any]:
    """Return the only account of this service on the server. Fail if there is another one."""
    (account,) = strangers.others()
    return account


@pytest.mark.parametrize("identifier", KEYS.values(), ids=KEYS)
def test_one_account_gets_every_change_of_its_user(server: RealServer, side: Side, strangers: Strangers, identifier: str) -> None:
    assert side.create("anna@example.test", identifier=identifier, verified=True).state == "delivered"
    remote_id = only(strangers)["id"]

    assert side.change(given_name="Anni").state == "delivered"
    assert only(strangers)["name"]["givenName"] == "Anni"
    assert side.change(blocked=True).state == "delivered"
    assert only(strangers)["active"] is False
    assert side.change(blocked=False).state == "delivered"
    assert only(strangers)["active"] is True

    renamed = side.change(email="anni@example.test")
    if server.name == "canaille":
        # Canaille answers a change of the user name with an HTML page and status 500, so the event becomes a dead letter.
        assert (renamed.state, renamed.status) == ("dead", 500)
        assert only(strangers)["userName"] == "anna@example.test"
    else:
        assert renamed.state == "delivered"
        assert only(strangers)["userName"] == "anni@example.test"
        assert side.change(blocked=True).state == "delivered"
        assert only(strangers)["active"] is False
    assert only(strangers)["id"] == remote_id

    assert side.delete().state == "delivered"
    assert strangers.others() == []
    assert strangers.untouched()


def test_a_user_that_signs_up_again_gets_a_new_account(side: Side, strangers: Strangers) -> None:
    """A new user can have the id of an earlier user whose account was deleted, for example after an identity was unlinked."""
    for _ in range(2):
        assert side.create("anna@example.test", identifier="anna").state == "delivered"
        assert side.change(given_name="Anni").state == "delivered"
        assert only(strangers)["name"]["givenName"] == "Anni"
        assert side.delete().state == "delivered"
        assert strangers.others() == []
    assert strangers.untouched()
