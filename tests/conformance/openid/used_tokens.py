"""Functions that use the members of the discovery document about clients, tokens and logouts: one function for each member.

Each function raises an error for a value that it does not know.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from authapi import tasks
from authapi.client_auth.assertion import ASSERTION_TYPE
from authapi.models import ApiResource, ClientCredential, LogoutNotice
from authapi.services.api_resources import create_api_resource
from authapi.services.client_credentials import NewCredential, create_client_with_credentials
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import Connection
from identity.services.connections import create_connection
from tests.authapi.assertions import private_key, public_pem
from tests.authapi.browser import Page
from tests.authapi.certificates import SUBJECT_LINES, certificate, forwarded
from tests.authapi.memory import forget_all
from tests.authapi.passwordless.messages import last_code
from tests.authapi.proving import Prover, settle_memory
from tests.authapi.token_forms import basic
from tests.conformance.openid.plans import Variant
from tests.conformance.openid.provider import EMAIL, Provider, error_of
from tests.conformance.openid.relying_party import GRANTS, LOGGED_OUT, RelyingParty, good_tokens, new_party, with_pkce
from tests.factories.scim import misbehaving_server, reply, sequence
from tests.factories.sign_in import PASSWORD

API = "https://api.example.test/"
REALM = "http://auth0.com/oauth/grant-type/password-realm"
OTP = "http://auth0.com/oauth/grant-type/passwordless/otp"


# --- Clients of every kind ------------------------------------------------------------------------------------------------------


def api(provider: Provider) -> ApiResource:
    """Create an API for which clients may request tokens without a user."""
    found = ApiResource.objects.of(provider.tenant.pk).filter(identifier=API).first()
    return found or create_api_resource(tenant_id=provider.tenant.pk, identifier=API, scopes=[{"value": "read:things"}])


class Machine:
    """A client that authenticates with one of the methods and requests tokens without a user."""

    def __init__(self, provider: Provider, method: str, *, algorithm: str = "RS256") -> None:
        self.provider, self.method, self.algorithm, self.secret = provider, method, algorithm, ""
        self.pem = certificate()
        columns: dict[str, Any] = {"tenant_id": provider.tenant.pk, "name": "Machine", "grant_types": ("client_credentials",)}
        new = {
            "private_key_jwt": NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public_pem("first"), algorithm=algorithm),
            "tls_client_auth": NewCredential(type=ClientCredential.Type.CERT_SUBJECT_DN, subject_dn=SUBJECT_LINES),
            "self_signed_tls_client_auth": NewCredential(type=ClientCredential.Type.X509_CERT, pem=self.pem),
        }
        if method in new:
            self.client = create_client_with_credentials(methods={method: [new[method]]}, **columns)
        else:
            self.client, self.secret = create_client(token_endpoint_auth_method=method, **columns)
        names = {"tenant_id": provider.tenant.pk, "client_id": self.client.client_id}
        create_client_grant(**names, api_resource=api(provider), scopes=["read:things"])

    def ask(self, address: str, fields: dict[str, Any], **headers: str) -> Page:
        """Post a form with the authentication of the client."""
        client_id = self.client.client_id
        match self.method:
            case "client_secret_basic":
                headers |= basic(client_id, self.secret)
            case "client_secret_post":
                fields = {**fields, "client_id": client_id, "client_secret": self.secret}
            case "private_key_jwt":
                fields = {**fields, "client_assertion_type": ASSERTION_TYPE, "client_assertion": self.assertion()}
            case "tls_client_auth" | "self_signed_tls_client_auth":
                status = "SUCCESS" if self.method == "tls_client_auth" else "FAILED:self-signed certificate"
                headers |= forwarded(self.provider.edge, self.pem, status)
                fields = {**fields, "client_id": client_id}
            case _:
                raise AssertionError(f"no use is known for {self.method}")
        return self.provider.post(address, fields, **headers)

    def assertion(self) -> str:
        now = int(time.time())
        claims = {"iss": self.client.client_id, "sub": self.client.client_id, "aud": self.provider.issuer, "jti": secrets.token_urlsafe(16)}
        key = RSAKey.import_key(private_key("first"))
        return jwt.encode({"alg": self.algorithm}, {**claims, "iat": now, "exp": now + 120}, key, algorithms=[self.algorithm])

    def tokens(self, **headers: str) -> dict[str, Any]:
        fields = {"grant_type": "client_credentials", "audience": API}
        return good_tokens(self.ask(self.provider.metadata["token_endpoint"], fields, **headers))

    def claims(self, token: str) -> dict[str, Any]:
        return dict(jwt.decode(token, self.provider.keys, algorithms=["RS256"]).claims)


def public_party(provider: Provider) -> RelyingParty:
    return new_party(provider, method="none")


def public_tokens(party: RelyingParty, **changes: Any) -> dict[str, Any]:
    """Return the tokens of a login at a client without a secret."""
    verifier, challenge = with_pkce()
    code = party.answer(party.log_in(party.authorize(**challenge, **changes)))["code"]
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": party.sent["redirect_uri"], "code_verifier": verifier}
    named = {"client_id": party.client.client_id}
    return good_tokens(party.provider.post(party.provider.metadata["token_endpoint"], {**fields, **named}))


# --- Endpoints ------------------------------------------------------------------------------------------------------------------


def use_token_endpoint(provider: Provider, value: str) -> None:
    fields = {"grant_type": "client_credentials", "audience": API}
    assert good_tokens(Machine(provider, "client_secret_basic").ask(value, fields))["access_token"]


def use_userinfo_endpoint(provider: Provider, value: str) -> None:
    token = new_party(provider).logged_in().access_token
    page = provider.ask("GET", value, headers={"Authorization": f"Bearer {token}"})
    assert json.loads(page.body)["sub"] == provider.user.user_id


def use_revocation_endpoint(provider: Provider, value: str) -> None:
    party = new_party(provider)
    token = party.logged_in(scope="openid offline_access").tokens["refresh_token"]
    assert provider.post(value, {"token": token}, **basic(party.client.client_id, party.secret)).status == 200
    assert error_of(party.refresh(token)) == (400, "invalid_grant")


def use_jwks_uri(provider: Provider, value: str) -> None:
    keys = json.loads(provider.ask("GET", value).body)["keys"]
    used = json.loads(_decoded(new_party(provider).logged_in().id_token.partition(".")[0]))["kid"]
    assert used in {key["kid"] for key in keys}


def _decoded(part: str) -> bytes:
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


# --- Grants ---------------------------------------------------------------------------------------------------------------------


def _code(provider: Provider) -> None:
    assert new_party(provider).logged_in().tokens["access_token"]


def _implicit(provider: Provider) -> None:
    assert new_party(provider, Variant("id_token token")).logged_in().access_token


def _refresh(provider: Provider) -> None:
    party = new_party(provider)
    assert good_tokens(party.refresh(party.logged_in(scope="openid offline_access").tokens["refresh_token"]))


def _client_credentials(provider: Provider) -> None:
    assert Machine(provider, "client_secret_post").tokens()["access_token"]


def _typed(provider: Provider, grant: str, **fields: str) -> None:
    party = new_party(provider, grant_types=(*GRANTS, grant))
    update_tenant_settings(tenant_id=provider.tenant.pk, changes={"default_directory": provider.connection.name})
    forget_all()
    assert good_tokens(party.token({"grant_type": grant, "scope": "openid", **fields}))["id_token"]


def _password(provider: Provider) -> None:
    _typed(provider, "password", username=EMAIL, password=PASSWORD)


def _realm(provider: Provider) -> None:
    _typed(provider, REALM, username=EMAIL, password=PASSWORD, realm=provider.connection.name)


def _one_time_code(provider: Provider) -> None:
    party = new_party(provider, grant_types=(*GRANTS, OTP), method="client_secret_post")
    new, enabled = "new@example.test", [party.client.client_id]
    if not Connection.objects.of(provider.tenant.pk).filter(name="email").exists():
        create_connection(tenant_id=provider.tenant.pk, name="email", strategy="email", enabled_clients=enabled, options={})
    body = {"client_id": enabled[0], "client_secret": party.secret, "connection": "email", "email": new, "send": "code"}
    headers = {"Content-Type": "application/json"}
    page = provider.ask("POST", f"{provider.issuer}passwordless/start", headers=headers, body=json.dumps(body).encode())
    assert page.status == 200, page.text
    fields = {"grant_type": OTP, "username": new, "realm": "email", "otp": last_code(provider.tenant.pk), "scope": "openid"}
    assert good_tokens(party.token(fields))["id_token"]


GRANTS_OF_TOKENS: dict[str, Callable[[Provider], None]] = {
    "authorization_code": _code,
    "implicit": _implicit,
    "refresh_token": _refresh,
    "client_credentials": _client_credentials,
    "password": _password,
    REALM: _realm,
    OTP: _one_time_code,
}


# --- Authentication of clients --------------------------------------------------------------------------------------------------


def use_token_method(provider: Provider, value: str) -> None:
    if value == "none":
        assert public_tokens(public_party(provider))["access_token"]
    else:
        assert Machine(provider, value).tokens()["access_token"]


def use_token_algorithm(provider: Provider, value: str) -> None:
    assert Machine(provider, "private_key_jwt", algorithm=value).tokens()["access_token"]


def use_revocation_method(provider: Provider, value: str) -> None:
    address = provider.metadata["revocation_endpoint"]
    if value == "none":
        party = public_party(provider)
        token = public_tokens(party, scope="openid offline_access")["refresh_token"]
        assert provider.post(address, {"token": token, "client_id": party.client.client_id}).status == 200
        return
    machine = Machine(provider, value)
    assert machine.ask(address, {"token": machine.tokens()["access_token"]}).status == 200
    # A client that sends only its id is refused.
    assert provider.post(address, {"token": "x", "client_id": machine.client.client_id}).status == 401


def use_revocation_algorithm(provider: Provider, value: str) -> None:
    machine = Machine(provider, "private_key_jwt", algorithm=value)
    assert machine.ask(provider.metadata["revocation_endpoint"], {"token": "unknown"}).status == 200


# --- Keys -----------------------------------------------------------------------------------------------------------------------


def use_id_token_algorithm(provider: Provider, value: str) -> None:
    party = new_party(provider, algorithm=value)
    # A published key contains its algorithm (`alg`) only while the tenant signs with one algorithm.
    provider.changed()
    page = party.exchange(party.answer(party.log_in(party.authorize()))["code"])
    key: Any = OctKey.import_key(party.secret) if value.startswith("HS") else provider.keys
    assert jwt.decode(good_tokens(page)["id_token"], key, algorithms=[value]).claims["sub"] == provider.user.user_id


def use_proof_algorithm(provider: Provider, value: str) -> None:
    settle_memory()
    machine, prover = Machine(provider, "client_secret_basic"), Prover(value)
    tokens = machine.tokens(DPoP=prover.proof("POST", provider.metadata["token_endpoint"]))
    assert tokens["token_type"] == "DPoP"
    assert machine.claims(tokens["access_token"])["cnf"] == {"jkt": prover.thumbprint}


def use_bound_tokens(provider: Provider, value: bool) -> None:
    machine = Machine(provider, "tls_client_auth")
    assert ("cnf" in machine.claims(machine.tokens()["access_token"])) is value


def use_mtls_alias(provider: Provider, value: dict[str, str]) -> None:
    """Send requests as a TLS proxy forwards them from the URLs in `value`: to the same paths of the host, with the certificate."""
    document = provider.metadata
    machine = Machine(provider, "self_signed_tls_client_auth")
    for endpoint, address in value.items():
        assert address == document[endpoint].replace(provider.issuer, f"http://mtls.{provider.host}/")
        assert _ALIASED[endpoint](machine, document[endpoint])


_ALIASED: dict[str, Callable[[Machine, str], bool]] = {
    "token_endpoint": lambda machine, _: bool(machine.tokens()["access_token"]),
    "userinfo_endpoint": lambda machine, address: machine.ask(address, {}).status == 401,
    "pushed_authorization_request_endpoint": lambda machine, address: error_of(machine.ask(address, {}))[1] == "invalid_request",
    # The client is authenticated but does not have the grant.
    "backchannel_authentication_endpoint": lambda machine, address: error_of(machine.ask(address, {}))[1] == "unauthorized_client",
    "device_authorization_endpoint": lambda machine, address: error_of(machine.ask(address, {}))[1] == "unauthorized_client",
}


# --- Logouts --------------------------------------------------------------------------------------------------------------------


def use_backchannel_logout(provider: Provider, value: bool) -> None:
    assert bool(logout_claims(provider)) is value


def use_backchannel_session(provider: Provider, value: bool) -> None:
    assert ("sid" in logout_claims(provider)) is value


def logout_claims(provider: Provider) -> dict[str, Any]:
    """Return the notice of a logout that a client gets over the back channel."""
    with misbehaving_server(sequence(reply(200))) as receiver:
        party = new_party(provider, settings={"oidc_logout": {"backchannel_logout_urls": [f"http://127.0.0.1:{receiver.port}/out"]}})
        outcome = party.logged_in()
        party.browser.get("/oidc/logout", {"id_token_hint": outcome.id_token, "post_logout_redirect_uri": LOGGED_OUT})
        for notice in LogoutNotice.objects.of(provider.tenant.pk).values_list("pk", flat=True):
            tasks.send_logout_notice(str(notice))
    (heard,) = receiver.received
    (token,) = parse_qs(heard.body.decode())["logout_token"]
    return dict(jwt.decode(token, provider.keys, algorithms=["RS256"]).claims)
