"""Tenant settings, brute-force protection and signing keys over the management interface."""

from __future__ import annotations

import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from authapi.tenant_settings import sign_in_settings
from authapi.tokens.keys import published_keys
from identity.models import Connection, Tenant
from tests.management import Management

BRUTE_FORCE = "attack-protection/brute-force-protection"


def test_settings_are_returned_with_defaults_and_the_request_can_select_fields(api: Management) -> None:
    shown = api.get("tenants/settings").json
    assert shown["session_lifetime"] == 168
    assert shown["flags"] == {}
    assert "branding" not in shown
    assert api.get("tenants/settings", {"fields": "session_lifetime,enabled_locales"}).json == {
        "session_lifetime": 168,
        "enabled_locales": ["en"],
    }
    assert api.get("tenants/settings", {"fields": "secrets"}).json["errorCode"] == "invalid_query_string"


def test_page_settings_omit_members_without_a_value(api: Management) -> None:
    address = {"url": "https://example.test/error"}
    assert api.patch("tenants/settings", {"error_page": {**address, "html": ""}}).json["error_page"] == address
    pages = {"error_page": {"html": "", "url": ""}, "change_password": {"html": ""}}
    assert api.patch("tenants/settings", pages).json.keys() & pages.keys() == set()


def test_a_change_of_settings_keeps_the_other_settings(api: Management, tenant: Tenant, database_connection: Connection) -> None:
    answer = api.patch("tenants/settings", {"friendly_name": "Acme", "idle_session_lifetime": 24, "default_directory": "people"})
    assert answer.status == 200
    assert (answer.json["friendly_name"], answer.json["idle_session_lifetime"]) == ("Acme", 24)
    assert api.patch("tenants/settings", {"friendly_name": None}).json.get("friendly_name") is None
    assert api.get("tenants/settings").json["idle_session_lifetime"] == 24
    assert api.patch("tenants/settings", {}).json == api.get("tenants/settings").json
    assert sign_in_settings(tenant.pk).default_directory == "people"


def test_a_lifetime_is_given_in_hours_or_in_minutes_but_not_both(api: Management, tenant: Tenant) -> None:
    assert api.patch("tenants/settings", {"session_lifetime_in_minutes": 90}).json["session_lifetime"] == 1.5
    assert api.patch("tenants/settings", {"session_lifetime_in_minutes": 120}).json["session_lifetime"] == 2
    assert sign_in_settings(tenant.pk).session_lifetime.total_seconds() == 7200
    both = api.patch("tenants/settings", {"session_lifetime": 3, "session_lifetime_in_minutes": 90})
    assert both.json["errorCode"] == "invalid_body"
    assert api.get("tenants/settings").json["session_lifetime"] == 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"no_such_setting": 1}, "invalid_body"),
        ({"session_lifetime": "168"}, "invalid_body"),
        ({"session_lifetime": True}, "invalid_body"),
        ({"session_lifetime": 0}, "invalid_body"),
        ({"session_lifetime_in_minutes": 525_601}, "invalid_body"),
        ({"flags": {"no_such_flag": True}}, "invalid_body"),
        ({"flags": {"enable_sso": "true"}}, "invalid_body"),
        ({"session_cookie": {"mode": "sometimes"}}, "invalid_body"),
        ({"allowed_logout_urls": ["javascript:alert(1)"]}, "invalid_body"),
        ({"picture_url": "data:text/html,x"}, "invalid_body"),
        ({"default_directory": "nobody"}, "invalid_body"),
        ({"default_audience": "https://nobody.example.test"}, "invalid_body"),
        ({"support_email": "nobody"}, "invalid_body"),
        ({"enabled_locales": []}, "invalid_body"),
        ({"enabled_locales": ["de", "de"]}, "invalid_body"),
        ({"flags": {"disable_clickjack_protection_headers": True}}, "operation_not_supported"),
        ({"pushed_authorization_requests_supported": False, "require_pushed_authorization_requests": True}, "invalid_body"),
        ({"error_page": {"html": "<b>x</b>"}}, "operation_not_supported"),
        ({"error_page": {"show_log_link": True}}, "operation_not_supported"),
        ({"error_page": {"url": "javascript:alert(1)"}}, "invalid_body"),
        ({"error_page": {"url": "https://www.example.com@evil.example"}}, "invalid_body"),
        ({"error_page": {"url": "https://evil.example\\@www.example.com/"}}, "invalid_body"),
    ],
)
def test_invalid_settings_are_refused(api: Management, body: dict[str, object], code: str) -> None:
    before = api.get("tenants/settings").json
    answer = api.patch("tenants/settings", body)
    assert (answer.status, answer.json["errorCode"]) == (400, code), answer.body
    assert api.get("tenants/settings").json == before


