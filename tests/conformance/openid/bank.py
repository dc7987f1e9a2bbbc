"""A FAPI 2.0 client. It pushes its requests, authenticates without a secret, and binds its tokens to a key or a certificate."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.x509.oid import NameOID
from joserfc import jwt
from joserfc.jwk import RSAKey

from authapi.client_auth.assertion import ASSERTION_TYPE
from authapi.models import Client, ClientCredential
from authapi.services.client_credentials import NewCredential, create_client_with_credentials, create_credential
from authapi.services.clients import update_client
from tests.authapi.assertions import private_key, public_pem
from tests.authapi.browser import Browser, Page
from tests.authapi.certificates import certificate, forwarded
from tests.authapi.memory import forget_all
from tests.authapi.proving import Prover, settle_memory
from tests.conformance.openid.plans import BankVariant
from tests.conformance.openid.provider import EMAIL, Provider, error_of
from tests.conformance.openid.relying_party import CALLBACK, good_tokens, half_hash
from tests.factories.logins import challenge_of
from tests.factories.sign_in import PASSWORD

ALGORITHM = "PS256"
_LEVELS = {"private_key_jwt": "fapi2_sp_pkj_mtls", "tls_client_auth": "fapi2_sp_mtls_mtls"}


@dataclass
class Bank:
    """One client in one browser."""

    provider: Provider
    client: Client
    variant: BankVariant
    browser: Browser
    # The name of the client's private key. The client's certificate uses the same key.
    key: str = "first"
    prover: Prover = field(default_factory=Prover)
    verifier: str = ""
    sent: dict[str, Any] = field(default_factory=dict)

    @property
    def client_id(self) -> str:
        return self.client.client_id

    def address(self, endpoint: str) -> str:
        return str(self.provider.metadata[endpoint])

    # --- Authentication and proofs ------------------------------------------------------------------------------------------------

    def assertion(self, *, algorithm: str = ALGORITHM, key: str = "", **changes: Any) -> str:
        """Return a valid client assertion. `changes` overrides its claims; None removes a claim."""
        now = int(time.time())
        good = {"iss": self.client_id, "sub": self.client_id, "aud": self.provider.issuer, "jti": secrets.token_urlsafe(16)}
        claims = good | {"iat": now, "nbf": now, "exp": now + 120} | changes
        claims = {name: value for name, value in claims.items() if value is not None}
        signer = RSAKey.import_key(private_key(key or self.key))
        return jwt.encode({"alg": algorithm}, claims, signer, algorithms=[algorithm])

    def proof(self) -> dict[str, str]:
        """Return the form fields that authenticate the client."""
        if self.variant.authentication != "private_key_jwt":
            return {"client_id": self.client_id}
        return {"client_id": self.client_id, "client_assertion_type": ASSERTION_TYPE, "client_assertion": self.assertion()}

    def certificate(self) -> dict[str, str]:
        """Return the headers of a TLS proxy that verified the client's certificate."""
        return forwarded(self.provider.edge, _certificate(self.key, subject=_subject(self.key)))

    def connection(self, method: str, address: str, *, token: str = "", prover: Prover | None = None, **claims: Any) -> dict[str, str]:
        """Return the headers that every request of this client has: a certificate, a proof of the key, or both."""
        shows_certificate = self.variant.authentication != "private_key_jwt" or self.variant.binding == "mtls"
        headers = self.certificate() if shows_certificate else {}
        if self.variant.binding == "dpop":
            headers |= {"DPoP": (prover or self.prover).proof(method, address, token=token, **claims)}
        return headers

    # --- Pushing and the authorization endpoint ---------------------------------------------------------------------------------

    def request(self, **changes: Any) -> dict[str, Any]:
        """Return the parameters of a valid request. `changes` overrides them; None removes a parameter."""
        self.verifier = secrets.token_urlsafe(48)
        good = {
            "response_type": "code",
            "redirect_uri": CALLBACK,
            "scope": "openid",
            "state": secrets.token_urlsafe(8),
            "nonce": secrets.token_urlsafe(8),
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
        }
        self.sent = {name: value for name, value in (good | changes).items() if value is not None}
        return self.sent

    def request_object(
        self, *, algorithm: str = ALGORITHM, key: str = "", parameters: Mapping[str, Any] | None = None, **changes: Any
    ) -> str:
        """Return a signed request with these parameters. `changes` overrides its claims; None removes a claim."""
        now = int(time.time())
        good = {"iss": self.client_id, "aud": self.provider.issuer, "client_id": self.client_id, "nbf": now, "exp": now + 120}
        claims = {**good, **(self.request() if parameters is None else parameters), **changes}
        claims = {name: value for name, value in claims.items() if value is not None}
        sent = {"alg": algorithm, "typ": "oauth-authz-req+jwt"}
        return jwt.encode(sent, claims, RSAKey.import_key(private_key(key or self.key)), algorithms=[algorithm])

    def push(self, *, beside: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None, **changes: Any) -> Page:
        """Push a request.

        It is signed if the client signs its requests. `beside` replaces form fields, and `headers` replaces headers of the connection.
        """
        parameters = self.request(**changes)
        fields = {"request": self.request_object(parameters=parameters)} if self.variant.is_signed else parameters
        return self.push_fields({**fields, **(beside or {})}, headers=headers)

    def push_fields(self, fields: Mapping[str, Any], *, headers: Mapping[str, str] | None = None) -> Page:
        address = self.address("pushed_authorization_request_endpoint")
        shown = self.connection("POST", address) if headers is None else headers
        return self.provider.post(address, {**self.proof(), **fields}, **shown)

    def handle(self, **changes: Any) -> str:
        """Push a valid request, and return its request URI."""
        return handle_of(self.push(**changes))

    def visit(self, request_uri: str, **beside: Any) -> Page:
        """Send the browser to the authorization endpoint with a pushed request."""
        sent = {"client_id": self.client_id, "request_uri": request_uri, **beside}
        return self.browser.get(urlsplit(self.address("authorization_endpoint")).path, sent)

    def log_in(self, page: Page) -> Page:
        """Log in if the page requires a login."""
        while page.status in (302, 303) and not page.location.startswith(CALLBACK):
            page = self.browser.follow(page)
        if page.status in (302, 303):
            return page
        assert page.status == 200, page.text
        return self.browser.submit(page, username=EMAIL, password=PASSWORD)

    def answer(self, page: Page) -> dict[str, str]:
        """Return the parameters that the page returns to the client. Their state and issuer must be those of the request (RFC 9207)."""
        assert page.status in (302, 303), page.text
        assert page.location.startswith(f"{CALLBACK}?"), page.location
        found = page.answer
        assert (found.get("state"), found["iss"]) == (self.sent.get("state"), self.provider.issuer)
        return found

    def code(self, **changes: Any) -> str:
        """Push, log in, and return the code."""
        answer = self.answer(self.log_in(self.visit(self.handle(**changes))))
        assert "id_token" not in answer
        assert "access_token" not in answer
        return answer["code"]

    # --- Tokens -------------------------------------------------------------------------------------------------------------------

    def token(self, fields: Mapping[str, Any], *, headers: Mapping[str, str] | None = None, **proof: Any) -> Page:
        """Call the token endpoint. `proof` changes the proof of the key, and `headers` replaces all headers of the connection."""
        address = self.address("token_endpoint")
        shown = self.connection("POST", address, **proof) if headers is None else headers
        page = self.provider.post(address, {**self.proof(), **fields}, **shown)
        if headers is not None or "nonce" in proof or "use_dpop_nonce" not in page.text:
            return page
        # Without Redis, every proof needs a nonce (RFC 9449, 8).
        shown = self.connection("POST", address, nonce=page.headers["dpop-nonce"], **proof)
        return self.provider.post(address, {**self.proof(), **fields}, **shown)

    def exchange(
        self, code: str, *, headers: Mapping[str, str] | None = None, proof: Mapping[str, Any] | None = None, **changes: Any
    ) -> Page:
        good = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": self.verifier}
        return self.token({**good, **changes}, headers=headers, **(proof or {}))

    def refresh(self, token: str, *, headers: Mapping[str, str] | None = None, **changes: Any) -> Page:
        return self.token({"grant_type": "refresh_token", "refresh_token": token, **changes}, headers=headers)

    def tokens(self, page: Page) -> dict[str, Any]:
        """Return the token response of the page, after a check of its members, of its token type and of its id token."""
        tokens = good_tokens(page)
        assert tokens["token_type"].lower() == ("dpop" if self.variant.binding == "dpop" else "bearer")
        if "id_token" in tokens:
            claims = self.verified(tokens["id_token"])
            assert claims.get("at_hash") in (None, half_hash(tokens["access_token"]))
        return tokens

    def logged_in(self, **changes: Any) -> dict[str, Any]:
        return self.tokens(self.exchange(self.code(**changes)))

    def verified(self, token: str) -> dict[str, Any]:
        claims: dict[str, Any] = dict(jwt.decode(token, self.provider.keys, algorithms=["PS256", "RS256"]).claims)
        assert (claims["iss"], claims["aud"], claims.get("nonce")) == (self.provider.issuer, self.client_id, self.sent.get("nonce"))
        assert claims["exp"] > time.time()
        return claims

    def resource(self, token: str, *, scheme: str = "", prover: Prover | None = None, headers: Mapping[str, str] | None = None) -> Page:
        """Use an access token at a protected resource of the provider."""
        address = self.address("userinfo_endpoint")
        shown = self.connection("GET", address, token=token, prover=prover) if headers is None else dict(headers)
        named = scheme or ("DPoP" if self.variant.binding == "dpop" else "Bearer")
        return self.provider.ask("GET", address, headers={**shown, "Authorization": f"{named} {token}"})

    def beside(self, **changes: Any) -> Bank:
        """Return the same client in another browser, with these changes, such as another key for proofs."""
        return replace(self, **{"browser": self.provider.browser(), **changes})


