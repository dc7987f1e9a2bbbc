"""`POST /oauth/global-token-revocation/connection/{name}`: a provider can end the logins of its users, and other senders cannot."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from authapi.login.sessions import note_client
from authapi.models import Client, LogoutNotice, RefreshToken, Session, SignIn
from authapi.upstream.people import user_of
from authapi.upstream.proven import Proven
from authapi.views import HOT_ENDPOINTS
from authapi.xml.certificates import pem_of
from config.asgi import routes
from identity.models import Connection, Tenant, User
from identity.services.connections import create_connection, update_connection
from identity.services.users import link_users
from tests.authapi.asgi_client import Received, ask_token, get, send
from tests.authapi.memory import forget_all
from tests.authapi.xml.signed_messages import key, trusted
from tests.factories.authapi import Registered
from tests.factories.logins import code_form, code_of, login_of, some_user, web_client
from tests.factories.provider import Login, Provider

TYPE = "global-token-revocation+jwt"
PATH = "/oauth/global-token-revocation/connection"
UNAUTHORIZED = (401, {"error": "invalid_token", "error_description": "Unauthorized"})


@dataclass
class World:
    """A user of a provider, with a session and a refresh token, and functions that send the requests of the provider."""

    tenant: Tenant
    provider: Provider
    connection: Connection
    user: User
    application: Registered
    count: list[int] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://{self.tenant.pk}.example.test{PATH}/{self.connection.name}"

    def token(self, *, by: RSAKey | None = None, header: dict[str, Any] | None = None, **changes: Any) -> str:
        now = int(time.time())
        self.count.append(now)
        good = {
            "iss": self.provider.issuer,
            "sub": "app",
            "aud": self.address,
            "iat": now,
            "exp": now + 60,
            "jti": f"{now}.{len(self.count)}",
        }
        claims = {name: value for name, value in (good | changes).items() if value is not None}
        named = {name: value for name, value in {"alg": "RS256", "typ": TYPE, "kid": "one", **(header or {})}.items() if value is not None}
        return jwt.encode(named, claims, by or self.provider.key, algorithms=["RS256"])

    def demand(self, token: str | None, *, name: str | None = None, body: Any = None, **subject: Any) -> Received:
        named = {"format": "iss_sub", "iss": self.provider.issuer, "sub": "248289", **subject}
        sent = body if body is not None else {"subject": {name: value for name, value in named.items() if value is not None}}
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token is not None else {})
        return demanded(self.tenant, name or self.connection.name, headers, json.dumps(sent).encode())

    @property
    def is_logged_in(self) -> tuple[bool, bool]:
        """Return whether the user has a session, and whether the user has a refresh token."""
        tokens = RefreshToken.objects.of(self.tenant.pk).filter(user=self.user, revoked=None)
        return Session.objects.of(self.tenant.pk).filter(user=self.user).exists(), tokens.exists()


def demanded(tenant: Tenant, name: str, headers: dict[str, str], body: bytes) -> Received:
    """Send a request to the URL of a connection, through the router of the service."""

    async def routed(scope: Any, receive: Any, send_on: Any) -> None:
        application: Any = routes("all")
        path = f"{PATH}/{name}"
        await application({**scope, "path": path, "raw_path": path.encode(), "root_path": "", "http_version": "1.1"}, receive, send_on)

    return send(routed, "POST", host=f"{tenant.pk}.example.test", headers=headers, chunks=(body,))


@pytest.fixture
def world(login: Login) -> World:
    user = user_of(login.connection, Proven({"sub": "248289", "email": "ada@corp.example.test"}))
    application = web_client(login.tenant, settings={"oidc_logout": {"backchannel_logout_urls": ["https://app.example.test/back"]}})
    code = code_of(login_of(login.tenant, application, user, scope="openid offline_access"))
    assert ask_token(login.tenant, code_form(application, code)).status == 200
    return World(login.tenant, login.provider, login.connection, user, application)


def told(answer: Received) -> tuple[int, Any]:
    return answer.status, answer.json()


# --- Effects ---------------------------------------------------------------------------------------------------------------------


def test_sessions_and_refresh_tokens_of_the_user_end(world: World) -> None:
    other = some_user(world.tenant)
    ask_token(
        world.tenant, code_form(world.application, code_of(login_of(world.tenant, world.application, other, scope="openid offline_access")))
    )
    assert world.is_logged_in == (True, True)
    answer = world.demand(world.token())
    assert (answer.status, answer.body) == (204, b"")
    assert world.is_logged_in == (False, False)
    assert RefreshToken.objects.of(world.tenant.pk).get(revoked=None).user_id == other.pk
    line = SignIn.objects.of(world.tenant.pk).get(type="universal_logout")
    assert (line.is_success, line.user_id, line.connection) == (True, world.user.user_id, world.connection.name)


def test_applications_are_notified_that_the_provider_ended_the_session(world: World) -> None:
    client = Client.objects.of(world.tenant.pk).get(pk=world.application.client.pk)
    session = Session.objects.of(world.tenant.pk).get(user=world.user)
    note_client(session, client, protocol="oauth")
    world.demand(world.token())
    assert LogoutNotice.objects.of(world.tenant.pk).get().initiator == "idp-logout"


def test_the_body_format_of_the_draft_standard_and_a_list_of_audiences_are_accepted(world: World) -> None:
    named = {"format": "iss_sub", "iss": world.provider.issuer, "sub": "248289"}
    assert world.demand(world.token(aud=["x", world.address]), body={"sub_id": named}).status == 204
    assert world.is_logged_in == (False, False)


def test_a_linked_account_of_the_provider_identifies_its_user(world: World) -> None:
    primary = some_user(world.tenant)
    link_users(tenant_id=world.tenant.pk, primary_id=primary.user_id, secondary_id=world.user.user_id)
    login_of(world.tenant, world.application, primary)
    assert world.demand(world.token()).status == 204
    assert not Session.objects.of(world.tenant.pk).filter(user=primary).exists()


def test_a_request_for_an_unknown_user_gets_the_answer_of_a_successful_request(world: World) -> None:
    answer = world.demand(world.token(), sub="nobody")
    assert (answer.status, answer.body) == (204, b"")
    assert SignIn.objects.of(world.tenant.pk).get(type="universal_logout").is_success is False
    assert world.is_logged_in == (True, True)


# --- Refused requests ------------------------------------------------------------------------------------------------------------

_NOW = int(time.time())


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example.test"},
        {"aud": "https://elsewhere.example.test/"},
        {"aud": None},
        {"exp": _NOW - 100},
        {"exp": _NOW + 86_400},
        {"exp": None},
        {"iat": _NOW - 86_400},
        {"iat": _NOW + 10_000, "exp": _NOW + 10_060},
        {"iat": None},
        {"nbf": _NOW + 10_000},
        {"jti": None},
        {"jti": ""},
        {"jti": 7},
        {"header": {"typ": "JWT"}},
        {"header": {"typ": None}},
        {"header": {"kid": "two"}},
        {"by": RSAKey.generate_key(2048, {"kid": "one"})},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_token_with_any_single_defect_is_refused(world: World, changes: dict[str, Any]) -> None:
    answer = world.demand(world.token(**changes))
    assert told(answer) == UNAUTHORIZED
    assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert world.is_logged_in == (True, True)
    assert SignIn.objects.of(world.tenant.pk).get(type="universal_logout").is_success is False


def test_a_token_is_accepted_once(world: World) -> None:
    token = world.token()
    assert world.demand(token, sub="nobody").status == 204
    assert told(world.demand(token)) == UNAUTHORIZED
    assert world.is_logged_in == (True, True)


@pytest.mark.parametrize("token", [None, "", "made-up", "a.b.c", "x" * 20_000])
def test_a_malformed_token_is_refused(world: World, token: str | None) -> None:
    assert told(world.demand(token)) == UNAUTHORIZED


def test_an_id_token_of_the_provider_is_refused(world: World) -> None:
    assert told(world.demand(world.provider.id_token())) == UNAUTHORIZED


def test_an_unknown_connection_gets_the_answer_of_an_invalid_token(world: World) -> None:
    create_connection(tenant_id=world.tenant.pk, name="people-here", strategy="database")
    for name in ("nowhere", "people-here", "x" * 300):
        assert told(world.demand(world.token(aud=world.address.replace(world.connection.name, name)), name=name)) == UNAUTHORIZED


def test_a_token_for_another_connection_of_the_same_provider_is_refused(world: World) -> None:
    options = {"client_id": "y", "issuer": world.provider.issuer}
    create_connection(tenant_id=world.tenant.pk, name="second", strategy="oidc", options=options)
    assert told(world.demand(world.token(), name="second")) == UNAUTHORIZED


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"subject": "x"},
        {"subject": {"format": "email", "email": "ada@corp.example.test"}},
        {"subject": {"format": "iss_sub", "iss": "y", "sub": "z"}},
        [],
    ],
)
def test_a_body_that_names_no_user_of_the_issuer_is_refused(world: World, body: Any) -> None:
    assert world.demand(world.token(), body=body).json()["error"] == "invalid_request"
    assert world.is_logged_in == (True, True)


def test_the_sign_in_log_contains_only_a_limited_number_of_refusals(world: World) -> None:
    for _ in range(25):
        world.demand("made-up")
    assert SignIn.objects.of(world.tenant.pk).filter(type="universal_logout").count() == 20


def test_a_connection_can_require_one_issuer_and_subject(world: World) -> None:
    options = {"global_token_revocation_jwt_iss": "https://revoker.example.test", "global_token_revocation_jwt_sub": "the app"}
    changed = {**world.connection.options, **options}
    update_connection(tenant_id=world.tenant.pk, connection_id=world.connection.pk, changes={"options": changed})
    forget_all()
    named: dict[str, Any] = {"iss": "https://revoker.example.test"}
    assert told(world.demand(world.token(sub="the app"))) == UNAUTHORIZED
    assert told(world.demand(world.token(**named), **named)) == UNAUTHORIZED
    assert world.demand(world.token(sub="the app", **named), **named).status == 204


def test_a_saml_provider_signs_with_the_key_of_its_certificate(tenant: Tenant, world: World) -> None:
    options = {
        "signInEndpoint": "https://idp.example.test/sso",
        "signingCert": pem_of(trusted()),
        "global_token_revocation_jwt_iss": "https://idp.example.test",
    }
    connection = create_connection(tenant_id=tenant.pk, name="corp-saml", strategy="samlp", options=options)
    user = user_of(connection, Proven({"sub": "ada"}))
    login_of(tenant, world.application, user)
    saml = World(tenant, world.provider, connection, user, world.application, world.count)
    named: dict[str, Any] = {"iss": "https://idp.example.test"}
    signing = RSAKey.import_key(key(), {"kid": "any"})
    assert told(saml.demand(saml.token(**named), sub="ada", **named)) == UNAUTHORIZED
    assert saml.demand(saml.token(by=signing, header={"kid": "any"}, **named), sub="ada", **named).status == 204
    assert not Session.objects.of(tenant.pk).filter(user=user).exists()


def test_an_unavailable_provider_causes_a_temporary_error(world: World) -> None:
    world.provider.answers["/jwks"] = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"
    assert world.demand(world.token()).json()["error"] == "temporarily_unavailable"


def test_discovery_names_the_endpoint(world: World) -> None:
    document = get(world.tenant, "/.well-known/openid-configuration").json()
    assert document["global_token_revocation_endpoint"].endswith(f"{PATH}/{{connectionName}}")
    assert document["global_token_revocation_endpoint_auth_methods_supported"] == [TYPE]
    assert f"{PATH}/<str:name>" in HOT_ENDPOINTS
