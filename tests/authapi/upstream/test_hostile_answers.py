"""Answers of a provider that are missing, late, too large or of the wrong type, over a real socket.

Such answers cause no internal error.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from authapi.models import Session
from authapi.upstream import exchange, metadata
from tests.authapi.upstream.refusals import assert_refused, encoded, tokens
from tests.factories.provider import Login, provider
from tests.factories.scim import reply

BOMBS = {
    "deep arrays": b"[" * 100_000,
    "deep objects": b'{"keys":' * 50_000,
    "deep arrays with closing brackets": b'{"keys": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "huge number": b'{"keys": [], "n": ' + b"9" * 100_000 + b"}",
    "infinite number": b'{"keys": [1e999], "expires_in": 1e999, "id_token": 1e999}',
    "not UTF-8": b'{"keys": "\xff\xfe"}',
    "surrogate": b'{"keys": "\\ud800", "id_token": "\\ud800", "access_token": "\\ud800"}',
    "NUL": b'{"keys": ["\\u0000"], "id_token": "\\u0000", "access_token": "\\u0000"}',
    "repeated names": b'{"keys": [], "id_token": "a", "id_token": null, "issuer": "x", "issuer": null}',
    "null": b"null",
    "string": b'"keys"',
    "list": b"[]",
    "empty": b"",
    "HTML": b"<html></html>",
    "too large": b'{"keys": ["' + b"k" * 2_000_000 + b'"]}',
    "many keys": json.dumps({"keys": [{"kty": "RSA", "kid": "one", "n": "AQAB", "e": "AQAB"}] * 4_000}).encode(),
    "wrong types": json.dumps({"keys": [None, 1, [], "x", {"kty": 1}, {"kty": "RSA", "kid": "one", "n": 5, "e": []}]}).encode(),
    "huge key": json.dumps({"keys": [{"kty": "RSA", "kid": "one", "n": encoded(b"\xff" * 150_000), "e": "AQAB"}]}).encode(),
    "huge exponent": json.dumps(
        {"keys": [{"kty": "RSA", "kid": "one", "n": encoded(b"\xff" * 256), "e": encoded(b"\xff" * 256)}]}
    ).encode(),
    "zero key": json.dumps({"keys": [{"kty": "RSA", "kid": "one", "n": "AA", "e": "AA"}]}).encode(),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize("path", ["/token", "/jwks", "/userinfo"])
def test_a_hostile_answer_is_refused(login: Login, path: str, bomb: bytes) -> None:
    sent = login.leave()
    # The id token has no name, so the service also requests userinfo.
    login.provider.changes = {"name": None}
    login.provider.answers[path] = reply(200, raw=bomb)
    assert_refused(login, login.come_back(sent))


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_hostile_discovery_document_shows_an_error_page(login: Login, bomb: bytes) -> None:
    login.provider.answers["/.well-known/openid-configuration"] = reply(200, raw=bomb)
    asked = {"response_type": "code", "client_id": login.client.client_id, "redirect_uri": "https://app.example.test/callback"}
    page = login.browser.get("/authorize", {**asked, "scope": "openid", "connection": "corp"})
    assert login.browser.get(page["Location"]).status_code == 502


@pytest.mark.parametrize("path", ["/token", "/jwks", "/userinfo"])
@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{", b"\x16\x03\x01 no HTTP at all\r\n\r\n"],
    ids=["no bytes", "half an answer", "TLS"],
)
def test_an_interrupted_answer_is_refused(login: Login, monkeypatch: pytest.MonkeyPatch, path: str, answer: bytes) -> None:
    # The provider keeps the connection open after its last byte, so the service waits until its deadline.
    monkeypatch.setattr(exchange, "SECONDS", 1.0)
    sent = login.leave()
    login.provider.changes = {"name": None}
    login.provider.answers[path] = answer
    assert_refused(login, login.come_back(sent))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("path", ["/token", "/jwks", "/userinfo"])
def test_redirects_are_not_followed(login: Login, path: str, status: int) -> None:
    sent = login.leave()
    login.provider.changes = {"name": None}
    with provider() as elsewhere:
        login.provider.answers[path] = reply(status, {}, headers={"Location": f"{elsewhere.issuer}/token"})
        assert_refused(login, login.come_back(sent))
        assert elsewhere.paths == []


def test_a_slow_answer_is_refused_at_the_deadline(login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "SECONDS", 0.3)
    sent = login.leave()
    login.provider.answers["/token"] = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b" " * 4_000
    assert_refused(login, login.come_back(sent))


@pytest.mark.parametrize(
    "more",
    [
        {"expires_in": "soon"},
        {"expires_in": 10**400},
        {"expires_in": -1},
        {"expires_in": [1]},
        {"expires_at": "never"},
        {"token_type": ["Bearer"]},
        {"access_token": {"a": 1}},
        {"error": {"a": 1}},
        {"error": "x" * 5000, "error_description": "\r\nSet-Cookie: a=b"},
    ],
)
def test_a_token_answer_with_invalid_members_causes_no_internal_error(login: Login, more: dict[str, Any]) -> None:
    sent = login.leave()
    login.provider.answers["/token"] = tokens(login.provider.id_token(), **more)
    told = login.told(login.come_back(sent))
    assert "code" in told or told["error"] in ("access_denied", "server_error")


# URLs in a discovery document.


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "//evil.example.test/authorize",
        "/authorize",
        "https://",
        "https://[x",
        "https://a.test/\r\nSet-Cookie: session=evil",
        "https://a.test/\x00",
        "ftp://a.test/authorize",
        " https://a.test/authorize",
        "https://u:p@a.test/authorize",
    ],
    ids=ascii,
)
def test_the_browser_is_not_redirected_to_an_invalid_url(login: Login, address: str) -> None:
    login.provider.discovery = {"authorization_endpoint": address}
    asked = {"response_type": "code", "client_id": login.client.client_id, "redirect_uri": "https://app.example.test/callback"}
    page = login.browser.get("/authorize", {**asked, "scope": "openid", "connection": "corp"})
    assert login.browser.get(page["Location"]).status_code == 502


@pytest.mark.parametrize("name", ["token_endpoint", "jwks_uri", "userinfo_endpoint"])
@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "http://169.254.169.254/latest",
        "http://192.0.0.192/",
        "http://0x7f.1:1/",
        "http://[::ffff:10.0.0.1]/",
        "gopher://x",
        "x",
        "http://[x",
    ],
    ids=ascii,
)
def test_a_discovery_document_cannot_name_a_url_in_a_private_network(login: Login, name: str, address: str) -> None:
    login.provider.discovery = {name: address}
    sent = login.leave()
    login.provider.changes = {"name": None}
    assert_refused(login, login.come_back(sent))


def test_a_logout_succeeds_despite_a_hostile_discovery_document(login: Login) -> None:
    assert "code" in login.log_in()
    metadata.documents.clear()
    login.provider.discovery = {"end_session_endpoint": "https://a.test/\r\nSet-Cookie: session=evil"}
    answer = login.browser.get("/v2/logout", {"federated": ""}, headers={"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})
    assert answer.status_code in (200, 302)
    assert "\n" not in answer.get("Location", "")
    assert not Session.objects.of(login.tenant.pk).exists()
