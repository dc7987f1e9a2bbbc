"""Applications use passkeys with `@simplewebauthn/browser` in Chromium, and second factors with auth0-python."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from authapi.factors.settings_changes import update_second_factors
from authapi.grants.passkeys import PasskeyGrant
from authapi.grants.second_factor import OtpGrant, RecoveryCodeGrant
from authapi.models import Client
from authapi.services.tenant_settings import update_tenant_settings
from config.launcher.peers import PLACE
from foundation.secrets import totp
from identity.factors.user_factors import begin_enrolment, confirm_enrolment
from identity.models import EnrolledFactor, Tenant
from tests.authapi.factors.passkeys import set_passkeys
from tests.conformance.web_process import web_process
from tests.factories.authapi import host_of
from tests.factories.logins import public_client, web_client
from tests.factories.sign_in import PASSWORD, people, person
from tests.peers.chromium import PROGRAM, chromium
from tests.peers.test_management_sdk import DRIVERS
from tests.peers.test_passkeys import with_authenticator

pytestmark = pytest.mark.peer

BUNDLE = PLACE / "node_modules" / "@simplewebauthn" / "browser" / "dist" / "bundle" / "index.umd.min.js"
ADA = "ada@example.test"
# A script for the page. It requests the options, lets the library use the authenticator, and sends the response of the library.
FLOW = """(async () => {
  const call = async (path, body) => {
    const answer = await fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)});
    return [answer.status, await answer.json()];
  };
  const given = %s;
  const [status, begun] = await call(given.path, given.body);
  if (status !== 200) return [status, begun];
  const act = SimpleWebAuthnBrowser[given.ceremony];
  const authn_response = await act({optionsJSON: begun.authn_params_public_key});
  return await call('/oauth/token', {...given.grant, auth_session: begun.auth_session, authn_response});
})()"""


@pytest.mark.skipif(PROGRAM is None or not BUNDLE.exists(), reason="chromium or @simplewebauthn/browser is not installed: make test-peers")
def test_simplewebauthn_signs_a_user_up_and_logs_in(tenant: Tenant) -> None:
    registered = public_client(tenant, grant_types=(PasskeyGrant.name,))
    client = Client.objects.of(tenant.pk).get(client_id=registered.client_id)
    connection = people(tenant, client)
    set_passkeys(tenant, connection)
    named = {"client_id": client.client_id, "realm": connection.name}
    grant = {**named, "grant_type": PasskeyGrant.name, "scope": "openid"}

    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web, chromium() as browser:
        page = with_authenticator(browser)
        # Load the library on a page of the host of the passkeys, as an application on this host does.
        page.send("Page.setBypassCSP", enabled=True)
        page.open(f"http://localhost:{web.address[1]}/.well-known/openid-configuration")
        page.evaluate(BUNDLE.read_text() + "; typeof SimpleWebAuthnBrowser")

        def ask(path: str, ceremony: str, **body: Any) -> tuple[int, dict[str, Any]]:
            given = {"path": path, "ceremony": ceremony, "body": {**named, **body}, "grant": grant}
            status, told = page.evaluate(FLOW % json.dumps(given))
            return status, told

        signed_up, tokens = ask("/passkey/register", "startRegistration", user_profile={"email": ADA, "name": "Ada"})
        assert (signed_up, "id_token" in tokens) == (200, True), tokens
        logged_in, tokens = ask("/passkey/challenge", "startAuthentication")
        assert (logged_in, "id_token" in tokens) == (200, True), tokens
    [factor] = EnrolledFactor.objects.of(tenant.pk).filter(user__email=ADA)
    assert factor.kind == "passkey"


def test_auth0_python_continues_a_login_that_requires_a_second_factor(tenant: Tenant, tmp_path: Path) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    registered = web_client(tenant, grant_types=("password", OtpGrant.name, RecoveryCodeGrant.name))
    client = Client.objects.of(tenant.pk).get(client_id=registered.client_id)
    connection = people(tenant, client)
    update_tenant_settings(tenant_id=tenant.pk, changes={"default_directory": connection.name})
    update_second_factors(tenant_id=tenant.pk, changes={"factors": ["otp", "recovery-code"], "policy": "always"})
    user, secret = person(connection), totp.new_secret()
    app = begin_enrolment(tenant_id=tenant.pk, user_id=user.user_id, kind="totp", secret=secret)
    recovery_code = confirm_enrolment(tenant_id=tenant.pk, user_id=user.user_id, device=app.device).recovery_code

    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:
        given = {
            "domain": f"localhost:{web.address[1]}",
            "client": registered.client_id,
            "secret": registered.secret,
            "username": user.email,
            "password": PASSWORD,
            "totp": secret,
            "recovery_code": recovery_code,
            "issuer": host_of(tenant).issuer,
        }
        (tmp_path / "given.json").write_text(json.dumps(given))
        command = [str(python), str(DRIVERS / "second_steps.py"), str(tmp_path / "given.json")]
        done = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "password": [403, "mfa_required", ["otp", "recovery-code"]],
        "listed": ["otp", "recovery-code"],
        "challenge": {"challenge_type": "otp"},
        "wrong code": [403, "invalid_grant"],
        "code": ["access_token", "expires_in", "id_token", "scope", "token_type"],
        "recovery code": True,
    }
