"""Codes are valid once, and refresh tokens are valid only for their client."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import time_machine

from tests.conformance.openid.plans import Variant
from tests.conformance.openid.provider import Provider, error_of
from tests.conformance.openid.relying_party import RelyingParty, good_tokens, new_party


def test_oidcc_codereuse(party: RelyingParty) -> None:
    code = party.logged_in().answer["code"]
    assert error_of(party.exchange(code)) == (400, "invalid_grant")


def test_oidcc_codereuse_30seconds(party: RelyingParty, provider: Provider) -> None:
    with time_machine.travel(datetime.now(UTC)) as clock:
        outcome = party.logged_in()
        clock.shift(timedelta(seconds=30))
        assert party.profile(outcome.tokens["access_token"])["sub"]
        assert error_of(party.exchange(outcome.answer["code"])) == (400, "invalid_grant")
        # RFC 6749, 4.1.2: the second use of a code revokes all tokens issued for it.
        bearer = {"Authorization": f"Bearer {outcome.tokens['access_token']}"}
        assert provider.ask("GET", provider.metadata["userinfo_endpoint"], headers=bearer).status == 401


def test_oidcc_refresh_token(party: RelyingParty, provider: Provider, variant: Variant) -> None:
    with time_machine.travel(datetime.now(UTC), tick=False) as clock:
        outcome = party.logged_in(scope="openid offline_access", prompt="login consent")
        token = outcome.tokens["refresh_token"]
        # RFC 6749, A.17.
        assert re.fullmatch(r"[\x20-\x7e]+", token)
        first = party.verified(outcome.tokens["id_token"])
        clock.shift(timedelta(seconds=3))
        fresh = good_tokens(party.refresh(token))
        claims = party.verified(fresh["id_token"], is_refreshed=True)
    # Core 1.0, 12.2.
    for name in ("iss", "sub", "aud", "auth_time"):
        assert claims[name] == first[name]
    assert claims["iat"] > first["iat"]
    assert fresh["access_token"] != outcome.tokens["access_token"]
    assert party.profile(fresh["access_token"])["sub"] == first["sub"]
    other = new_party(provider, variant)
    assert error_of(other.refresh(fresh.get("refresh_token", token))) == (400, "invalid_grant")
    # The attempt of another client has changed nothing.
    assert good_tokens(party.refresh(fresh.get("refresh_token", token)))
