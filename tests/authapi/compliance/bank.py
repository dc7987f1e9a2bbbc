"""A bank's client that follows every rule of a compliance level, and the requests that it sends."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from joserfc import jwt
from joserfc.jwk import RSAKey

from authapi.client_auth.assertion import ASSERTION_TYPE
from authapi.models import Client, ClientCredential
from authapi.services.client_credentials import NewCredential, create_client_with_credentials, create_credential
from authapi.services.clients import update_client
from identity.models import Tenant
from tests.authapi.asgi_client import Received, ask_token, post, read_profile
from tests.authapi.assertions import private_key, public_pem
from tests.authapi.browser import Browser, Page
from tests.authapi.certificates import SUBJECT_LINES, certificate, edge_key, forwarded
from tests.authapi.login.conftest import Login
from tests.authapi.memory import forget_all
from tests.factories.authapi import host_of
from tests.factories.logins import VERIFIER, challenge_of
from tests.factories.sign_in import CALLBACK, people, person

_KEY = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public_pem("first"), algorithm="PS256")
_SUBJECT = NewCredential(type=ClientCredential.Type.CERT_SUBJECT_DN, subject_dn=SUBJECT_LINES)


@dataclass
class Bank:
    """A client of a compliance level. It signs assertions with the key `first` and requests with the key `second`."""

    tenant: Tenant
    level: str
    client: Client
    login: Login
    edge: str
    certificate: str = field(default_factory=certificate)
    secret: str = ""

    @property
    def is_fapi_1(self) -> bool:
        return self.level.startswith("fapi1")

    @property
    def has_key(self) -> bool:
        return "pkj" in self.level

    @property
    def issuer(self) -> str:
        return host_of(self.tenant).issuer

    @property
    def tls(self) -> dict[str, str]:
        """Return the headers that the TLS proxy adds to a request that the bank sends with its certificate."""
        return forwarded(self.edge, self.certificate)

    def set(self, **columns: Any) -> None:
        """Change columns and settings of the client directly in the database, without the checks of the services.

        So only the endpoints can refuse a client that breaks a rule.
        """
        settings = columns.pop("settings", {})
        rows = Client.objects.of(self.tenant.pk).filter(pk=self.client.pk)
        rows.update(**columns, settings={**self.client.settings, **settings})
        self.client.refresh_from_db()
        forget_all()

    def use_secret(self) -> None:
        """Let the client authenticate with a secret, by changing the row directly."""
        self.secret = "s" * 40
        self.client.set_secret(self.secret)
        self.set(secret_digest=self.client.secret_digest, settings={"client_authentication_methods": None})

    def assertion(self, *, algorithm: str = "PS256", **changes: Any) -> str:
        now = int(time.time())
        claims = {
            "iss": self.client.client_id, "sub": self.client.client_id, "aud": self.issuer,
            "iat": now, "exp": now + 60, "jti": secrets.token_urlsafe(16),
        }  # fmt: skip
        return jwt.encode({"alg": algorithm}, claims | changes, RSAKey.import_key(private_key("first")), algorithms=[algorithm])

    def form(self, assertion: str = "", **fields: Any) -> dict[str, Any]:
        """Return the form fields of a request with the client's authentication, without fields that are None."""
        proof: dict[str, Any] = {}
        if self.secret:
            proof = {"client_secret": self.secret}
        elif self.has_key:
            proof = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion or self.assertion()}
        sent = {"client_id": self.client.client_id, **proof, **fields}
        return {name: value for name, value in sent.items() if value is not None}

    def request(self, **changes: Any) -> dict[str, Any]:
        """Return the parameters of a valid authorization request. `changes` overrides them; None removes a parameter."""
        good = {
            "response_type": "code id_token" if self.is_fapi_1 else "code",
            "redirect_uri": CALLBACK,
            "scope": "openid profile",
            "state": "the-state",
            "nonce": "the-nonce",
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
        }
        return {name: value for name, value in (good | changes).items() if value is not None}

    def request_object(self, parameters: dict[str, Any], *, key: str = "second", algorithm: str = "PS256", **changes: Any) -> str:
        now = int(time.time())
        client_id = self.client.client_id
        own = {"iss": client_id, "aud": self.issuer, "client_id": client_id, "nbf": now, "exp": now + 300, **changes}
        claims = {name: value for name, value in (parameters | own).items() if value is not None}
        header = {"alg": algorithm, "typ": "oauth-authz-req+jwt"}
        return jwt.encode(header, claims, RSAKey.import_key(private_key(key)), algorithms=[algorithm])

    def push(self, *, assertion: str = "", signed: dict[str, Any] | None = None, is_signed: bool | None = None, **changes: Any) -> Received:
        """Push a request. Without `is_signed`, the level decides whether the request is signed. `signed` overrides claims of the request
        object."""
        sent = self.request(**changes)
        if self.is_fapi_1 if is_signed is None else is_signed:
            sent = {"request": self.request_object(sent, **(signed or {}))}
        return post("/oauth/par", self.tenant, self.form(assertion, **sent), headers=self.tls)

    def authorize(self, **parameters: Any) -> Page:
        return self.login.browser.get("/authorize", {"client_id": self.client.client_id, **parameters})

    def log_in(self, **changes: Any) -> Page:
        """Push a request, and log the user in with this request."""
        pushed = self.push(**changes)
        assert pushed.status == 201, pushed.body
        page = self.authorize(request_uri=pushed.json()["request_uri"])
        return page if page.location.startswith(CALLBACK) else self.login.log_in(page)

    def exchange(self, code: str, *, has_certificate: bool = True, headers: dict[str, str] | None = None, **fields: Any) -> Received:
        sent = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER, **fields}
        return ask_token(self.tenant, self.form(**sent), headers={**(self.tls if has_certificate else {}), **(headers or {})})

    def tokens(self, **changes: Any) -> dict[str, Any]:
        answer = self.exchange(self.log_in(**changes).answer["code"])
        assert answer.status == 200, answer.body
        members: dict[str, Any] = answer.json()
        return members

    def profile(self, token: str | None, **sent: Any) -> Received:
        return read_profile(self.tenant, token, **{**sent, "headers": {**self.tls, **sent.get("headers", {})}})


