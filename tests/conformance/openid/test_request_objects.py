"""Request objects by value and by reference. Signed objects are accepted, unsigned objects are refused, and URIs are never fetched."""

from __future__ import annotations

import base64
import json
import secrets
import time
from typing import Any

from joserfc import jwt
from joserfc.jwk import RSAKey

from authapi.models import ClientCredential
from authapi.services.client_credentials import NewCredential, create_credential
from authapi.services.clients import update_client
from tests.authapi.assertions import private_key, public_pem
from tests.authapi.browser import Page
from tests.authapi.memory import forget_all
from tests.conformance.openid.provider import Provider
from tests.conformance.openid.relying_party import RelyingParty, new_party

ELSEWHERE = "https://rp.example.test/request.jwt"


def unsigned(claims: dict[str, Any]) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, claims)]
    return ".".join((*parts, ""))


def with_key(party: RelyingParty) -> RelyingParty:
    """Let the client sign requests with the key `first`."""
    tenant_id, client_id = party.provider.tenant.pk, party.client.client_id
    new = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public_pem("first"), algorithm="RS256")
    credential = create_credential(tenant_id=tenant_id, client_id=client_id, new=new)
    signed = {"required": False, "credentials": [{"id": credential.pk}]}
    update_client(tenant_id=tenant_id, client_id=client_id, changes={"settings": {"signed_request_object": signed}})
    forget_all()
    return party


def signed(party: RelyingParty, parameters: dict[str, Any], *, algorithm: str = "RS256") -> str:
    """Return a request object with these parameters, signed by the client."""
    claims = {"iss": party.client.client_id, "aud": party.provider.issuer, "exp": int(time.time()) + 120, "jti": secrets.token_urlsafe(8)}
    return jwt.encode({"alg": algorithm}, claims | parameters, RSAKey.import_key(private_key("first")), algorithms=[algorithm])


def sent_with(party: RelyingParty, **outside: Any) -> Page:
    """Send a request with the parameters `outside`, and with the parameters that Core 1.0, 6.1 requires outside of a request object."""
    needed = {name: party.sent[name] for name in ("client_id", "response_type", "scope")}
    return party.browser.get("/authorize", {**needed, **outside})


def test_oidcc_request_uri_unsigned_supported_correctly_or_rejected_as_unsupported(party: RelyingParty, provider: Provider) -> None:
    assert provider.metadata["request_uri_parameter_supported"] is False
    assert party.error(party.authorize(request_uri=ELSEWHERE)) == "request_uri_not_supported"


def test_oidcc_request_uri_unsigned(provider: Provider) -> None:
    party = new_party(provider)
    assert party.error(party.authorize(request_uri=f"{ELSEWHERE}#unsigned")) == "request_uri_not_supported"


def test_oidcc_request_uri_signed_rs256(provider: Provider) -> None:
    """The service fetches no request object, even if its signature is valid."""
    party = with_key(new_party(provider))
    assert party.error(party.authorize(request_uri=f"{ELSEWHERE}#signed")) == "request_uri_not_supported"


def test_oidcc_unsigned_request_object_supported_correctly_or_rejected_as_unsupported(party: RelyingParty, provider: Provider) -> None:
    assert "none" not in provider.metadata["request_object_signing_alg_values_supported"]
    party.sent = party.request()
    page = sent_with(party, request=unsigned(party.sent), redirect_uri=party.sent["redirect_uri"], state=party.sent["state"])
    assert (page.status, "invalid_request_object" in page.text) == (400, True)


def test_oidcc_ensure_request_object_with_redirect_uri(party: RelyingParty) -> None:
    with_key(party)
    party.sent = party.request()
    page = sent_with(party, request=signed(party, party.sent), redirect_uri="https://rp.example.test/elsewhere", state="outside")
    assert party.complete(party.log_in(page)).claims["sub"]
