"""Keys and certificates of clients over the management interface, and the authentication methods that use them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from authapi.models import Client
from identity.models import Tenant
from tests.authapi.asgi_client import ask_token
from tests.authapi.assertions import Signer, private_key, public_pem
from tests.authapi.certificates import SUBJECT_LINES, certificate
from tests.factories.authapi import Registered
from tests.management import Management

PUBLIC_KEY = {"credential_type": "public_key", "alg": "RS256"}


def pem_of(key: Any) -> str:
    encoded: bytes = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return encoded.decode()


def private_pem() -> str:
    kind = serialization.PrivateFormat.PKCS8
    return private_key().private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()


@pytest.fixture
def client_id(api: Management) -> str:
    return str(api.post("clients", {"name": "Keys"}).json["client_id"])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"credential_type": "public_key"},
        {**PUBLIC_KEY, "pem": "no key"},
        {**PUBLIC_KEY, "pem": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"},
        {**PUBLIC_KEY, "pem": "p" * 9000},
        {**PUBLIC_KEY, "alg": "HS256", "pem": public_pem()},
        {**PUBLIC_KEY, "alg": "RS512", "pem": public_pem()},
        {**PUBLIC_KEY, "pem": pem_of(ec.generate_private_key(ec.SECP256R1()))},
        {**PUBLIC_KEY, "pem": pem_of(rsa.generate_private_key(public_exponent=65537, key_size=1024))},  # noqa: S505
        {**PUBLIC_KEY, "pem": public_pem(), "unknown": 1},
        {**PUBLIC_KEY, "pem": public_pem(), "expires_at": "2020-01-01T00:00:00Z"},
        {**PUBLIC_KEY, "pem": public_pem(), "expires_at": "2099-01-01T00:00:00"},
        {**PUBLIC_KEY, "pem": public_pem(), "expires_at": "soon"},
        {"credential_type": "x509_cert", "pem": public_pem()},
        {"credential_type": "x509_cert", "pem": certificate(ends=datetime.now(UTC) - timedelta(hours=1))},
        {"credential_type": "cert_subject_dn"},
        {"credential_type": "cert_subject_dn", "subject_dn": "no name"},
        {"credential_type": "cert_subject_dn", "subject_dn": "CN=\nC=AT"},
        {"credential_type": "cert_subject_dn", "subject_dn": "NONSENSE=x"},
        {"credential_type": "cert_subject_dn", "subject_dn": "CN=a", "pem": certificate()},
        {"credential_type": "password", "pem": public_pem()},
    ],
)
def test_an_invalid_credential_is_refused(api: Management, client_id: str, body: dict[str, Any]) -> None:
    answer = api.post(f"clients/{client_id}/credentials", body)
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert api.get(f"clients/{client_id}/credentials").json == []


def test_a_private_key_is_refused_with_a_specific_message(api: Management, client_id: str) -> None:
    answer = api.post(f"clients/{client_id}/credentials", {**PUBLIC_KEY, "pem": private_pem()})
    assert answer.status == 400
    assert "This is a private key" in answer.json["message"]
    assert "BEGIN" not in answer.json["message"]


def test_a_credential_is_registered_read_and_deleted(api: Management, client_id: str) -> None:
    ends = "2099-01-01T00:00:00.000Z"
    path = f"clients/{client_id}/credentials"
    made = api.post(path, {**PUBLIC_KEY, "name": "laptop", "pem": public_pem(), "expires_at": ends})
    assert made.status == 201
    credential = made.json
    known = {"credential_type": "public_key", "alg": "RS256", "name": "laptop", "expires_at": ends}
    assert {name: credential[name] for name in known} == known
    assert len(credential["kid"]) == 43
    assert credential["id"].startswith("cred_")
    assert api.get(path).json == [credential]
    assert api.get(f"{path}/{credential['id']}").json == credential
    moved = api.patch(f"{path}/{credential['id']}", {"expires_at": None})
    assert (moved.status, moved.json["expires_at"]) == (200, None)
    assert api.patch(f"{path}/{credential['id']}", {"expires_at": "2020-01-01T00:00:00Z"}).status == 400
    assert [api.delete(f"{path}/{credential['id']}").status for _ in range(2)] == [204, 204]
    assert api.get(f"{path}/{credential['id']}").status == 404


def test_a_duplicate_key_and_an_eleventh_credential_are_refused_as_conflicts(api: Management, client_id: str) -> None:
    path = f"clients/{client_id}/credentials"
    assert [api.post(path, {**PUBLIC_KEY, "pem": public_pem()}).status for _ in range(2)] == [201, 409]
    more = [api.post(path, {"credential_type": "cert_subject_dn", "subject_dn": f"CN=host{number}"}).status for number in range(10)]
    assert more == [201] * 9 + [409]


def test_certificates_are_identified_by_thumbprint_and_subject(api: Management, client_id: str) -> None:
    path, pem = f"clients/{client_id}/credentials", certificate()
    known = api.post(path, {"credential_type": "x509_cert", "pem": pem, "parse_expiry_from_cert": True}).json
    assert len(known["thumbprint_sha256"]) == 43
    assert known["expires_at"] is not None
    by_certificate = api.post(path, {"credential_type": "cert_subject_dn", "pem": pem}).json
    assert by_certificate["subject_dn"] == SUBJECT_LINES
    assert api.post(path, {"credential_type": "cert_subject_dn", "subject_dn": SUBJECT_LINES}).status == 409


def test_a_client_created_with_keys_uses_them_and_has_no_secret(api: Management, tenant: Tenant) -> None:
    methods = {"private_key_jwt": {"credentials": [{**PUBLIC_KEY, "pem": public_pem()}]}}
    made = api.post("clients", {"name": "Keys", "app_type": "non_interactive", "client_authentication_methods": methods})
    assert made.status == 201
    client = made.json
    assert "client_secret" not in client
    assert "token_endpoint_auth_method" not in client
    (named,) = client["client_authentication_methods"]["private_key_jwt"]["credentials"]
    assert api.get(f"clients/{client['client_id']}/credentials/{named['id']}").status == 200
    assert api.post(f"clients/{client['client_id']}/rotate-secret").json["errorCode"] == "operation_not_supported"
    signer = Signer(tenant, Registered(Client.objects.of(tenant.pk).get(client_id=client["client_id"]), ""))
    # The client is authenticated, but has no grant for the interface.
    assert ask_token(tenant, signer.form(signer.assertion())).json()["error"] == "access_denied"
    assert "client-grant" in ask_token(tenant, signer.form(signer.assertion())).json()["error_description"]


def test_authentication_methods_can_name_only_credentials_of_their_own_type_and_client(api: Management, client_id: str) -> None:
    other = api.post("clients", {"name": "Other"}).json["client_id"]
    foreign = api.post(f"clients/{other}/credentials", {**PUBLIC_KEY, "pem": public_pem()}).json["id"]
    subject = api.post(f"clients/{client_id}/credentials", {"credential_type": "cert_subject_dn", "subject_dn": "CN=a"}).json["id"]
    key = api.post(f"clients/{client_id}/credentials", {**PUBLIC_KEY, "pem": public_pem()}).json["id"]
    for named in (foreign, subject, "cred_unknown"):
        methods = {"private_key_jwt": {"credentials": [{"id": named}]}}
        assert api.patch(f"clients/{client_id}", {"client_authentication_methods": methods}).status == 400
    methods = {"private_key_jwt": {"credentials": [{"id": key}]}}
    changed = api.patch(f"clients/{client_id}", {"client_authentication_methods": methods, "token_endpoint_auth_method": None})
    assert (changed.status, changed.json["client_authentication_methods"]) == (200, methods)
    back = api.patch(f"clients/{client_id}", {"client_authentication_methods": None})
    assert back.json["token_endpoint_auth_method"] == "client_secret_post"
    assert "client_authentication_methods" not in back.json


@pytest.mark.parametrize(
    "methods",
    [
        {},
        {"private_key_jwt": {"credentials": []}},
        {"private_key_jwt": {"credentials": [{"id": "cred_1"}, {"id": "cred_2"}, {"id": "cred_3"}]}},
        {"private_key_jwt": {"credentials": [{"id": "cred_1"}]}, "tls_client_auth": {"credentials": [{"id": "cred_1"}]}},
        {"client_secret_jwt": {"credentials": [{"id": "cred_1"}]}},
        {"private_key_jwt": {"credentials": [{**PUBLIC_KEY, "pem": public_pem()}]}},
    ],
)
def test_malformed_authentication_methods_are_refused(api: Management, client_id: str, methods: dict[str, Any]) -> None:
    assert api.patch(f"clients/{client_id}", {"client_authentication_methods": methods}).status == 400


def test_an_authentication_method_can_be_removed_only_if_another_method_is_set(api: Management, client_id: str) -> None:
    assert api.patch(f"clients/{client_id}", {"token_endpoint_auth_method": None}).status == 400


def test_tokens_signed_with_a_secret_cannot_be_combined_with_keys(api: Management) -> None:
    methods = {"private_key_jwt": {"credentials": [{**PUBLIC_KEY, "pem": public_pem()}]}}
    body = {"name": "Keys", "client_authentication_methods": methods, "jwt_configuration": {"alg": "HS256"}}
    assert api.post("clients", body).status == 400
    assert api.get("clients").json == []


def test_the_management_interface_cannot_change_credentials_of_a_global_client(api: Management) -> None:
    path = f"clients/{api.client.client_id}/credentials"
    assert api.post(path, {**PUBLIC_KEY, "pem": public_pem()}).status == 403


def test_creating_a_client_with_a_key_also_requires_the_scope_for_credentials(tenant: Tenant) -> None:
    limited = Management(tenant, scope="create:clients")
    methods = {"private_key_jwt": {"credentials": [{**PUBLIC_KEY, "pem": public_pem()}]}}
    assert limited.post("clients", {"name": "Keys", "client_authentication_methods": methods}).status == 403
