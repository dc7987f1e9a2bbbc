"""A test server that behaves like one of the known social providers.

Tables contain the required parameters and the responses of each provider.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.test import Client as Browser
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from authapi.upstream.social.known_providers import KNOWN, TENANT_ID
from identity.models import Tenant
from identity.services.connections import create_connection
from tests.factories.provider import CLIENT_ID, SECRET, Login, Provider
from tests.factories.scim import MisbehavingServer, Received, misbehaving_server, reply
from tests.factories.sign_in import web_client

ACCESS_TOKEN = "access-token-of-the-provider"
CODE = "a-code"
APPLE_KEY = ECKey.generate_key("P-256", private=True)
TEAM_ID, KEY_ID = "TEAM123456", "KEY1234567"
DIRECTORY = "9188040d-6c67-4c5b-b112-36a304b66dad"
PICTURE = "https://pictures.example.test/ada.png"
EMAIL = "ada@people.example.test"

# Options of a valid connection.
OPTIONS: Mapping[str, dict[str, Any]] = {
    **{strategy: {"client_id": CLIENT_ID, "client_secret": SECRET} for strategy in KNOWN},
    "apple": {"client_id": CLIENT_ID, "team_id": TEAM_ID, "kid": KEY_ID, "app_secret": APPLE_KEY.as_pem(private=True).decode()},
    "waad": {"client_id": CLIENT_ID, "client_secret": SECRET, "tenant_domain": DIRECTORY},
}
# Claims of the test user Ada, by strategy, and by the document with the claims: the ID token or the response of an endpoint.
ADA: Mapping[str, dict[str, Any]] = {
    "google-oauth2": {
        "id_token": {"sub": "1122", "email": EMAIL, "email_verified": True, "name": "Ada Lovelace", "hd": "people.example.test"}
    },
    "github": {
        "user_endpoint": {"id": 583231, "login": "ada", "name": "Ada Lovelace", "avatar_url": PICTURE, "email": "shown@example.test"},
        "emails_endpoint": [
            {"email": "old@example.test", "primary": False, "verified": True, "visibility": None},
            {"email": EMAIL, "primary": True, "verified": True, "visibility": "private"},
        ],
    },
    "windowslive": {"id_token": {"sub": "AAAA-pairwise", "tid": DIRECTORY, "oid": "o", "email": EMAIL, "name": "Ada Lovelace"}},
    "waad": {"id_token": {"sub": "AAAA-pairwise", "tid": DIRECTORY, "oid": "o", "email": EMAIL, "name": "Ada Lovelace"}},
    "apple": {
        "id_token": {"sub": "001234.ab.0123", "email": "x7@privaterelay.appleid.com", "email_verified": "true", "is_private_email": "true"}
    },
    "facebook": {
        "me_endpoint": {
            "id": "10158",
            "name": "Ada Lovelace",
            "first_name": "Ada",
            "last_name": "Lovelace",
            "email": EMAIL,
            "picture": {"data": {"url": PICTURE, "is_silhouette": False}},
        }
    },
    "linkedin": {"id_token": {"sub": "782bbtaQ", "email": EMAIL, "email_verified": True, "name": "Ada Lovelace", "nonce": None}},
}
# Names of the checks (see CHECKS) that a request must pass, by strategy and endpoint. If a check fails, the server returns an error.
INSISTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "google-oauth2": {"token_endpoint": ("basic", "verifier")},
    "github": {
        "token_endpoint": ("secret_in_form", "verifier", "accepts_json"),
        "user_endpoint": ("bearer", "user_agent"),
        "emails_endpoint": ("bearer", "user_agent"),
        "token_check_endpoint": ("basic", "token_in_json"),
    },
    "windowslive": {"token_endpoint": ("secret_in_form", "verifier")},
    "waad": {"token_endpoint": ("secret_in_form", "verifier")},
    "apple": {"token_endpoint": ("signed_secret", "no_verifier")},
    "facebook": {
        "token_endpoint": ("secret_in_form", "no_verifier"),
        "me_endpoint": ("bearer", "secret_proof", "names_fields"),
        "debug_token_endpoint": ("app_token",),
    },
    "linkedin": {
        "token_endpoint": ("secret_in_form", "no_verifier"),
        "userinfo_endpoint": ("bearer",),
        "introspection_endpoint": ("secret_in_form",),
    },
}


def form_of(request: Received) -> dict[str, str]:
    return dict(parse_qsl(request.body.decode(), keep_blank_values=True))


def query_of(request: Received) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(request.target).query))


@dataclass
class SocialProvider(Provider):
    """One of the providers in `KNOWN`, served on a free port."""

    strategy: str = "github"
    # Parameters of the last authorization request.
    asked: dict[str, str] = field(default_factory=dict)
    ada: dict[str, Any] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    @property
    def issuer(self) -> str:
        return self.addresses.get("issuer", "").replace(TENANT_ID, DIRECTORY)

    @property
    def addresses(self) -> dict[str, str]:
        """Every endpoint of the provider, with the host replaced by this server."""
        row = KNOWN[self.strategy]
        named = {**row.addresses, **({"issuer": row.issuer} if row.issuer else {})}
        return {name: self.base + urlsplit(address).path for name, address in named.items()}

    def role_of(self, path: str) -> str:
        """Return the name of the endpoint with this path, or an empty text."""
        for name, address in self.addresses.items():
            pattern = re.sub(r"\\\{[a-z_]+\\\}", "[^/]+", re.escape(urlsplit(address).path))
            if name != "issuer" and re.fullmatch(pattern, path):
                return name
        return ""

    def answer(self, request: Received) -> bytes:
        role = self.role_of(request.path)
        for named in INSISTS[self.strategy].get(role, ()):
            if not CHECKS[named](self, request):
                self.refused.append(f"{role}: {named}")
                return reply(400, {"error": "invalid_request"})
        if role in self.answers:
            return self.answers[role]
        return self._tokens(request) if role == "token_endpoint" else self._document(role)

    def _document(self, role: str = "") -> Any:
        documents = {
            "jwks_uri": {"keys": [{**key.as_dict(private=False), **self.key_members} for key in self.published]},
            "discovery_url": {"issuer": self.issuer, "jwks_uri": f"{self.base}/{DIRECTORY}/discovery/v2.0/keys"},
            "userinfo_endpoint": {**self.ada.get("id_token", {}), **self.userinfo},
            **self.ada,
        }
        return reply(200, documents[role]) if role in documents else reply(404, {"message": "Not Found"})

    @property
    def key_members(self) -> dict[str, Any]:
        return {"issuer": self.addresses["issuer"]} if self.strategy in ("windowslive", "waad") else {}

    def id_token(self) -> str:
        now = int(time.time())
        good = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": self.nonce}
        claims = {**good, **self.ada["id_token"], **self.claims, **self.changes}
        named = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, named, self.key, algorithms=["RS256"])

    def _tokens(self, request: Received) -> bytes:
        form = form_of(request)
        if form.get("code") != CODE or form.get("redirect_uri") != self.asked.get("redirect_uri"):
            # GitHub reports this error with status 200.
            return reply(200 if self.strategy == "github" else 400, {"error": "bad_verification_code", "error_description": "expired"})
        more = {"id_token": self.id_token()} if "id_token" in self.ada else {}
        return reply(200, {"access_token": ACCESS_TOKEN, "token_type": "bearer", "expires_in": 3600, **more})


def _basic(provider: SocialProvider, request: Received) -> bool:
    expected = base64.b64encode(f"{CLIENT_ID}:{SECRET}".encode()).decode()
    return request.headers.get("authorization") == f"Basic {expected}" and "client_secret" not in form_of(request)


def _secret_in_form(provider: SocialProvider, request: Received) -> bool:
    form = form_of(request)
    return "authorization" not in request.headers and (form.get("client_id"), form.get("client_secret")) == (CLIENT_ID, SECRET)


def _verifier(provider: SocialProvider, request: Received) -> bool:
    challenge = hashlib.sha256(form_of(request).get("code_verifier", "").encode()).digest()
    return base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() == provider.asked.get("code_challenge")


def _no_verifier(provider: SocialProvider, request: Received) -> bool:
    return "code_verifier" not in form_of(request) and "code_challenge" not in provider.asked


def _signed_secret(provider: SocialProvider, request: Received) -> bool:
    """Check a client secret as Apple does: its key, team, client, audience, and a lifetime of at most six months."""
    try:
        token = jwt.decode(form_of(request).get("client_secret", ""), APPLE_KEY, algorithms=["ES256"])
    except (JoseError, ValueError):
        return False
    now = time.time()
    is_in_time = token.claims["iat"] <= now < token.claims["exp"] <= now + 15_777_000
    named = {name: token.claims.get(name) for name in ("iss", "sub", "aud")}
    return is_in_time and token.header["kid"] == KEY_ID and named == {"iss": TEAM_ID, "sub": CLIENT_ID, "aud": provider.issuer}


def _secret_proof(provider: SocialProvider, request: Received) -> bool:
    expected = hmac.new(SECRET.encode(), ACCESS_TOKEN.encode(), hashlib.sha256).hexdigest()
    return query_of(request).get("appsecret_proof") == expected


CHECKS: Mapping[str, Callable[[SocialProvider, Received], bool]] = {
    "basic": _basic,
    "secret_in_form": _secret_in_form,
    "verifier": _verifier,
    "no_verifier": _no_verifier,
    "signed_secret": _signed_secret,
    "secret_proof": _secret_proof,
    # Without this header, GitHub returns a form-encoded body.
    "accepts_json": lambda _, request: request.headers.get("accept") == "application/json",
    "bearer": lambda _, request: request.headers.get("authorization") == f"Bearer {ACCESS_TOKEN}",
    "user_agent": lambda _, request: bool(request.headers.get("user-agent")),
    "names_fields": lambda _, request: "email" in query_of(request).get("fields", "").split(","),
    "app_token": lambda _, request: request.headers.get("authorization") == f"Bearer {CLIENT_ID}|{SECRET}",
    "token_in_json": lambda _, request: bool(json.loads(request.body).get("access_token")),
}


@contextmanager
def social_provider(strategy: str) -> Iterator[SocialProvider]:
    """Serve one of the providers in `KNOWN` on a free port."""
    made: list[SocialProvider] = []
    with misbehaving_server(lambda request: made[0].answer(request)) as server:
        made.append(_provider(server, strategy))
        yield made[0]


def _provider(server: MisbehavingServer, strategy: str) -> SocialProvider:
    return SocialProvider(server, strategy=strategy, ada=json.loads(json.dumps(ADA[strategy])))


@dataclass
class SocialLogin(Login):
    """A browser that logs in to a client through one of these providers."""

    provider: SocialProvider

    def leave(self, **parameters: str) -> dict[str, str]:
        sent = super().leave(**parameters)
        self.provider.asked = sent
        return sent

    def come_back(self, sent: dict[str, str], *, method: str = "", **changes: str | None) -> Any:
        """Redirect the browser back as the provider does, and follow the redirect that answers a posted form."""
        is_form = sent.get("response_mode") == "form_post"
        answer = super().come_back(sent, method=method or ("POST" if is_form else "GET"), **changes)
        if is_form and answer.status_code == 303 and answer["Location"].startswith("/login/callback?"):
            return self.browser.get(answer["Location"])
        return answer


def social_login(tenant: Tenant, provider: SocialProvider, *, name: str = "corp", **options: Any) -> SocialLogin:
    """Create a client whose only connection uses this provider."""
    client, _ = web_client(tenant)
    connection = create_connection(
        tenant_id=tenant.pk,
        name=name,
        strategy=provider.strategy,
        enabled_clients=[client.client_id],
        options={**OPTIONS[provider.strategy], **options},
    )
    return SocialLogin(tenant, client, connection, provider, Browser(headers={"host": f"{tenant.pk}.example.test"}))


def form_body(**members: str) -> bytes:
    """Return a form-encoded response, as GitHub sends to clients that do not accept JSON."""
    return reply(200, raw=urlencode(members).encode())
