"""Registers, changes, enables and deletes keys and certificates of clients. A credential is used only if the client's settings name it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from django.utils import timezone
from joserfc.jwk import RSAKey

from authapi.client_auth.signatures import ALGORITHMS
from authapi.edge.certificates import MalformedCertificate, ReadCertificate, read_certificate, read_subject, subject_lines
from authapi.models import Client, ClientCredential
from authapi.services import clients
from foundation.database.transactions import unit_of_work
from identity.services.failures import AlreadyExists, Conflict, Invalid, NotFound, NotSupported
from identity.services.saving import validated_save

MOST_PER_CLIENT = 10
# The maximum number of credentials in use at one time: a credential, and its replacement.
MOST_PER_METHOD = 2
_SHORTEST_KEY_BITS = 2048
_LONGEST_KEY_BITS = 4096
# OpenSSL accepts any exponent for keys of up to 3072 bits. An exponent as long as the modulus makes the check of a signature a hundred
# times slower.
_LONGEST_EXPONENT_BITS = 64


@dataclass(frozen=True)
class NewCredential:
    """A credential to register: `pem` is a public key or a certificate, and is not stored."""

    type: str
    name: str = ""
    pem: str = ""
    algorithm: str = ""
    kid: str = ""
    subject_dn: str = ""
    expires_at: datetime | None = None
    takes_expiry_of_certificate: bool = False


@unit_of_work
def create_credential(*, tenant_id: str, client_id: str, new: NewCredential) -> ClientCredential:
    """Register a key or certificate of a client. Raises `NotFound`, `Invalid`, `AlreadyExists`, `Conflict`."""
    return add_credential(clients.locked_client(tenant_id, client_id), new)


@unit_of_work
def create_client_with_credentials(*, tenant_id: str, methods: dict[str, list[NewCredential]], **columns: Any) -> Client:
    """Create a client that authenticates with keys or certificates. The client gets a random secret that is never shown.

    Raises the errors of `create_client` and `create_credential`.
    """
    # The settings are saved after the keys: the check of a compliance level, which is a setting, needs the keys.
    settings = columns.pop("settings", {})
    client, _ = clients.create_client(tenant_id=tenant_id, **columns)
    named = {method: {"credentials": [{"id": add_credential(client, new).pk} for new in listed]} for method, listed in methods.items()}
    changes = {"settings": {**settings, "client_authentication_methods": named}}
    return clients.update_client(tenant_id=tenant_id, client_id=client.client_id, changes=changes)


@unit_of_work
def change_credential(*, tenant_id: str, client_id: str, credential_id: str, expires_at: datetime | None) -> ClientCredential:
    """Change the expiry of a credential. Raises `NotFound`, `Invalid`."""
    client = clients.locked_client(tenant_id, client_id)
    credential = _credential(client, credential_id)
    _check_end(expires_at)
    credential.expires_at = expires_at
    credential.save(update_fields=["expires_at", "updated_at"])
    clients.forget_after_commit(tenant_id, client_id)
    return credential


@unit_of_work
def use_credential(*, tenant_id: str, client_id: str, credential_id: str) -> Client:
    """Use a credential for authentication. The client's secret then no longer works. If another credential of the same kind is in use, it
    stays in use.

    Raises `NotFound`, `Invalid`, or `Conflict` if two credentials are already in use.
    """
    client = clients.locked_client(tenant_id, client_id)
    credential = _credential(client, credential_id)
    method = next(name for name, kind in clients.CREDENTIAL_TYPES.items() if kind == credential.type)
    present = client.proof_ids if client.proof_method == method else ()
    named = [*(one for one in present if one != credential.pk), credential.pk]
    if len(named) > MOST_PER_METHOD:
        raise Conflict("Two credentials are already in use: delete one of them first.")
    methods = {method: {"credentials": [{"id": one} for one in named]}}
    return clients.update_client(tenant_id=tenant_id, client_id=client_id, changes={"settings": {"client_authentication_methods": methods}})


@unit_of_work
def delete_credential(*, tenant_id: str, client_id: str, credential_id: str, even_used: bool = False) -> None:
    """Delete a credential at once. Raises `NotFound`. Without `even_used`, also raises `NotSupported` for a credential that the client
    uses.

    With `even_used`, a credential in use is deleted, too, and the client's tokens become invalid, as after a change of its secret. A
    client whose last credential is deleted keeps its method, so it cannot authenticate until its method changes.
    """
    client = clients.locked_client(tenant_id, client_id)
    credential = _credential(client, credential_id)
    if credential.pk in client.used_credential_ids:
        if not even_used:
            raise NotSupported("The credential is in use: remove it from the client's settings first.")
        for place in (*(client.settings.get("client_authentication_methods") or {}).values(), client.settings.get("signed_request_object")):
            if place and "credentials" in place:
                place["credentials"] = [named for named in place["credentials"] if named["id"] != credential.pk]
        client.save(update_fields=["settings", "updated"])
        clients.raise_auth_version(client)
    credential.delete()


def add_credential(client: Client, new: NewCredential) -> ClientCredential:
    """Register a key or certificate of a client that the caller has locked. Raises `Invalid`, `AlreadyExists`, `Conflict`."""
    if client.credentials.count() >= MOST_PER_CLIENT:
        raise Conflict(f"A client has at most {MOST_PER_CLIENT} credentials: delete one that is no longer used.")
    _check_end(new.expires_at)
    credential = ClientCredential(tenant_id=client.tenant_id, client=client, type=new.type, name=new.name, expires_at=new.expires_at)
    match new.type:
        case ClientCredential.Type.PUBLIC_KEY:
            _set_key(credential, new)
        case ClientCredential.Type.X509_CERT:
            _set_certificate(credential, new)
        case _:
            _set_subject(credential, new)
    same = ClientCredential.objects.of(client.tenant_id).filter(client=client, type=credential.type)
    if same.filter(kid=credential.kid, thumbprint=credential.thumbprint, subject_dn=credential.subject_dn).exists():
        raise AlreadyExists("The client has this credential already.")
    validated_save(credential)
    return credential


def _set_key(credential: ClientCredential, new: NewCredential) -> None:
    if new.algorithm not in ALGORITHMS:
        raise Invalid({"alg": [f"Expected one of {', '.join(ALGORITHMS)}."]})
    key = RSAKey.import_key(_public_key(new.pem))
    # Only the modulus and the exponent of the public key are stored.
    credential.public_jwk = {"kty": "RSA", **{name: key.as_dict(private=False)[name] for name in ("n", "e")}}
    credential.kid = new.kid or key.thumbprint()
    credential.algorithm = new.algorithm
    if new.takes_expiry_of_certificate:
        credential.expires_at = _certificate(new.pem).not_after


def _public_key(pem: str) -> RSAPublicKey:
    if "PRIVATE KEY" in pem:
        raise Invalid({"pem": ["This is a private key, and it is no longer secret. Make a new pair and register its public key."]})
    try:
        if "BEGIN CERTIFICATE" in pem:
            key: Any = x509.load_pem_x509_certificate(pem.encode()).public_key()
        else:
            key = load_pem_public_key(pem.encode())
    except ValueError as error:
        raise Invalid({"pem": ["Expected a public key or a certificate in PEM."]}) from error
    if not isinstance(key, RSAPublicKey) or not _SHORTEST_KEY_BITS <= key.key_size <= _LONGEST_KEY_BITS:
        raise Invalid({"pem": [f"Expected an RSA key of {_SHORTEST_KEY_BITS} to {_LONGEST_KEY_BITS} bits."]})
    if key.public_numbers().e.bit_length() > _LONGEST_EXPONENT_BITS:
        raise Invalid({"pem": [f"Expected an RSA key with an exponent of at most {_LONGEST_EXPONENT_BITS} bits, such as 65537."]})
    return key


def _set_certificate(credential: ClientCredential, new: NewCredential) -> None:
    read = _certificate(new.pem)
    credential.thumbprint = read.thumbprint
    if new.takes_expiry_of_certificate:
        credential.expires_at = read.not_after


def _set_subject(credential: ClientCredential, new: NewCredential) -> None:
    if bool(new.pem) == bool(new.subject_dn):
        raise Invalid({"subject_dn": ["Expected either the subject or a certificate with the subject."]})
    try:
        subject = read_subject(new.subject_dn) if new.subject_dn else _certificate(new.pem).subject
    except MalformedCertificate as error:
        raise Invalid({"subject_dn": [str(error)]}) from error
    if not subject:
        raise Invalid({"pem": ["The certificate has no subject that can be compared."]})
    credential.subject_dn = subject_lines(subject)


def _certificate(pem: str) -> ReadCertificate:
    try:
        read = read_certificate(pem)
    except MalformedCertificate as error:
        raise Invalid({"pem": ["Expected one certificate in PEM."]}) from error
    if not read.is_valid_at(timezone.now()):
        raise Invalid({"pem": ["The certificate has expired or is not valid yet."]})
    return read


def _check_end(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid({"expires_at": ["Expected a time in the future."]})


def _credential(client: Client, credential_id: str) -> ClientCredential:
    credential = ClientCredential.objects.of(client.tenant_id).filter(client=client, pk=credential_id).first()
    if credential is None:
        raise NotFound("There is no such credential.")
    return credential
