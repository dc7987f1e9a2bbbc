"""Uses, at the token endpoint, the grants for second factors and passkeys that the discovery document lists."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from authapi.factors.settings_changes import update_second_factors
from authapi.grants.passkeys import PasskeyGrant
from authapi.grants.second_factor import OobGrant, OtpGrant, RecoveryCodeGrant
from authapi.services.clients import update_client
from authapi.services.tenant_settings import update_tenant_settings
from foundation.secrets import totp
from identity.factors.user_factors import begin_enrolment, confirm_enrolment, remove_all_factors
from tests.authapi.factors.passkeys import as_object, authenticator, set_passkeys
from tests.authapi.factors.walks import sent_code
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.conformance.openid.provider import EMAIL, Provider
from tests.conformance.openid.relying_party import GRANTS, RelyingParty, good_tokens, new_party
from tests.factories.sign_in import PASSWORD

_NEWS = "new@example.test"


class _Waiting:
    """A login that requires a second factor. The user has an app and an email address."""

    def __init__(self, provider: Provider, grant: str) -> None:
        self.provider = provider
        self.party: RelyingParty = new_party(provider, grant_types=(*GRANTS, "password", grant), method="client_secret_post")
        changes = {"settings": {**self.party.client.settings, "second_factor_policy": "always"}}
        update_client(tenant_id=provider.tenant.pk, client_id=self.party.client.client_id, changes=changes)
        self.secret = totp.new_secret()
        self.recovery_code = self._enrolled(kind="totp", secret=self.secret)
        self._enrolled(kind="email", address=_NEWS)
        forget_all()
        page = self.party.token({"grant_type": "password", "scope": "openid", "username": EMAIL, "password": PASSWORD})
        self.token = json.loads(page.body)["mfa_token"]

    def _enrolled(self, **factor: str) -> str:
        """Enroll a factor, and return the recovery code of the response."""
        tenant_id, user_id = self.provider.tenant.pk, self.provider.user.user_id
        begun = begin_enrolment(tenant_id=tenant_id, user_id=user_id, **factor)
        return confirm_enrolment(tenant_id=tenant_id, user_id=user_id, device=begun.device).recovery_code

    def challenged(self) -> dict[str, Any]:
        proof = {"client_id": self.party.client.client_id, "client_secret": self.party.secret}
        body = {**proof, "mfa_token": self.token, "challenge_type": "oob"}
        headers = {"Content-Type": "application/json"}
        page = self.provider.ask("POST", self.provider.metadata["mfa_challenge_endpoint"], headers=headers, body=json.dumps(body).encode())
        assert page.status == 200, page.text
        return dict(json.loads(page.body))

    def proves(self, grant: str, **proof: str) -> None:
        assert good_tokens(self.party.token({"grant_type": grant, "mfa_token": self.token, **proof}))["id_token"]


@contextmanager
def _waiting(provider: Provider, grant: str) -> Iterator[_Waiting]:
    tenant_id = provider.tenant.pk
    update_tenant_settings(tenant_id=tenant_id, changes={"default_directory": provider.connection.name})
    update_second_factors(tenant_id=tenant_id, changes={"factors": ["otp", "email", "recovery-code"]})
    login = _Waiting(provider, grant)
    try:
        yield login
    finally:
        update_client(tenant_id=tenant_id, client_id=login.party.client.client_id, changes={"settings": {"second_factor_policy": None}})
        remove_all_factors(tenant_id=tenant_id, user_id=provider.user.user_id)
        update_second_factors(tenant_id=tenant_id, changes={"factors": []})
        forget_all()


def use_otp_grant(provider: Provider) -> None:
    with _waiting(provider, OtpGrant.name) as login:
        login.proves(OtpGrant.name, otp=totp.code_of(login.secret, totp.step_at(time.time())))


def use_oob_grant(provider: Provider) -> None:
    with _waiting(provider, OobGrant.name) as login:
        sent = login.challenged()
        login.proves(OobGrant.name, oob_code=sent["oob_code"], binding_code=sent_code(provider.tenant))


def use_recovery_grant(provider: Provider) -> None:
    with _waiting(provider, RecoveryCodeGrant.name) as login:
        login.proves(RecoveryCodeGrant.name, recovery_code=login.recovery_code)


def use_passkey_grant(provider: Provider) -> None:
    """Sign a user up with a passkey, and log the user in with this passkey."""
    party = new_party(provider, grant_types=(*GRANTS, PasskeyGrant.name), method="client_secret_post")
    set_passkeys(provider.tenant, provider.connection)
    forget_all()
    key = authenticator(provider.host)
    proof = {"client_id": party.client.client_id, "client_secret": party.secret}
    headers = {"Content-Type": "application/json"}

    def told(path: str, **body: Any) -> dict[str, Any]:
        page = provider.ask("POST", f"{provider.issuer}{path}", headers=headers, body=json.dumps({**proof, **body}).encode())
        assert page.status == 200, page.text
        return dict(json.loads(page.body))

    try:
        subjects = []
        for path, answered in (("passkey/register", key.made), ("passkey/challenge", key.signed)):
            begun = told(path, realm=provider.connection.name, user_profile={"email": "nova@example.test", "username": "nova"})
            answer = as_object(answered(begun["authn_params_public_key"]))
            session = {"auth_session": begun["auth_session"], "authn_response": answer}
            tokens = told("oauth/token", grant_type=PasskeyGrant.name, scope="openid", **session)
            subjects.append(decoded(tokens["id_token"])[1]["sub"])
        assert subjects[0] == subjects[1]
    finally:
        set_passkeys(provider.tenant, provider.connection, is_on=False, passkeys=False)
        forget_all()


def use_mfa_challenge_endpoint(provider: Provider, value: str) -> None:
    use_oob_grant(provider)


GRANTS_OF_FACTORS: dict[str, Callable[[Provider], None]] = {
    OtpGrant.name: use_otp_grant,
    OobGrant.name: use_oob_grant,
    RecoveryCodeGrant.name: use_recovery_grant,
    PasskeyGrant.name: use_passkey_grant,
}
