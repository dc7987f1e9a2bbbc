"""The option `user_name_proof` decides whether the name of an existing account proves that the account belongs to the user.

The name is used after a 409 to a creation and after a refused filter on the key. By default, only a verified address of a trusted
connection is a proof.
"""

from __future__ import annotations

import pytest

from tests.factories.scim import RealServer, scim_error
from tests.factories.scim_relay import Relay
from tests.peers.accounts.keys import REFUSED, answers_409
from tests.peers.accounts.side import Side
from tests.peers.accounts.strangers import Strangers

pytestmark = pytest.mark.peer

ANNA = "anna@example.test"
# By option: whether the name is a proof for a user with an unverified address, and for a user with a verified address.
COUNTS = {"never": (False, False), "verified": (False, True), "always": (True, True)}


@pytest.mark.parametrize("verified", [False, True], ids=["unverified", "verified"])
@pytest.mark.parametrize("proof", COUNTS)
def test_account_with_the_name_of_a_new_user_is_adopted_if_the_name_is_a_proof(
    server: RealServer, side: Side, strangers: Strangers, proof: str, verified: bool
) -> None:
    earlier = strangers.add(ANNA)
    side.set_options(user_name_proof=proof, adopt_on_conflict=True)
    created = side.create(ANNA, verified=verified)
    if not COUNTS[proof][verified] or not answers_409(server.name):
        assert created.is_dead
        assert strangers.untouched()
        return
    assert created.state == "delivered"
    strangers.forget(earlier)
    assert side.change(given_name="Anni").state == "delivered"
    (account,) = strangers.others()
    assert (account["id"], account["name"]["givenName"]) == (earlier, "Anni")
    assert side.delete().state == "delivered"
    assert strangers.others() == []
    assert strangers.untouched()


@pytest.mark.parametrize("verified", [False, True], ids=["unverified", "verified"])
@pytest.mark.parametrize("proof", COUNTS)
def test_account_whose_key_cannot_be_filtered_is_written_if_its_name_is_a_proof(
    side: Side, strangers: Strangers, relay: Relay, proof: str, verified: bool
) -> None:
    # SCIMMY and django-scim2 refuse some keys. A relay in front of the other servers also refuses these keys.
    relay.refuses = lambda request: scim_error(400, "invalidFilter") if request.filter.startswith("externalId") else None
    earlier = strangers.add(ANNA)
    side.set_options(user_name_proof=proof)
    # A creation adopts an account only with the option `adopt_on_conflict`.
    assert side.create(ANNA, verified=verified).is_dead
    assert strangers.untouched()
    changed = side.change(given_name="Anni")
    if not COUNTS[proof][verified]:
        assert changed.is_dead
        assert side.delete().is_dead
        assert strangers.untouched()
        return
    assert changed.state == "delivered"
    strangers.forget(earlier)
    (account,) = strangers.others()
    assert (account["id"], account["name"]["givenName"]) == (earlier, "Anni")
    assert side.delete().state == "delivered"
    assert strangers.others() == []
    assert strangers.untouched()


@pytest.mark.parametrize("proof", COUNTS)
def test_account_with_the_key_of_another_client_is_never_adopted_by_its_name(
    side: Side, strangers: Strangers, server: RealServer, proof: str
) -> None:
    # Canaille 0.3.6 stores no key, so only the option protects an account on this server.
    proves = proof if server.name != "canaille" else "never"
    strangers.add(ANNA, external_id="okta|79")
    side.set_options(user_name_proof=proves, adopt_on_conflict=True, upsert=True)
    assert side.create(ANNA, identifier=REFUSED["quote"], verified=True).is_dead
    for step in side.later_steps():
        assert step().state in ("dead", "skipped")
        assert strangers.untouched()
    side.redeliver_all(force=True)
    assert strangers.untouched()


def test_changed_address_is_unverified_and_is_no_proof(side: Side, strangers: Strangers) -> None:
    strangers.add(ANNA)
    side.set_options(adopt_on_conflict=True, upsert=True)
    assert side.create("other-anna@example.test", identifier=REFUSED["quote"], verified=True).state == "delivered"
    (ours,) = strangers.others()
    side.change(email=ANNA)
    assert strangers.untouched()
    assert [account["id"] for account in strangers.others()] == [ours["id"]]
    assert side.delete().state == "delivered"
    assert strangers.others() == []
    assert strangers.untouched()
