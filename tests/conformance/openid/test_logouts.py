"""Logouts that a client starts (RP-Initiated Logout 1.0), and the notices to the other clients of the session."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from authapi import tasks
from authapi.models import LogoutNotice
from authapi.services.tenant_settings import update_tenant_settings
from tests.authapi.assertions import private_key
from tests.authapi.browser import Page
from tests.conformance.openid.provider import Provider
from tests.conformance.openid.relying_party import LOGGED_OUT, Outcome, RelyingParty, new_party
from tests.factories.scim import MisbehavingServer, misbehaving_server, reply, sequence

STATE = "state of the logout"


@pytest.fixture
def rp(provider: Provider) -> RelyingParty:
    return new_party(provider)


@pytest.fixture
def receiver() -> Iterator[MisbehavingServer]:
    """The URIs at which a client receives notices of logouts."""
    with misbehaving_server(sequence(reply(200))) as server:
        yield server


def leave(rp: RelyingParty, outcome: Outcome | None = None, **changes: Any) -> Page:
    """Send the browser to the end session endpoint with all parameters. `changes` overrides them; None removes a parameter."""
    good = {"id_token_hint": outcome.id_token if outcome else None, "post_logout_redirect_uri": LOGGED_OUT, "state": STATE}
    sent = {name: value for name, value in (good | changes).items() if value is not None}
    return rp.browser.get(urlsplit(rp.provider.metadata["end_session_endpoint"]).path, sent)


def is_logged_in(rp: RelyingParty) -> bool:
    return "error" not in rp.answer(rp.authorize(prompt="none"))


def is_error_page(page: Page) -> bool:
    return page.status == 400 and "location" not in page.headers


def confirmed(rp: RelyingParty, page: Page) -> Page:
    """Confirm the logout on the confirmation page."""
    assert "Log out?" in page.text
    return rp.browser.submit(page, answer="yes")


def test_oidcc_rp_initiated_logout_discovery_endpoint_verification(provider: Provider) -> None:
    assert provider.metadata["end_session_endpoint"] == f"{provider.issuer}oidc/logout"


def test_oidcc_rp_initiated_logout(rp: RelyingParty) -> None:
    page = leave(rp, rp.logged_in())
    assert page.location.startswith(f"{LOGGED_OUT}?")
    assert page.answer == {"state": STATE}
    assert not is_logged_in(rp)


def test_oidcc_rp_initiated_logout_no_state(rp: RelyingParty) -> None:
    page = leave(rp, rp.logged_in(), state=None)
    assert page.location == LOGGED_OUT
    assert not is_logged_in(rp)


def test_oidcc_rp_initiated_logout_bad_post_logout_redirect_uri(rp: RelyingParty) -> None:
    assert is_error_page(leave(rp, rp.logged_in(), post_logout_redirect_uri="https://rp.example.test/elsewhere"))


def test_oidcc_rp_initiated_logout_query_added_to_post_logout_redirect_uri(rp: RelyingParty) -> None:
    assert is_error_page(leave(rp, rp.logged_in(), post_logout_redirect_uri=f"{LOGGED_OUT}?foo=bar"))


def test_oidcc_rp_initiated_logout_modified_id_token_hint(rp: RelyingParty) -> None:
    outcome = rp.logged_in()
    header, claims, signature = outcome.id_token.split(".")
    named = json.loads(base64.urlsafe_b64decode(claims + "==")) | {"sub": "database|another"}
    changed = base64.urlsafe_b64encode(json.dumps(named).encode()).decode().rstrip("=")
    assert is_error_page(leave(rp, outcome, id_token_hint=f"{header}.{changed}.{signature}"))
    assert is_logged_in(rp)


def test_oidcc_rp_initiated_logout_bad_id_token_hint(rp: RelyingParty) -> None:
    outcome = rp.logged_in()
    now = int(time.time())
    claims = {"iss": rp.provider.issuer, "sub": outcome.claims["sub"], "aud": rp.client.client_id, "iat": now, "exp": now + 300}
    forged = jwt.encode({"alg": "RS256", "kid": "of-the-attacker"}, claims, RSAKey.import_key(private_key("second")))
    assert is_error_page(leave(rp, outcome, id_token_hint=forged))
    assert is_logged_in(rp)


def test_oidcc_rp_initiated_logout_no_id_token_hint(rp: RelyingParty) -> None:
    """The request does not prove which client sent it.

    So the session ends only after the user confirms, and the browser is not redirected afterwards.
    """
    rp.logged_in()
    page = leave(rp)
    assert "location" not in page.headers
    assert is_logged_in(rp)


def test_oidcc_rp_initiated_logout_no_params(rp: RelyingParty) -> None:
    rp.logged_in()
    page = confirmed(rp, leave(rp, post_logout_redirect_uri=None, state=None))
    assert (page.status, "You are logged out" in page.text) == (200, True)
    assert not is_logged_in(rp)


def test_oidcc_rp_initiated_logout_only_state(rp: RelyingParty) -> None:
    rp.logged_in()
    page = confirmed(rp, leave(rp, post_logout_redirect_uri=None))
    assert (page.status, "You are logged out" in page.text) == (200, True)
    assert not is_logged_in(rp)


def test_oidcc_rp_initiated_logout_no_post_logout_redirect_uri(rp: RelyingParty) -> None:
    page = leave(rp, rp.logged_in(), post_logout_redirect_uri=None)
    assert (page.status, "You are logged out" in page.text) == (200, True)
    assert not is_logged_in(rp)


# --- Back channel ------------------------------------------------------------------------------------------------------------------


def test_oidcc_backchannel_logout_discovery_endpoint_verification(provider: Provider) -> None:
    document = provider.metadata
    assert document["backchannel_logout_supported"] is True
    assert document["backchannel_logout_session_supported"] is True


def test_oidcc_backchannel_rp_initiated_logout(provider: Provider, receiver: MisbehavingServer) -> None:
    hears = {"oidc_logout": {"backchannel_logout_urls": [f"http://127.0.0.1:{receiver.port}/out"]}}
    rp = new_party(provider, settings=hears)
    outcome = rp.logged_in()
    assert leave(rp, outcome).location.startswith(LOGGED_OUT)
    for notice in LogoutNotice.objects.of(provider.tenant.pk).values_list("pk", flat=True):
        tasks.send_logout_notice(str(notice))
    (heard,) = receiver.received
    assert heard.headers["content-type"].startswith("application/x-www-form-urlencoded")
    (token,) = parse_qs(heard.body.decode())["logout_token"]
    decoded = jwt.decode(token, provider.keys, algorithms=["RS256"])
    claims = decoded.claims
    # Back-Channel Logout 1.0, 2.4 and 2.6.
    assert (claims["iss"], claims["aud"], claims["sub"]) == (provider.issuer, rp.client.client_id, outcome.claims["sub"])
    assert claims["sid"] == outcome.claims["sid"]
    assert claims["events"] == {"http://schemas.openid.net/event/backchannel-logout": {}}
    assert claims["iat"] <= time.time() + 1 < claims["exp"] <= claims["iat"] + 120
    assert claims["jti"]
    assert "nonce" not in claims
    assert decoded.header["typ"] == "logout+jwt"


# --- Front channel -----------------------------------------------------------------------------------------------------------------


def test_oidcc_frontchannel_logout_discovery_endpoint_verification(provider: Provider) -> None:
    document = provider.metadata
    assert document["frontchannel_logout_supported"] is True
    assert document["frontchannel_logout_session_supported"] is True


def test_oidcc_frontchannel_rp_initiated_logout(provider: Provider) -> None:
    hears = {"frontchannel_logout_uri": "https://rp.example.test/out?app=1", "frontchannel_logout_session_required": True}
    rp = new_party(provider, settings=hears)
    outcome = rp.logged_in()
    page = rp.browser.follow(leave(rp, outcome))
    (frame,) = re.findall(r'<iframe src="([^"]*)"', page.text)
    # Front-Channel Logout 1.0, 2: issuer and session id are both present or both absent, and the URI keeps its own query.
    assert parse_qs(urlsplit(frame).query) == {"app": ["1"], "iss": [provider.issuer], "sid": [outcome.claims["sid"]]}
    assert "frame-src https://rp.example.test" in page.headers["content-security-policy"].split("; ")
    following = page.headers["refresh"].partition(";url=")[2]
    assert rp.browser.get(following).location.startswith(f"{LOGGED_OUT}?")
    assert not is_logged_in(rp)


# --- Session management ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def watching(provider: Provider) -> Iterator[RelyingParty]:
    """Return a client at a tenant that enables session management."""
    update_tenant_settings(tenant_id=provider.tenant.pk, changes={"session_management_supported": True})
    provider.changed()
    yield new_party(provider)
    update_tenant_settings(tenant_id=provider.tenant.pk, changes={"session_management_supported": False})
    provider.changed()


def is_unchanged(rp: RelyingParty, state: str) -> bool:
    """Report whether the state equals the value that the provider's frame computes from its cookie (Session Management 1.0, 4.2)."""
    digest, _, salt = state.partition(".")
    seen = rp.browser.cookies.get("session_state", "")
    text = f"{rp.client.client_id} https://rp.example.test {seen} {salt}"
    return hashlib.sha256(text.encode()).hexdigest() == digest


def test_oidcc_session_management_discovery_endpoint_verification(watching: RelyingParty) -> None:
    address = watching.provider.metadata["check_session_iframe"]
    assert watching.provider.ask("GET", address).status == 200


def test_oidcc_session_management_rp_initiated_logout(watching: RelyingParty) -> None:
    outcome = watching.logged_in()
    state = outcome.answer["session_state"]
    assert is_unchanged(watching, state)
    again = watching.answer(watching.authorize(prompt="none"))["session_state"]
    assert again != state, "two responses have the same salt"
    assert is_unchanged(watching, again)
    assert leave(watching, outcome).location.startswith(LOGGED_OUT)
    assert not is_unchanged(watching, state)
