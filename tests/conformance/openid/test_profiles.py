"""The claims about the user that a client gets for each scope and for each requested claim."""

from __future__ import annotations

import json

from tests.conformance.openid.plans import Variant
from tests.conformance.openid.provider import Provider
from tests.conformance.openid.relying_party import RelyingParty

PROFILE = {
    "name": "Ada Lovelace",
    "given_name": "Ada",
    "family_name": "Lovelace",
    "nickname": "Countess",
    "preferred_username": "ada",
    "picture": "https://pictures.example.test/ada.png",
}
ADDRESS = {"email": "ada@example.test", "email_verified": True}
PHONE = {"phone_number": "+4366012345678", "phone_number_verified": True}


def test_oidcc_userinfo_get(party: RelyingParty, provider: Provider) -> None:
    assert party.profile(party.logged_in().access_token) == {"sub": provider.user.user_id}


def test_oidcc_userinfo_post_header(party: RelyingParty, provider: Provider) -> None:
    assert party.profile(party.logged_in().access_token, method="POST") == {"sub": provider.user.user_id}


def test_oidcc_userinfo_post_body(party: RelyingParty, provider: Provider) -> None:
    assert party.profile(party.logged_in().access_token, in_body=True) == {"sub": provider.user.user_id}


def test_oidcc_scope_profile(party: RelyingParty) -> None:
    told = party.told(party.logged_in(scope="openid profile"))
    assert PROFILE.items() <= told.items()
    # Core 1.0, 5.1: the time is a number.
    assert type(told["updated_at"]) is int
    assert "email" not in told


def test_oidcc_scope_email(party: RelyingParty) -> None:
    told = party.told(party.logged_in(scope="openid email"))
    assert ADDRESS.items() <= told.items()
    assert "name" not in told


def test_oidcc_scope_phone(party: RelyingParty) -> None:
    told = party.told(party.logged_in(scope="openid phone"))
    assert PHONE.items() <= told.items()
    assert "email" not in told


def test_oidcc_scope_address(party: RelyingParty, provider: Provider) -> None:
    """No profile contains a postal address, so the discovery document does not list the scope. The request is accepted and adds no
    claim."""
    told = party.told(party.logged_in(scope="openid address"))
    assert "address" not in told
    assert "address" not in provider.metadata["claims_supported"]


def test_oidcc_scope_all(party: RelyingParty) -> None:
    told = party.told(party.logged_in(scope="openid email phone profile address"))
    assert (PROFILE | ADDRESS | PHONE).items() <= told.items()


def test_oidcc_claims_locales(party: RelyingParty) -> None:
    # A server may ignore the parameter (Core 1.0, 5.2). Names of users exist in only one language.
    told = party.told(party.logged_in(scope="openid profile", claims_locales="se"))
    assert told["name"] == "Ada Lovelace"


def test_oidcc_claims_essential(party: RelyingParty, variant: Variant) -> None:
    """If there is no access token, the claim is requested for the id token (Core 1.0, 5.5)."""
    place = "userinfo" if variant.types != {"id_token"} else "id_token"
    outcome = party.logged_in(claims=json.dumps({place: {"name": {"essential": True}}}))
    assert party.told(outcome)["name"] == "Ada Lovelace"


def test_oidcc_userinfo_rs256(provider: Provider) -> None:
    """The suite requires signed profiles if the discovery document lists an algorithm for their signature.

    Our document lists no such algorithm.
    """
    assert "userinfo_signing_alg_values_supported" not in provider.metadata
