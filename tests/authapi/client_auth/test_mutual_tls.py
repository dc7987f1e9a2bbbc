"""Mutual TLS through a TLS proxy (the edge): trusted headers, accepted certificates, and refused combinations of methods."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.x509.oid import NameOID

from authapi.edge import mtls
from authapi.models import ClientCredential
from authapi.services.api_resources import ensure_management_api
from authapi.services.client_credentials import NewCredential, create_client_with_credentials
from authapi.services.client_grants import create_client_grant
from authapi.services.edge_keys import remove_edge_key
from authapi.token_request import TokenRequest
from authapi.views.token import token
from identity.models import CustomDomain, Tenant
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import FORM, Received, ask_token, send
from tests.authapi.certificates import SUBJECT, SUBJECT_LINES, certificate, edge_key, forwarded
from tests.authapi.token_forms import form_of
from tests.factories.authapi import Registered, granted_client, host_of

BY_SUBJECT = NewCredential(type=ClientCredential.Type.CERT_SUBJECT_DN, subject_dn=SUBJECT_LINES)


def by_certificate(pem: str) -> NewCredential:
    return NewCredential(type=ClientCredential.Type.X509_CERT, pem=pem)


def client_with(tenant: Tenant, method: str, *credentials: NewCredential) -> Registered:
    client = create_client_with_credentials(tenant_id=tenant.pk, name="Edge", methods={method: list(credentials)})
    resource = ensure_management_api(tenant.pk)
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=resource, scopes=["read:events"])
    return Registered(client, "")


def ask(tenant: Tenant, registered: Registered, headers: Mapping[str, str], *, host: str | None = None) -> Received:
    return ask_token(tenant, form_of(tenant, registered, client_secret=None), headers=headers, host=host)


def test_a_certificate_with_the_registered_subject_authenticates(tenant: Tenant) -> None:
    registered, key = client_with(tenant, "tls_client_auth", BY_SUBJECT), edge_key(tenant)
    assert ask(tenant, registered, forwarded(key, certificate())).status == 200
    assert ask(tenant, registered, forwarded(key, certificate("another"))).status == 200


@pytest.mark.parametrize("key", ["", "wrong", None])
def test_a_certificate_header_without_the_key_of_the_edge_is_ignored(tenant: Tenant, key: str | None) -> None:
    registered, _ = client_with(tenant, "tls_client_auth", BY_SUBJECT), edge_key(tenant)
    headers = forwarded(key or "", certificate())
    if key is None:
        del headers[mtls.KEY_HEADER]
    assert ask(tenant, registered, headers).status == 401


def test_a_domain_without_a_key_trusts_no_certificate_header(tenant: Tenant) -> None:
    registered = client_with(tenant, "tls_client_auth", BY_SUBJECT)
    assert ask(tenant, registered, forwarded("", certificate())).status == 401
    key = edge_key(tenant)
    domain = CustomDomain.objects.of(tenant.pk).get()
    remove_edge_key(tenant_id=tenant.pk, domain_id=domain.pk)
    assert ask(tenant, registered, forwarded(key, certificate())).status == 401


def test_the_key_of_another_tenant_is_not_accepted(tenant: Tenant) -> None:
    name = f"t-{secrets.token_hex(6)}"
    other = create_tenant(tenant_id=name, name=name, host=f"{name}.example.test")
    registered, foreign = client_with(tenant, "tls_client_auth", BY_SUBJECT), edge_key(other)
    edge_key(tenant)
    assert ask(tenant, registered, forwarded(foreign, certificate())).status == 401


@pytest.mark.parametrize("repeated", mtls.HEADERS)
def test_a_repeated_header_of_the_edge_is_ignored(tenant: Tenant, repeated: str) -> None:
    registered, key = client_with(tenant, "tls_client_auth", BY_SUBJECT), edge_key(tenant)
    headers = {"Content-Type": FORM, **forwarded(key, certificate()), repeated.upper() + " ": ""}
    fields = form_of(tenant, registered, client_secret=None)
    body = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
    pairs = [(name.strip(), value or headers[repeated]) for name, value in headers.items()]
    received = send(_repeating(token, pairs), "POST", host=f"{tenant.pk}.example.test", headers={}, chunks=(body,))
    assert received.status == 401


def test_certificate_headers_without_the_key_of_the_edge_are_removed(tenant: Tenant) -> None:
    edge_key(tenant)
    headers = {"accept": "*/*", **forwarded("wrong", certificate())}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert mtls.without_untrusted(headers, pairs, host_of(tenant)) == {"accept": "*/*"}


def test_headers_with_a_wrong_key_are_untrusted_even_if_they_were_not_removed(tenant: Tenant) -> None:
    edge_key(tenant)
    request = TokenRequest(host=host_of(tenant), address="192.0.2.1", headers=forwarded("wrong", certificate()), form={})
    assert mtls.certificate_of(request) is None


@pytest.mark.parametrize(
    "subject",
    [
        SUBJECT[::-1],
        SUBJECT[:-1],
        (*SUBJECT, (NameOID.LOCALITY_NAME, "Vienna")),
        (*SUBJECT[:-1], (NameOID.COMMON_NAME, "CLIENT.example.test")),
        (*SUBJECT[:-1], (NameOID.COMMON_NAME, "client.example.test\nOU=Payments")),
    ],
)
def test_a_certificate_with_another_subject_is_refused(tenant: Tenant, subject: Any) -> None:
    registered, key = client_with(tenant, "tls_client_auth", BY_SUBJECT), edge_key(tenant)
    assert ask(tenant, registered, forwarded(key, certificate(subject=subject))).status == 401


@pytest.mark.parametrize("verified", ["FAILED", "FAILED:unable to verify", "NONE", "", "success", "SUCCESSFUL"])
def test_a_subject_is_accepted_only_if_the_edge_has_verified_the_issuer(tenant: Tenant, verified: str) -> None:
    # An attacker can create a certificate with any subject.
    registered, key = client_with(tenant, "tls_client_auth", BY_SUBJECT), edge_key(tenant)
    assert ask(tenant, registered, forwarded(key, certificate(), verified)).status == 401


def test_a_self_signed_certificate_authenticates_by_its_thumbprint(tenant: Tenant) -> None:
    pem = certificate()
    registered, key = client_with(tenant, "self_signed_tls_client_auth", by_certificate(pem)), edge_key(tenant)
    for verified in ("FAILED", "FAILED:self-signed certificate"):
        assert ask(tenant, registered, forwarded(key, pem, verified)).status == 200
    assert ask(tenant, registered, forwarded(key, pem, "SUCCESS")).status == 401
    assert ask(tenant, registered, forwarded(key, certificate(), "FAILED")).status == 401


def test_both_certificates_are_accepted_during_a_replacement(tenant: Tenant) -> None:
    old, new = certificate(), certificate("another")
    registered = client_with(tenant, "self_signed_tls_client_auth", by_certificate(old), by_certificate(new))
    key = edge_key(tenant)
    assert [ask(tenant, registered, forwarded(key, pem, "FAILED")).status for pem in (old, new)] == [200, 200]


@pytest.mark.parametrize("shift", [timedelta(days=-1), timedelta(days=1)])
def test_expired_certificates_and_certificates_that_are_not_yet_valid_are_refused(tenant: Tenant, shift: timedelta) -> None:
    registered, key = client_with(tenant, "tls_client_auth", BY_SUBJECT), edge_key(tenant)
    now = datetime.now(UTC)
    begins, ends = (now + shift, now + 2 * shift) if shift > timedelta(0) else (now + 2 * shift, now + shift)
    received = ask(tenant, registered, forwarded(key, certificate(begins=begins, ends=ends)))
    assert (received.status, received.json()["error"]) == (401, "invalid_client")
    assert "expired" in received.json()["error_description"]


@pytest.mark.parametrize("sent", ["x", "%FF", "-----BEGIN CERTIFICATE-----%0AAAAA%0A-----END CERTIFICATE-----", "p" * 4097])
def test_an_unreadable_certificate_is_an_invalid_request(tenant: Tenant, sent: str) -> None:
    registered, key = client_with(tenant, "tls_client_auth", BY_SUBJECT), edge_key(tenant)
    headers = forwarded(key, "") | {mtls.CERTIFICATE_HEADER: sent}
    received = ask(tenant, registered, headers)
    assert (received.status, received.json()["error"]) == (400, "invalid_request")


def test_two_certificates_in_one_header_are_an_invalid_request(tenant: Tenant) -> None:
    registered, key = client_with(tenant, "tls_client_auth", BY_SUBJECT), edge_key(tenant)
    assert ask(tenant, registered, forwarded(key, certificate() + certificate("another"))).status == 400


def test_a_certificate_is_not_accepted_in_place_of_a_secret(tenant: Tenant) -> None:
    registered, key = granted_client(tenant), edge_key(tenant)
    assert ask(tenant, registered, forwarded(key, certificate())).status == 401
    assert ask_token(tenant, form_of(tenant, registered), headers=forwarded(key, certificate())).status == 200


def test_a_secret_is_not_accepted_in_place_of_a_certificate(tenant: Tenant) -> None:
    registered, key = client_with(tenant, "tls_client_auth", BY_SUBJECT), edge_key(tenant)
    assert ask_token(tenant, form_of(tenant, registered, client_secret="x"), headers=forwarded(key, certificate())).status == 401


def test_the_alias_host_of_the_edge_answers_like_the_domain_itself(tenant: Tenant) -> None:
    registered, key = client_with(tenant, "tls_client_auth", BY_SUBJECT), edge_key(tenant)
    assert ask(tenant, registered, forwarded(key, certificate()), host=f"mtls.{tenant.pk}.example.test").status == 200


def test_discovery_contains_no_alias_host_if_there_is_no_edge(tenant: Tenant) -> None:
    assert mtls.discovery_members(host_of(tenant), {}) == {}


def test_a_certificate_authorizes_only_tokens_that_are_bound_to_it(tenant: Tenant) -> None:
    key = edge_key(tenant)
    first, second = (
        mtls.certificate_of(TokenRequest(host=host_of(tenant), address="", headers=forwarded(key, pem), form={}))
        for pem in (certificate(), certificate("another"))
    )
    assert first is not None
    assert second is not None
    assert first.confirms(first.confirmation)
    assert not second.confirms(first.confirmation)
    assert not first.confirms({})


def _repeating(application: Any, pairs: list[tuple[str, str]]) -> Any:
    """Send exactly these header lines, including repeated ones."""

    async def repeating(scope: Any, receive: Any, send_to: Any) -> None:
        own = [(name.lower().encode(), value.encode()) for name, value in pairs]
        await application({**scope, "headers": [scope["headers"][0], *own]}, receive, send_to)

    return repeating