def test_brute_force_protection_is_read_and_changed(api: Management, tenant: Tenant) -> None:
    assert api.get(BRUTE_FORCE).json == {
        "enabled": True,
        "shields": ["block", "user_notification"],
        "allowlist": [],
        "mode": "count_per_identifier_and_ip",
        "max_attempts": 10,
    }
    changed = api.patch(BRUTE_FORCE, {"max_attempts": 3, "allowlist": ["192.0.2.0/24", "2001:db8::1"]}).json
    assert (changed["max_attempts"], changed["allowlist"], changed["enabled"]) == (3, ["192.0.2.0/24", "2001:db8::1"], True)
    assert api.patch(BRUTE_FORCE, {}).json == changed
    assert sign_in_settings(tenant.pk).brute_force.max_attempts == 3
    for body in ({"max_attempts": 0}, {"mode": "x"}, {"shields": ["x"]}, {"allowlist": ["10.0.0.0/99"]}, {"x": 1}):
        assert api.patch(BRUTE_FORCE, body).json["errorCode"] == "invalid_body", body
    assert api.get(BRUTE_FORCE).json == changed


def test_keys_are_listed_with_the_published_certificate(api: Management, tenant: Tenant) -> None:
    current, following = api.get("keys/signing").json

    assert (current["current"], current["next"], current["previous"], current["revoked"]) == (True, False, False, False)
    assert following["next"] is True
    certificate = x509.load_pem_x509_certificate(current["cert"].encode())
    digest = hashlib.sha1(certificate.public_bytes(Encoding.DER), usedforsecurity=False).hexdigest().upper()
    assert current["thumbprint"] == digest
    assert current["fingerprint"].replace(":", "") == digest
    assert [key["kid"] for key in published_keys(tenant.pk)] == [current["kid"], following["kid"]]
    assert api.get(f"keys/signing/{current['kid']}").json == current
    assert api.get("keys/signing/nothing").status == 404
    assert "PRIVATE" not in api.get("keys/signing").body.decode()


def test_rotation_returns_the_new_next_key_and_a_previous_key_can_be_revoked(api: Management, tenant: Tenant) -> None:
    current, following = api.get("keys/signing").json

    rotated = api.post("keys/signing/rotate")

    assert rotated.status == 201
    now = {key["kid"]: key for key in api.get("keys/signing").json}
    assert now[following["kid"]]["current"] is True
    assert now[current["kid"]]["previous"] is True
    assert "current_until" in now[current["kid"]]
    assert rotated.json == {"kid": rotated.json["kid"], "cert": now[rotated.json["kid"]]["cert"]}
    assert now[rotated.json["kid"]]["next"] is True

    for kid in (following["kid"], rotated.json["kid"]):
        answer = api.call("PUT", f"keys/signing/{kid}/revoke")
        assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")
    # The token of `api` is signed with the key that is now revoked. `fresh` requests a token that is signed with the new key.
    fresh = Management(tenant)
    revoked = [fresh.call("PUT", f"keys/signing/{current['kid']}/revoke") for _ in range(2)]
    assert [answer.status for answer in revoked] == [200, 200]
    assert revoked[0].json == revoked[1].json
    assert "revoked_at" in revoked[0].json
    assert api.get("keys/signing").status == 401
    assert fresh.get(f"keys/signing/{current['kid']}").json["revoked"] is True
    assert current["kid"] not in [key["kid"] for key in published_keys(tenant.pk)]


@pytest.mark.parametrize("code", ["pt", "de-AT", "DE", "fr-FR"])
def test_a_language_without_translations_is_refused_with_the_list_of_languages(api: Management, code: str) -> None:
    answer = api.patch("tenants/settings", {"enabled_locales": ["en", code]})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    known = "en (English), de (German), fr (French), es (Spanish), ja (Japanese), ar (Arabic)"
    assert f"There are no texts in the language {code}. Choose from {known}" in answer.json["message"]
    assert api.get("tenants/settings").json["enabled_locales"] == ["en"]
    assert api.patch("tenants/settings", {"enabled_locales": ["ja", "en"]}).json["enabled_locales"] == ["ja", "en"]
