"""Two tenants provision to one server.

A tenant never writes to an account of the other tenant, even if their users have the same email address and the same key.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories.scim import RealServer
from tests.peers.accounts.keys import FOUND, REFUSED
from tests.peers.accounts.side import Side
from tests.peers.accounts.strangers import Strangers

pytestmark = pytest.mark.peer

IDENTIFIERS = FOUND | REFUSED

SHARED = "shared@example.test"


@pytest.mark.parametrize("identifier", IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_an_equal_verified_email_address_gives_no_access_to_the_account_of_another_tenant(
    server: RealServer, side: Side, other_side: Side, strangers: Strangers, identifier: str
) -> None:
    assert side.create(SHARED, identifier=identifier, verified=True).state == "delivered"
    before = strangers.others()
    other_side.set_options(upsert=True, adopt_on_conflict=True)
    created = other_side.create(SHARED, identifier=f"of-the-other-{identifier}", verified=True)
    assert (created.state, created.status) == ("dead", 500 if server.name == "canaille" else 409)
    for step in other_side.later_steps():
        assert step().state in ("dead", "skipped")
        assert strangers.others() == before
    other_side.redeliver_all(force=True)
    assert strangers.others() == before

    assert side.change(given_name="Anni").state == "delivered"
    assert side.delete().state == "delivered"
    assert strangers.others() == []
    assert strangers.untouched()


@pytest.mark.parametrize("identifier", IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_an_equal_user_id_and_email_address_give_no_access_to_the_account_of_another_tenant(
    side: Side, other_side: Side, strangers: Strangers, identifier: str
) -> None:
    """An import can give a user any id. So two tenants can have users with the same id, which is the key of an account."""
    assert side.create(SHARED, identifier=identifier, verified=True).state == "delivered"
    before = strangers.others()
    other_side.set_options(upsert=True, adopt_on_conflict=True)
    assert other_side.create(SHARED, identifier=identifier, verified=True).is_dead
    for step in other_side.later_steps():
        assert step().state in ("dead", "skipped")
        assert strangers.others() == before
    other_side.redeliver_all(force=True)
    assert strangers.others() == before

    assert side.delete().state == "delivered"
    assert strangers.others() == []
    assert strangers.untouched()


@pytest.mark.parametrize("identifier", IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_two_tenants_with_the_same_user_id_and_different_addresses_have_separate_accounts(
    side: Side, other_side: Side, strangers: Strangers, identifier: str
) -> None:
    assert side.create("first@example.test", identifier=identifier).state == "delivered"
    assert other_side.create("second@example.test", identifier=identifier).state == "delivered"

    def given_names() -> dict[str, Any]:
        return {account["userName"]: account["name"]["givenName"] for account in strangers.others()}

    assert side.change(given_name="One").state == "delivered"
    assert other_side.change(given_name="Two").state == "delivered"
    assert given_names() == {"first@example.test": "One", "second@example.test": "Two"}
    assert other_side.delete().state == "delivered"
    assert given_names() == {"first@example.test": "One"}
    assert side.delete().state == "delivered"
    assert strangers.others() == []
    assert strangers.untouched()
