"""Second factors at the endpoints for applications: a password alone gets no token, and can neither add a further factor nor remove one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection as database
from django.utils import timezone

from authapi.factors.settings_changes import update_second_factors
from authapi.grants.second_factor import OobGrant, OtpGrant, RecoveryCodeGrant
from authapi.models import FactorTransaction, SignIn
from authapi.services.tenant_settings import update_tenant_settings
from authapi.views import HOT_ENDPOINTS
from foundation.secrets import totp
from identity.factors.user_factors import begin_enrolment, confirm_enrolment
from identity.models import EnrolledFactor, Tenant, User
from identity.services.connections import create_connection
from identity.services.users import update_user
from tests.authapi.asgi_client import Received, ask_token, send
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.proving import Prover
from tests.factories.authapi import Registered, host_of
from tests.factories.identity import make_user
from tests.factories.logins import web_client

PASSWORD = "correct horse battery staple"
GRANTS = ("password", "refresh_token", OtpGrant.name, OobGrant.name, RecoveryCodeGrant.name)
WRONG_OTP = (403, {"error": "invalid_grant", "error_description": "Invalid otp_code."})
UNKNOWN = (403, {"error": "invalid_grant", "error_description": "Malformed mfa_token"})


@dataclass
class Shop:
    """A tenant that always requires a second factor, an application that uses the password grant, and Alice."""

    tenant: Tenant
    client: Registered
    alice: User

    def proof(self) -> dict[str, str]:
        return {"client_id": self.client.client_id, "client_secret": self.client.secret}

    def ask(self, grant: str, *, headers: Mapping[str, str] | None = None, **fields: str) -> Received:
        return ask_token(self.tenant, {"grant_type": grant, **self.proof(), **fields}, headers=headers)

    def password(self, **changes: str) -> Received:
        fields = {"username": "alice@example.test", "password": PASSWORD, **changes}
        return self.ask("password", headers=None, **fields)

    def waiting(self, **changes: str) -> str:
        """Log in with the password alone; return the `mfa_token`."""
        answer = self.password(**changes)
        assert (answer.status, answer.json()["error"]) == (403, "mfa_required"), answer.body
        return str(answer.json()["mfa_token"])

    def call(self, method: str, path: str, token: str, body: Mapping[str, Any] | None = None, *, id: str = "") -> Received:
        route = f"{path}/<str:id>" if id else path
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        raw = json.dumps(body).encode() if body is not None else b""
        host = f"{self.tenant.pk}.example.test"
        return send(HOT_ENDPOINTS[route], method, host=host, headers=headers, chunks=(raw,), named={"id": id} if id else None)

    def challenge(self, token: str, **fields: str) -> Received:
        return self.call("POST", "/mfa/challenge", "", {**self.proof(), "mfa_token": token, **fields})

    def enroll_app(self) -> str:
        """Enroll an authenticator app for Alice; return its secret."""
        secret = totp.new_secret()
        tenant_id, user_id = self.tenant.pk, self.alice.user_id
        factor = begin_enrolment(tenant_id=tenant_id, user_id=user_id, kind="totp", secret=secret)
        confirm_enrolment(tenant_id=tenant_id, user_id=user_id, device=factor.device)
        return secret

    def token_for_factors(self, secret: str, scope: str) -> str:
        """Return an access token for `{issuer}mfa/`, obtained with the second factor."""
        waiting = self.waiting(audience=f"{host_of(self.tenant).issuer}mfa/", scope=scope)
        return str(self.ask(OtpGrant.name, mfa_token=waiting, otp=code(secret)).json()["access_token"])


@pytest.fixture
def shop(tenant: Tenant) -> Shop:
    client = web_client(tenant, grant_types=GRANTS)
    people = create_connection(tenant_id=tenant.pk, name="people", strategy="database", enabled_clients=[client.client_id])
    update_tenant_settings(tenant_id=tenant.pk, changes={"default_directory": "people"})
    update_second_factors(tenant_id=tenant.pk, changes={"factors": ["otp", "recovery-code"], "policy": "always"})
    forget_all()
    return Shop(tenant, client, make_user(connection=people, email="alice@example.test", password=PASSWORD))


def code(secret: str, *, steps: int = 0) -> str:
    return totp.code_of(secret, totp.step_at(timezone.now().timestamp()) + steps)


def told(answer: Received) -> tuple[int, Any]:
    return answer.status, answer.json()


def test_a_password_alone_gets_the_usable_factors_instead_of_a_token(shop: Shop) -> None:
    refused = shop.password(scope="openid")
    assert refused.status == 403
    assert refused.json() | {"mfa_token": ""} == {
        "error": "mfa_required",
        "error_description": "Multifactor authentication required",
        "mfa_token": "",
        "mfa_requirements": {"enroll": [{"type": "otp"}]},
    }
    shop.enroll_app()
    assert shop.password().json()["mfa_requirements"] == {"challenge": [{"type": "otp"}, {"type": "recovery-code"}]}
    # The answer to a wrong password does not reveal any factor.
    assert shop.password(password="wrong").json()["error"] == "invalid_grant"
    assert SignIn.objects.of(shop.tenant.pk).filter(type="mfar").count() == 2


def test_a_code_is_accepted_once_and_its_tokens_have_the_scopes_of_the_login(shop: Shop) -> None:
    secret = shop.enroll_app()
    first, second = shop.waiting(scope="openid offline_access"), shop.waiting()
    now = code(secret)
    done = shop.ask(OtpGrant.name, mfa_token=first, otp=now, scope="openid profile")
    assert done.status == 200
    _, claims = decoded(done.json()["id_token"])
    assert set(claims["amr"]) == {"pwd", "mfa", "otp"}
    assert "email" not in claims
    assert told(shop.ask(OtpGrant.name, mfa_token=second, otp=now)) == WRONG_OTP
    assert told(shop.ask(OtpGrant.name, mfa_token=first, otp=code(secret, steps=1))) == UNKNOWN
    assert shop.ask(OtpGrant.name, mfa_token=second, otp=code(secret, steps=1)).status == 200


def test_an_mfa_token_is_accepted_only_from_its_client_and_expires(shop: Shop) -> None:
    secret, token = shop.enroll_app(), shop.waiting()
    other = web_client(shop.tenant, grant_types=GRANTS)
    stolen = {"grant_type": OtpGrant.name, "client_id": other.client_id, "client_secret": other.secret, "mfa_token": token}
    assert told(ask_token(shop.tenant, {**stolen, "otp": code(secret)})) == UNKNOWN
    assert told(shop.ask(OtpGrant.name, mfa_token="unknown", otp=code(secret))) == UNKNOWN
    rows = FactorTransaction.objects.of(shop.tenant.pk)
    rows.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert shop.ask(OtpGrant.name, mfa_token=token, otp=code(secret)).json()["error"] == "expired_token"
    fresh = shop.waiting()
    update_user(tenant_id=shop.tenant.pk, user_id=shop.alice.user_id, changes={"blocked": True})
    assert told(shop.ask(OtpGrant.name, mfa_token=fresh, otp=code(secret))) == UNKNOWN
    assert token not in str(list(rows.values()))


def test_a_login_bound_to_a_key_continues_only_with_that_key(shop: Shop) -> None:
    secret, owner, thief = shop.enroll_app(), Prover(), Prover()
    address = f"{host_of(shop.tenant).issuer}oauth/token"

    def shown(prover: Prover, grant: str, **fields: str) -> Received:
        proof = prover.proof("POST", address)
        answer = shop.ask(grant, headers={"DPoP": proof}, **fields)
        if answer.json().get("error") == "use_dpop_nonce":
            answer = shop.ask(grant, headers={"DPoP": prover.proof("POST", address, nonce=answer.headers["DPoP-Nonce".lower()])}, **fields)
        return answer

    waiting = shown(owner, "password", username="alice@example.test", password=PASSWORD).json()["mfa_token"]
    assert told(shop.ask(OtpGrant.name, mfa_token=waiting, otp=code(secret))) == UNKNOWN
    assert told(shown(thief, OtpGrant.name, mfa_token=waiting, otp=code(secret))) == UNKNOWN
    assert shown(owner, OtpGrant.name, mfa_token=waiting, otp=code(secret)).json()["token_type"] == "DPoP"


def test_all_guesses_for_a_user_share_a_limit_across_logins_and_ip_addresses(shop: Shop) -> None:
    secret = shop.enroll_app()
    tokens = [shop.waiting() for _ in range(11)]
    wrong = "000000" if code(secret) != "000000" else "000001"
    answers = [
        ask_token(
            shop.tenant,
            {"grant_type": OtpGrant.name, **shop.proof(), "mfa_token": token, "otp": wrong},
            address=f"198.51.100.{number}",
        )
        for number, token in enumerate(tokens)
    ]
    assert [answer.status for answer in answers] == [403] * 10 + [429]
    assert answers[-1].json()["error"] == "too_many_attempts"
    # The right code is refused as well.
    assert shop.ask(OtpGrant.name, mfa_token=tokens[0], otp=code(secret)).status == 429


def test_the_recovery_code_is_accepted_once_and_returns_the_next_recovery_code(shop: Shop) -> None:
    token = shop.waiting()
    begun = shop.call("POST", "/mfa/associate", token, {"authenticator_types": ["otp"]}).json()
    assert begun["authenticator_type"] == "otp"
    assert begun["barcode_uri"].startswith("otpauth://totp/")
    assert shop.ask(OtpGrant.name, mfa_token=token, otp=code(begun["secret"])).status == 200
    (recovery,) = begun["recovery_codes"]
    wrong = shop.ask(RecoveryCodeGrant.name, mfa_token=shop.waiting(), recovery_code="A" * 24)
    assert told(wrong) == (403, {"error": "invalid_grant", "error_description": "Invalid recovery_code."})
    used = shop.ask(RecoveryCodeGrant.name, mfa_token=shop.waiting(), recovery_code=recovery.lower())
    assert used.status == 200
    assert used.json()["recovery_code"] not in ("", recovery)
    assert shop.ask(RecoveryCodeGrant.name, mfa_token=shop.waiting(), recovery_code=recovery).status == 403
    assert shop.ask(RecoveryCodeGrant.name, mfa_token=shop.waiting(), recovery_code=used.json()["recovery_code"]).status == 200


def test_a_password_alone_cannot_enroll_a_further_factor(shop: Shop) -> None:
    before = shop.waiting()
    shop.enroll_app()
    for token in (before, shop.waiting()):
        assert shop.call("POST", "/mfa/associate", token, {"authenticator_types": ["otp"]}).json()["error"] == "access_denied"
    assert EnrolledFactor.objects.of(shop.tenant.pk).filter(is_confirmed=False).count() == 0


def test_only_the_login_that_began_an_enrollment_can_confirm_it(shop: Shop) -> None:
    attacker, owner = shop.waiting(), shop.waiting()
    theirs = shop.call("POST", "/mfa/associate", attacker, {"authenticator_types": ["otp"]}).json()
    own = shop.call("POST", "/mfa/associate", owner, {"authenticator_types": ["otp"]}).json()
    # The newer enrollment has replaced the older one.
    assert told(shop.ask(OtpGrant.name, mfa_token=attacker, otp=code(theirs["secret"])))[0] != 200
    assert told(shop.ask(OtpGrant.name, mfa_token=attacker, otp=code(own["secret"])))[0] != 200
    assert shop.ask(OtpGrant.name, mfa_token=owner, otp=code(own["secret"])).status == 200
    assert shop.ask(RecoveryCodeGrant.name, mfa_token=shop.waiting(), recovery_code=theirs["recovery_codes"][0]).status == 403
    assert shop.ask(RecoveryCodeGrant.name, mfa_token=shop.waiting(), recovery_code=own["recovery_codes"][0]).status == 200


def test_factors_are_listed_without_secrets_and_removed_only_after_a_proof_of_the_factor(shop: Shop) -> None:
    secret = shop.enroll_app()
    waiting = shop.waiting()
    listed = shop.call("GET", "/mfa/authenticators", waiting).json()
    assert [one["authenticator_type"] for one in listed] == ["otp", "recovery-code"]
    assert secret not in json.dumps(listed)
    app = listed[0]["id"]
    denied = shop.call("DELETE", "/mfa/authenticators", waiting, id=app)
    assert (denied.status, denied.json()["error"]) == (403, "insufficient_scope")
    token = shop.token_for_factors(secret, "read:authenticators")
    assert shop.call("DELETE", "/mfa/authenticators", token, id=app).status == 403
    token = shop.token_for_factors(secret_of(shop, secret), "remove:authenticators")
    assert shop.call("GET", "/mfa/authenticators", token).status == 403
    assert shop.call("DELETE", "/mfa/authenticators", token, id="sms|" + app.partition("|")[2]).status == 404
    stranger = make_user(connection=shop.alice.connection, email="eve@example.test")
    foreign = EnrolledFactor.objects.of(shop.tenant.pk).create(tenant=shop.tenant, user=stranger, kind="totp")
    assert shop.call("DELETE", "/mfa/authenticators", token, id=f"totp|{foreign.device}").status == 404
    assert shop.call("DELETE", "/mfa/authenticators", token, id=app).status == 204
    assert not EnrolledFactor.objects.of(shop.tenant.pk).filter(user=shop.alice).exists()


def secret_of(shop: Shop, secret: str) -> str:
    """Return the secret, and make the code of the current step acceptable again. Otherwise the test would wait half a minute."""
    EnrolledFactor.objects.of(shop.tenant.pk).filter(user=shop.alice, kind="totp").update(last_step=0)
    return secret


@pytest.mark.parametrize("token", ["", "unknown", "a.b.c"])
def test_invalid_tokens_are_refused(shop: Shop, token: str) -> None:
    for method, path in (("GET", "/mfa/authenticators"), ("POST", "/mfa/associate")):
        assert shop.call(method, path, token, {"authenticator_types": ["otp"]} if method == "POST" else None).status == 401


def test_a_challenge_contains_the_type_of_factor_and_reports_a_missing_factor(shop: Shop) -> None:
    assert shop.challenge(shop.waiting()).json()["error"] == "association_required"
    shop.enroll_app()
    token = shop.waiting()
    assert told(shop.challenge(token)) == (200, {"challenge_type": "otp"})
    assert shop.challenge(token, challenge_type="oob").json()["error"] == "association_required"
    assert shop.challenge(token, challenge_type="push").json()["error"] == "unsupported_challenge_type"
    assert shop.challenge(token, authenticator_id="totp|dev_other").json()["error"] == "association_required"


def test_only_one_of_two_simultaneous_codes_gets_tokens(shop: Shop) -> None:
    secret, token = shop.enroll_app(), shop.waiting()

    def redeem(otp: str) -> int:
        try:
            return shop.ask(OtpGrant.name, mfa_token=token, otp=otp).status
        finally:
            database.close()

    with ThreadPoolExecutor(2) as attackers:
        statuses = sorted(attackers.map(redeem, [code(secret), code(secret, steps=1)]))
    assert statuses == [200, 403]
