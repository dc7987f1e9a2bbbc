"""Users with the name of a foreign account are changed and deleted. The foreign account stays unchanged.

The email addresses of these users are not verified, so they do not prove to which user an account belongs. If the service cannot tell
whether an account is foreign, the event becomes a dead letter with this reason. The event is never skipped silently.
"""

from __future__ import annotations

import re

import pytest

from tests.factories.scim import RealServer, scim_error
from tests.factories.scim_relay import Relay
from tests.peers.accounts.keys import FOUND, REFUSED, is_followed_by_filter
from tests.peers.accounts.side import Outcome, Side
from tests.peers.accounts.strangers import Strangers

pytestmark = pytest.mark.peer

IDENTIFIERS = FOUND | REFUSED

TAKEN, WANTED = "taken@example.test", "wanted@example.test"
# The error texts of dead letters if it is not proven that an account belongs to this service.
NAMED = re.compile("POST /Users answered (409|500)|unverifiable match|conflict: the resource with this userName|deletion in doubt")


def refused(outcome: Outcome) -> bool:
    """Report whether the event became a dead letter. Its error text must tell an administrator that an account could not be identified."""
    return outcome.is_dead and NAMED.search(outcome.why) is not None


@pytest.mark.parametrize("identifier", IDENTIFIERS.values(), ids=IDENTIFIERS)
@pytest.mark.parametrize("upsert", [False, True], ids=["", "upsert"])
def test_unverified_user_with_the_name_of_a_foreign_account_does_not_change_the_account(
    server: RealServer, side: Side, strangers: Strangers, identifier: str, upsert: bool
) -> None:
    side.set_options(upsert=upsert, adopt_on_conflict=upsert)
    strangers.add(TAKEN)
    strangers.add(WANTED)
    strangers.add("colleague@example.test", external_id="okta|78")
    lookup_is_empty = is_followed_by_filter(server.name, identifier)

    # Canaille 0.3.6 answers 500 if the name is used. So the service does not know whether Canaille has created an account.
    assert refused(side.create(TAKEN, identifier=identifier))
    assert strangers.untouched()
    for changes in ({"given_name": "Anni"}, {"email": WANTED}, {"email": "colleague@example.test"}, {"blocked": True}):
        outcome = side.change(**changes)
        assert refused(outcome) if upsert or not lookup_is_empty else outcome == Outcome("skipped", "no user to update"), changes
        assert strangers.untouched(), changes
    outcome = side.delete()
    assert refused(outcome) if not lookup_is_empty else outcome == Outcome("skipped", "no user to delete")
    assert strangers.untouched()

    for force in (False, True):
        side.redeliver_all(force=force)
        assert strangers.untouched()
        assert strangers.others() == []
    assert all(outcome.state != "delivered" for outcome in side.outcomes())


@pytest.mark.parametrize("identifier", IDENTIFIERS.values(), ids=IDENTIFIERS)
@pytest.mark.parametrize("external_id", ["", "okta|78"], ids=["no key", "foreign key"])
def test_user_renamed_to_the_name_of_a_foreign_account_keeps_its_own_account(
    server: RealServer, side: Side, strangers: Strangers, identifier: str, external_id: str
) -> None:
    strangers.add(WANTED, external_id=external_id)
    assert side.create("anna@example.test", identifier=identifier).state == "delivered"
    (ours,) = strangers.others()

    renamed = side.change(email=WANTED)
    if server.name == "jackson":
        # saml-jackson allows two accounts with the same name.
        assert renamed.state == "delivered"
    else:
        assert (renamed.state, renamed.status) == ("dead", 500 if server.name == "canaille" else 409)
        assert strangers.others() == [ours]
    side.change(blocked=True)
    side.redeliver_all(force=True)
    assert strangers.untouched()
    assert [account["id"] for account in strangers.others()] == [ours["id"]]

    assert side.change(email="anna@example.test", blocked=True).state == "delivered"
    (blocked,) = strangers.others()
    assert (blocked["id"], blocked["active"], blocked["userName"]) == (ours["id"], False, "anna@example.test")
    assert side.delete().state == "delivered"
    assert strangers.others() == []
    assert strangers.untouched()


@pytest.mark.parametrize("force", [False, True], ids=["redelivered", "forced"])
@pytest.mark.parametrize("verified", [False, True], ids=["unverified", "verified"])
@pytest.mark.parametrize("identifier", IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_old_event_of_a_deleted_user_does_not_change_a_later_foreign_account(
    side: Side, strangers: Strangers, relay: Relay, identifier: str, verified: bool, force: bool
) -> None:
    assert side.create(TAKEN, identifier=identifier, verified=verified).state == "delivered"
    relay.instead["PUT"] = [scim_error(400, "invalidValue")]
    assert side.change(given_name="Anni").why.startswith("PUT /Users/{id} answered 400 [invalidValue]")
    assert side.delete().state == "delivered"
    assert strangers.others() == []

    strangers.add(TAKEN)
    side.redeliver_all(force=force)
    assert strangers.untouched()
    assert strangers.others() == []


@pytest.mark.parametrize("identifier", IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_unverified_user_that_signs_up_again_does_not_change_a_later_foreign_account(
    side: Side, strangers: Strangers, identifier: str
) -> None:
    """A new user can have the id of a deleted user, for example after an identity was unlinked."""
    assert side.create(TAKEN, identifier=identifier).state == "delivered"
    assert side.delete().state == "delivered"
    strangers.add(TAKEN)
    assert refused(side.create(TAKEN, identifier=identifier))
    for step in side.later_steps():
        assert step().state in ("dead", "skipped")
        assert strangers.untouched()
    for force in (False, True):
        side.redeliver_all(force=force)
        assert strangers.untouched(), force
    assert strangers.others() == []


def test_foreign_account_whose_name_is_the_id_of_a_deleted_account_is_not_changed(side: Side, strangers: Strangers) -> None:
    """At `/Users/{id}`, Canaille 0.3.6 also accepts a user name. So the id of a deleted account can lead to an account with this name."""
    assert side.create("anna@example.test").state == "delivered"
    (ours,) = strangers.others()
    strangers.remove(ours["id"])
    strangers.add(ours["id"])
    strangers.add("anna@example.test")
    for step in side.later_steps():
        step()
        assert strangers.untouched()
    side.redeliver_all(force=True)
    assert strangers.untouched()


def test_foreign_account_whose_name_is_the_key_of_a_user_is_not_changed(side: Side, strangers: Strangers) -> None:
    """For a filter on the key, saml-jackson 26.2.0 compares user names. The service tests filters before use, but does not notice this."""
    strangers.add("database|7f3a9c")
    strangers.add(TAKEN)
    assert refused(side.create(TAKEN, identifier="7f3a9c"))
    for step in side.later_steps():
        step()
        assert strangers.untouched()
    side.redeliver_all(force=True)
    assert strangers.untouched()


def test_failure_without_a_proof_says_how_to_confirm_the_account(side: Side, strangers: Strangers, relay: Relay) -> None:
    relay.refuses = lambda request: scim_error(400, "invalidFilter") if request.filter.startswith("externalId") else None
    strangers.add(TAKEN)
    assert refused(side.create(TAKEN))
    why = side.change(given_name="Anni").why
    assert why.startswith("unverifiable match")
    assert "the name is not proven to be this user's" in why
    assert "user_name_proof" in why
    assert "ids " in side.last_failure_line()
    assert strangers.untouched()
