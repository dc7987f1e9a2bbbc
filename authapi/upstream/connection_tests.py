"""Tests of a connection: a login at its provider, whose answer is checked as usual and shown to an administrator. No session begins.

A test creates no user, and does not mark an assertion of the provider as used.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from django.utils import timezone

from authapi.failures.logins import LoginCase
from authapi.login.protocol import BrowserCall
from authapi.models import ConnectionTest
from authapi.upstream import login as oidc_login
from authapi.upstream.authentication_requests import AuthenticationRequest
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.metadata import metadata_of
from authapi.upstream.people import profile_at_login
from authapi.upstream.proven import Proven
from authapi.upstream.provider import Provider, provider_of
from authapi.upstream.read_claims import read_claims
from authapi.upstream.saml import login as saml_login
from authapi.upstream.saml.claims import MappingOptions, statement_claims
from authapi.upstream.saml.connections import saml_provider
from authapi.upstream.saml.options import STRATEGIES
from authapi.upstream.saml.provider import SamlProvider
from authapi.upstream.saml.responses import Accepted
from authapi.upstream.saml.showing import shown_message
from authapi.upstream.sent_claims import is_hidden_attribute, kept_claims, parts_of, stored_profile
from authapi.upstream.strategies import speaker_of
from authapi.upstream.wsfed import login as wsfed_login
from authapi.upstream.wsfed.options import is_wsfed
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.models import Connection

CALLBACK_PATH = saml_login.CALLBACK_PATH
TEST_PATH = "u/connection-test"
_STATE = re.compile(r"t([0-9]{1,18})\.([A-Za-z0-9_-]{43})")
_LIFE = timedelta(minutes=30)


def can_be_tested(connection: Connection) -> bool:
    """Tell whether users of a connection log in at an external provider."""
    return speaker_of(connection) is not None


def begin_test(connection: Connection, *, base: str) -> str:
    """Return the address at which the administrator's browser begins a test; `base` is the tenant's address without a trailing slash.

    Raises `UpstreamFailed` if no login can begin.
    """
    _provider(connection)
    secret = new_secret()
    row = ConnectionTest(
        tenant_id=connection.tenant_id,
        connection=connection,
        digest=digest_of(secret),
        request_id=f"_{new_secret()}",
        callback=f"{base}/{CALLBACK_PATH}",
        expires_at=timezone.now() + _LIFE,
    )
    row.save(force_insert=True)
    return f"{base}/{TEST_PATH}?state=t{row.pk}.{secret}"


def call_of_test(test: ConnectionTest, state: str) -> BrowserCall:
    """Return the browser's request to the provider. Raises `UpstreamFailed`."""
    provider = _provider(test.connection)
    if isinstance(provider, Provider):
        metadata = metadata_of(provider)
        request = _openid_request(test, metadata.issuer)
        return BrowserCall(oidc_login.authorization_address(provider, metadata, request, state, provider.parameters))
    if isinstance(provider, SamlProvider):
        return saml_login.request_call(test.connection, provider, request_id=test.request_id, callback=test.callback, state=state)
    return wsfed_login.sign_in_call(provider, callback=test.callback, state=state)


def _provider(connection: Connection) -> SamlProvider | wsfed_login.WsFedProvider | Provider:
    if connection.strategy in STRATEGIES:
        return saml_provider(connection)
    return wsfed_login.wsfed_provider(connection) if is_wsfed(connection.strategy, connection.options) else provider_of(connection)


def _openid_request(test: ConnectionTest, issuer: str) -> AuthenticationRequest:
    """Return the authentication request of a test at a provider of OpenID Connect or OAuth 2.0.

    Its nonce and its PKCE verifier are derived from one secret, which the row of the test stores.
    """
    nonce, verifier = (digest_of(f"{purpose}:{test.request_id}") for purpose in ("nonce", "verifier"))
    return AuthenticationRequest(test.connection_id, issuer, test.callback, state_digest=test.digest, nonce=nonce, verifier=verifier)


