"""The option `user_name_proof` determines whether an equal name proves that an existing account belongs to the user.

The service uses the name if the server answers 409 to a create request, or if it refuses a filter on the key. By default, the name is a
proof only if it is a verified address from a trusted connection.
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
# Two answers for each value of the option: whether the name is a proof if the address of the user is unverified, and whether it is a proof
# if the address is verified.
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
    # The relay refuses every filter on a key, as SCIMMY and django-scim2 refuse some of these filters.
    relay.refuses = lambda request: scim_error(400, "invalidFilter") if request.filter.startswith("externalId") else None
    earlier = strangers.add(ANNA)
    side.set_options(user_name_proof=proof)
    # The creation of a user adopts an existing account only with the option `adopt_on_conflict`.
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
    # Canaille 0.3.6 does not store keys, so on Canaille only the value `never` protects the account of another client.
    proves = proof if server.name != "canaille" else "never"
    strangers.add(ANNA, external_id="okta|79")
    side.set_options(user_name_proof=proves, adopt_on_conflict=True, upsert=True)
    assert side.create(ANNA, identifier=REFUSED["quote"], verified=True).is_dead
    for step in side.later_steps():
        assert step().state in ("dead", "skipped")
        assert strangers.untouched()
    side.redeliver_all(force=True)
    assert strangers.untouched()


def test_changed_address_does_not_prove_that_an_account_belongs_to_the_user(side: Side, strangers: Strangers) -> None:
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