def bank_of(tenant: Tenant, level: str) -> Bank:
    """Register a bank whose client follows every rule of the level, and one user who can log in there."""
    methods = {"private_key_jwt": [_KEY]} if "pkj" in level else {"tls_client_auth": [_SUBJECT]}
    is_fapi_1 = level.startswith("fapi1")
    grants = ["authorization_code", "refresh_token", "client_credentials", *(["implicit"] if is_fapi_1 else [])]
    client = create_client_with_credentials(
        tenant_id=tenant.pk, name="Bank", methods=methods, grant_types=grants, redirect_uris=CALLBACK, algorithm="PS256"
    )
    settings: dict[str, Any] = {"compliance_level": level}
    if is_fapi_1:
        settings["signed_request_object"] = {"credentials": [{"id": request_key(client).pk}]}
    client = update_client(tenant_id=tenant.pk, client_id=client.client_id, changes={"settings": settings})
    connection = people(tenant, client)
    edge = edge_key(tenant)
    forget_all()
    return Bank(tenant, level, client, Login(tenant, client, connection, person(connection), Browser(tenant)), edge)


def request_key(client: Client, *, key: str = "second", algorithm: str = "PS256") -> ClientCredential:
    new = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public_pem(key), algorithm=algorithm)
    return create_credential(tenant_id=client.tenant_id, client_id=client.client_id, new=new)


def told(answer: Received | Page) -> str:
    """Return the description of the error in an answer, or the empty string for a success."""
    if isinstance(answer, Page):
        return answer.answer.get("error_description", "") if answer.status in (302, 303) else answer.text
    return "" if answer.status < 300 else str(answer.json()["error_description"])