def is_test(state: str) -> bool:
    """Tell whether a `state` belongs to a test. The `state` of a login has another form."""
    return _STATE.fullmatch(state) is not None


def waiting_test(tenant_id: str, state: str) -> ConnectionTest | None:
    """Return the test of a `state`; None if the test already has a result, or has expired."""
    match = _STATE.fullmatch(state)
    if match is None:
        return None
    rows = ConnectionTest.objects.of(tenant_id).select_related("connection").filter(expires_at__gt=timezone.now(), result__isnull=True)
    row = rows.filter(pk=match.group(1)).first()
    return row if row is not None and hmac.compare_digest(row.digest, digest_of(match.group(2))) else None


def judge_test(test: ConnectionTest, sent: Mapping[str, str], *, address: str) -> bool:
    """Check the provider's answer and store the result; tell whether the answer is valid."""
    raw = b""
    try:
        if "SAMLResponse" in sent:
            answer = saml_login.SamlAnswer(sent["SAMLResponse"], address)
            raw = answer.raw
            found = _saml_login(test, answer)
        elif "wresult" in sent:
            raw = sent["wresult"].encode()
            found = _wsfed_login(test, sent["wresult"])
        else:
            found = _openid_login(test, sent)
    except UpstreamFailed as failed:
        fail_test(test, failed, message=_message(test, raw))
        return False
    _end(test, _result(test.connection, found), message=_message(test, raw))
    return True


def _message(test: ConnectionTest, raw: bytes) -> str:
    """Return the provider's XML as text, without secret values of SAML attributes; empty for OpenID Connect and OAuth 2.0."""
    hides = partial(is_hidden_attribute, read=read_claims(test.connection))
    return shown_message(raw, hides=hides) if raw else ""


def fail_test(test: ConnectionTest, failed: UpstreamFailed, *, message: str = "") -> None:
    """End a test with the reason of its failure."""
    _end(test, {"is_success": False, "problem": f"{failed.failure.description} {failed.detail}".strip()}, message=message)


def _end(test: ConnectionTest, result: dict[str, Any], *, message: str) -> None:
    ConnectionTest.objects.of(test.tenant_id).filter(pk=test.pk, result__isnull=True).update(result=result, message=message)


def last_test(connection: Connection) -> ConnectionTest | None:
    """Return the newest test of a connection; None if there is none."""
    return ConnectionTest.objects.of(connection.tenant_id).filter(connection=connection).order_by("-pk").first()


def _saml_login(test: ConnectionTest, answer: saml_login.SamlAnswer) -> Proven:
    connection = test.connection
    if connection.strategy not in STRATEGIES:
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The provider answers in SAML, but the connection uses another protocol.")
    provider = saml_provider(connection)
    found = saml_login.judged(connection, provider, answer, callback=test.callback, request_id=test.request_id)
    return _login_of(found, provider.options)


def _wsfed_login(test: ConnectionTest, result: str) -> Proven:
    connection = test.connection
    if not is_wsfed(connection.strategy, connection.options):
        problem = "The provider answers in WS-Federation, but the connection uses another protocol."
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, problem)
    provider = wsfed_login.wsfed_provider(connection)
    return _login_of(wsfed_login.judged(connection, provider, result), provider.options)


def _login_of(found: Accepted, options: MappingOptions) -> Proven:
    statement = found.assertion.statement
    return Proven(statement_claims(statement, options), sent=parts_of(statement))


def _openid_login(test: ConnectionTest, answer: Mapping[str, str]) -> Proven:
    connection = test.connection
    if not isinstance(provider := _provider(connection), Provider):
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The provider answers with a code, but the connection expects an assertion.")
    return oidc_login.proven(connection, _openid_request(test, metadata_of(provider).issuer), answer)


def _result(connection: Connection, proven: Proven) -> dict[str, Any]:
    kept = kept_claims(proven.sent, read=read_claims(connection))
    profile = stored_profile(profile_at_login(connection, proven))
    return {"is_success": True, "subject": proven.subject, "profile": profile, "sent": kept.parts, "left_out": kept.left_out}
