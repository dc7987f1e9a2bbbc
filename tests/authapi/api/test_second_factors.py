"""Second factors over the management interface: required scopes, values that are never shown, and removed factors."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote

import pytest

from authapi.factors.settings import factor_settings
from authapi.models import RememberedBrowser, Session, SignIn
from events.models import Event
from foundation.secrets import totp
from identity.factors.user_factors import factors_of, take_totp
from identity.models import AuditEntry, Connection, EnrolledFactor, Tenant, User
from tests.config.two_tenants import make_other_tenant
from tests.factories.identity import make_user
from tests.factories.models.authapi import RememberedBrowserFactory, SessionFactory
from tests.factories.models.identity import EnrolledFactorFactory, OrganizationFactory, UserFactory
from tests.management import Management

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
NUMBER = "+491712345678"


def at(user: User, method: str = "") -> str:
    return f"users/{quote(user.user_id, safe='')}/authentication-methods" + (f"/{quote(method, safe='')}" if method else "")


@pytest.fixture
def foreign() -> EnrolledFactor:
    return EnrolledFactorFactory.create(user=UserFactory.create(tenant_id=make_other_tenant().pk))


def test_factors_of_another_tenant_and_of_another_user_are_not_found(
    api: Management, ada: User, database_connection: Connection, foreign: EnrolledFactor
) -> None:
    bob = make_user(connection=database_connection, email="bob@example.test")
    other = EnrolledFactorFactory.create(user=bob)
    for factor in (foreign, other):
        for call in (api.get, api.delete):
            assert call(at(ada, f"{factor.kind}|{factor.device}")).status == 404
        assert api.patch(at(ada, f"{factor.kind}|{factor.device}"), {"name": "mine"}).status == 404
    # The path includes the type, so the id of a device is not found together with another type.
    assert api.get(at(bob, f"phone|{other.device}" if other.kind != "phone" else f"totp|{other.device}")).status == 404
    assert api.get(f"guardian/enrollments/{foreign.device}").status == 404
    assert api.delete(f"guardian/enrollments/{foreign.device}").status == 404
    for path in (at(foreign.user), f"users/{quote(foreign.user.user_id, safe='')}/authenticators"):
        assert api.delete(path).status == 404
    assert EnrolledFactor.all_tenants.filter(pk__in=[foreign.pk, other.pk]).count() == 2


def test_a_token_with_the_read_scope_changes_nothing(tenant: Tenant, ada: User) -> None:
    factor = EnrolledFactorFactory.create(user=ada)
    reader = Management(tenant, scope="read:authentication_methods read:users read:guardian_factors read:guardian_enrollments")
    id = quote(ada.user_id, safe="")
    attempts: list[tuple[str, str, Any]] = [
        ("POST", at(ada), {"type": "totp"}),
        ("PUT", at(ada), []),
        ("DELETE", at(ada), None),
        ("DELETE", at(ada, f"{factor.kind}|{factor.device}"), None),
        ("PATCH", at(ada, f"{factor.kind}|{factor.device}"), {"name": "x"}),
        ("DELETE", f"users/{id}/authenticators", None),
        ("DELETE", f"users/{id}/multifactor/google-authenticator", None),
        ("POST", f"users/{id}/multifactor/actions/invalidate-remember-browser", None),
        ("POST", f"users/{id}/recovery-code-regeneration", None),
        ("DELETE", f"guardian/enrollments/{factor.device}", None),
        ("PUT", "guardian/factors/otp", {"enabled": True}),
        ("PUT", "guardian/policies", ["all-applications"]),
        ("PATCH", "second-factors", {"passkeys": True}),
    ]
    for method, path, body in attempts:
        assert reader.call(method, path, body=body).status == 403, (method, path)
    assert reader.get(at(ada)).status == 200
    assert EnrolledFactor.objects.of(tenant.pk).get() == factor


def test_unusable_methods_are_refused_without_an_enrollment(api: Management, ada: User) -> None:
    bodies: list[dict[str, Any]] = [
        {"type": "password"},
        {"type": "phone"},
        {"type": "phone", "phone_number": "112"},
        {"type": "phone", "phone_number": NUMBER, "totp_secret": SECRET},
        {"type": "phone", "phone_number": NUMBER, "preferred_authentication_method": "voice"},
        {"type": "email", "email": "nobody"},
        {"type": "totp", "totp_secret": "not base 32!"},
        {"type": "totp", "totp_secret": "JBSWY3DP"},
        {"type": "totp", "name": "x" * 61},
        {"type": "passkey", "key_id": "AAAA", "public_key": "AAAA"},
        {"type": "webauthn-roaming", "key_id": "AAAA", "public_key": "AAAA", "relying_party_identifier": "evil.example"},
        {"type": "webauthn-platform", "key_id": "AAAA", "public_key": "AAAA"},
    ]
    for body in bodies:
        assert api.post(at(ada), body).status == 400, body
    assert api.put(at(ada), [{"type": "totp"}, {"type": "email", "email": "nobody"}]).status == 400
    assert api.put(at(ada), [{"type": "email", "email": "a@b.example"}, {"type": "email", "email": "A@B.example"}]).status == 400
    assert not EnrolledFactor.objects.of(ada.tenant_id).exists()


def test_a_secret_is_shown_once_and_a_phone_number_is_masked(api: Management, ada: User) -> None:
    made = api.post(at(ada), {"type": "totp", "totp_secret": SECRET.lower(), "name": "Phone app"})
    phone = api.post(at(ada), {"type": "phone", "phone_number": "0049 171 2345678"})
    assert (made.status, made.json["totp_secret"], phone.json["phone_number"]) == (201, SECRET, NUMBER)
    # No recovery code is created, because this interface cannot show the code to the user.
    assert {row.kind for row in EnrolledFactor.objects.of(ada.tenant_id)} == {"totp", "phone"}
    assert api.post(at(ada), {"type": "phone", "phone_number": NUMBER}).status == 409
    shown = api.get(at(ada)).body + api.get(at(ada, made.json["id"])).body + api.get(f"users/{quote(ada.user_id)}/enrollments").body
    assert SECRET.encode() not in shown
    assert NUMBER[1:].encode() not in shown
    assert b"5678" in shown
    page = api.get(at(ada), {"include_totals": "true", "per_page": 1}).json
    assert (page["total"], page["limit"], len(page["authenticators"])) == (2, 1, 1)
    api.patch("tenants/settings", {"flags": {"disable_management_api_sms_obfuscation": True}})
    assert NUMBER[1:].encode() in api.get(at(ada)).body
    ada.refresh_from_db()
    assert take_totp(ada, totp.code_of(SECRET, totp.step_at(time.time())), moment=time.time()) is not None


def test_one_event_without_secrets_is_recorded_when_a_factor_is_enrolled_or_removed(api: Management, ada: User) -> None:
    before = Event.objects.filter(tenant_id=ada.tenant_id).count()
    made = api.post(at(ada), {"type": "totp", "totp_secret": SECRET}).json
    api.post(at(ada), {"type": "phone", "phone_number": NUMBER})
    api.delete(at(ada, made["id"]))
    api.delete(at(ada))

    events = list(Event.objects.filter(tenant_id=ada.tenant_id).order_by("pk"))[before:]
    assert [event.type for event in events] == ["user.updated", "user.updated"]
    told = b"".join(bytes(event.body) for event in events)
    assert b'"multifactor":["guardian"]' in told
    written = told + repr(list(AuditEntry.objects.values())).encode() + repr(list(SignIn.objects.of(ada.tenant_id).values())).encode()
    for secret in (SECRET, NUMBER, NUMBER[1:]):
        assert secret.encode() not in written
    assert {"gd_enrollment_complete", "gd_unenroll"} <= set(SignIn.objects.of(ada.tenant_id).values_list("type", flat=True))


def test_a_removed_factor_ends_remembered_browsers_and_a_removed_phone_ends_sessions(api: Management, ada: User) -> None:
    app, phone = EnrolledFactorFactory.create(user=ada, kind="totp"), EnrolledFactorFactory.create(user=ada, kind="phone", address=NUMBER)
    RememberedBrowserFactory.create(tenant_id=ada.tenant_id, user=ada)
    session = SessionFactory.create(tenant_id=ada.tenant_id, user=ada)
    assert api.delete(at(ada, f"totp|{app.device}")).status == 204
    assert not RememberedBrowser.objects.of(ada.tenant_id).exists()
    assert Session.objects.of(ada.tenant_id).get() == session
    assert api.delete(at(ada, f"phone|{phone.device}")).status == 204
    assert not Session.objects.of(ada.tenant_id).exists()


def test_putting_methods_replaces_all_methods_except_security_keys(api: Management, ada: User) -> None:
    phone = api.post(at(ada), {"type": "phone", "phone_number": NUMBER}).json["id"]
    api.post(at(ada), {"type": "totp"})
    key = EnrolledFactorFactory.create(user=ada, kind="webauthn-roaming", credential_id="AAAA")
    answer = api.put(at(ada), [{"type": "phone", "phone_number": NUMBER}, {"type": "email", "email": "ada@corp.example"}])

    assert (answer.status, answer.json[0]["id"], answer.json[1]["email"]) == (200, phone, "ada@corp.example")
    assert {factor.kind for factor in factors_of(ada)} == {"phone", "email", key.kind}
    assert api.put(at(ada), []).json == []
    assert [factor.pk for factor in factors_of(ada)] == [key.pk]


def test_the_older_endpoints_remove_factors_of_a_user(api: Management, ada: User) -> None:
    id = quote(ada.user_id, safe="")
    assert api.post(f"users/{id}/recovery-code-regeneration").status == 409
    api.post(at(ada), {"type": "totp"})
    code = api.post(f"users/{id}/recovery-code-regeneration").json["recovery_code"]
    assert len(code) > 20
    assert code.encode() not in api.get(at(ada)).body
    api.post(at(ada), {"type": "email", "email": "ada@corp.example"})
    assert api.delete(f"users/{id}/multifactor/duo").status == 400
    assert api.delete(f"users/{id}/multifactor/pager").status == 400
    assert api.delete(f"users/{id}/multifactor/google-authenticator").status == 204
    passkey = EnrolledFactorFactory.create(user=ada, kind="passkey", credential_id="BBBB")
    assert {row["type"] for row in api.get(f"users/{id}/enrollments").json} == {"email"}
    assert api.delete(f"users/{id}/authenticators").status == 204
    assert EnrolledFactor.objects.of(ada.tenant_id).get() == passkey


def test_a_tenant_can_change_the_settings_of_its_factors_and_its_policies(api: Management, tenant: Tenant) -> None:
    assert {row["name"]: row["enabled"] for row in api.get("guardian/factors").json}["otp"] is False
    assert api.put("guardian/policies", ["all-applications"]).status == 400
    assert api.put("guardian/factors/sms", {"enabled": True}).status == 400
    assert api.put("guardian/factors/duo", {"enabled": True}).status == 400
    assert api.put("guardian/factors/pigeon", {"enabled": True}).status == 400
    # Writing back unchanged values must succeed, because deployment tools do this.
    for row in api.get("guardian/factors").json:
        name = row.pop("name")
        assert api.put(f"guardian/factors/{name}", row).json == {"enabled": False}
    assert api.put("guardian/factors/otp", {"enabled": True}).json == {"enabled": True}
    assert api.put("guardian/policies", ["sometimes"]).status == 400
    assert api.put("guardian/policies", ["confidence-score", "all-applications"]).json == ["all-applications"]
    assert api.put("guardian/factors/otp", {"enabled": False}).status == 400
    assert factor_settings(tenant.pk).policy == "always"
    assert api.put("guardian/policies", []).json == []
    changed = api.patch("second-factors", {"policy": "never", "remembered_days": 7}).json
    assert (changed["policy"], changed["remembered_days"], changed["factors"]) == ("never", 7, ["otp"])
    # `guardian/policies` cannot express `never`, so writing an empty list keeps this policy.
    api.put("guardian/policies", [])
    assert api.get("second-factors").json["policy"] == "never"
    assert api.patch("second-factors", {"remembered_days": 400}).status == 400


def test_a_client_and_an_organization_have_their_own_policies(api: Management, tenant: Tenant) -> None:
    client = api.post("clients", {"name": "Bank", "app_type": "spa", "second_factor_policy": "always"}).json
    assert client["second_factor_policy"] == "always"
    assert api.patch(f"clients/{client['client_id']}", {"second_factor_policy": "often"}).status == 400
    assert "second_factor_policy" not in api.patch(f"clients/{client['client_id']}", {"second_factor_policy": None}).json
    organization = OrganizationFactory.create(tenant_id=tenant.pk).pk
    foreign = OrganizationFactory.create(tenant_id=make_other_tenant().pk).pk
    assert api.put(f"organizations/{foreign}/second-factors", {"policy": "always"}).status == 404
    assert api.get(f"organizations/{organization}/second-factors").json == {"policy": None}
    for policy in ("always", None):
        assert api.put(f"organizations/{organization}/second-factors", {"policy": policy}).json == {"policy": policy}
        assert api.get(f"organizations/{organization}/second-factors").json == {"policy": policy}