_certificate = cache(certificate)


def _subject(key: str) -> tuple[tuple[x509.ObjectIdentifier, str], ...]:
    return ((NameOID.ORGANIZATION_NAME, "Bank"), (NameOID.COMMON_NAME, f"{key}.example.test"))


def new_bank(provider: Provider, variant: BankVariant, *, key: str = "first", **settings: Any) -> Bank:
    """Register a client for a variant of FAPI 2.0."""
    settle_memory()
    if variant.authentication == "private_key_jwt":
        new = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public_pem(key), algorithm=ALGORITHM)
    else:
        new = NewCredential(type=ClientCredential.Type.CERT_SUBJECT_DN, subject_dn=f"O=Bank\nCN={key}.example.test")
    client = create_client_with_credentials(
        tenant_id=provider.tenant.pk,
        methods={variant.authentication: [new]},
        name="Bank",
        grant_types=("authorization_code", "refresh_token"),
        redirect_uris=CALLBACK,
        algorithm=ALGORITHM,
        settings={"compliance_level": _LEVELS[variant.authentication], **settings},
    )
    if variant.is_signed:
        client = _signing(client, key)
    provider.enable(client.client_id)
    return Bank(provider, client, variant, provider.browser(), key)


def _signing(client: Client, key: str) -> Client:
    """Let the client sign its requests, so that unsigned requests are refused."""
    known = ClientCredential.objects.of(client.tenant_id).filter(client=client, type=ClientCredential.Type.PUBLIC_KEY).first()
    new = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public_pem(key), algorithm=ALGORITHM)
    credential = known or create_credential(tenant_id=client.tenant_id, client_id=client.client_id, new=new)
    signed = {"required": True, "credentials": [{"id": credential.pk}]}
    changed = update_client(tenant_id=client.tenant_id, client_id=client.client_id, changes={"settings": {"signed_request_object": signed}})
    forget_all()
    return changed


def handle_of(page: Page) -> str:
    """Return the request URI of a pushed request (RFC 9126, 2.2)."""
    assert page.status == 201, page.text
    told = json.loads(page.body)
    assert type(told["expires_in"]) is int
    assert 0 < told["expires_in"] < 600
    assert told["request_uri"].startswith("urn:ietf:params:oauth:request_uri:")
    return str(told["request_uri"])


def refusal(page: Page) -> str:
    """Return the error of a refusal at an endpoint without pages, after a check of its status (RFC 6749, 5.2)."""
    status, error = error_of(page)
    assert status == (401 if error == "invalid_client" else 400), page.text
    return error
