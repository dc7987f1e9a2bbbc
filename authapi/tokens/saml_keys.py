"""The certificates of a tenant for SAML and WS-Federation: which certificate signs, which are published, and how a rollover works.

A rollover has three steps, with days between them. `prepare_key` publishes the next certificate beside the current certificate. When
partners have the next certificate, `rotate_key` makes it the signing certificate. `remove_key` removes the previous certificate from
metadata. No step runs on a schedule: partners that have copied a certificate by hand do not notice the next certificate, and would reject
every login after the rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.utils import timezone

from authapi.models import SamlKey
from authapi.tokens.key_pairs import CertifiedKey, new_certified_key
from foundation.database.transactions import lock_rows, unit_of_work
from foundation.memory.ttl_cache import Remembered
from identity.models import Tenant

_KID_CHARACTERS = 16
_REMEMBERED_SECONDS = 1.0
# The certificate that signs comes first: partners that read a single certificate read the first certificate.
_ORDER = {SamlKey.State.CURRENT: 0, SamlKey.State.NEXT: 1, SamlKey.State.PREVIOUS: 2}


class NoNextKey(LookupError):
    """No next certificate is published. Publish one (prepare), and make it current (rotate) when every application has it."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class KeyInUse(ValueError):
    """The current certificate signs and cannot be removed. Make another certificate current (rotate) first."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class SigningIdentity:
    """The key and the certificate that sign a message."""

    kid: str
    private_key: rsa.RSAPrivateKey
    certificate: x509.Certificate

    def __repr__(self) -> str:
        return f"SigningIdentity(kid={self.kid!r})"


def _load(tenant_id: str) -> tuple[SamlKey, ...]:
    rows = SamlKey.objects.of(tenant_id)
    return tuple(sorted(rows, key=lambda row: (_ORDER[SamlKey.State(row.state)], -row.pk)))


# Other processes see a change within this time.
_keys: Remembered[str, tuple[SamlKey, ...]] = Remembered(_load, seconds=_REMEMBERED_SECONDS)


def signing_identity(tenant_id: str) -> SigningIdentity:
    """Return the key and certificate that sign now. Creates them if there are none."""
    return _identity(_present(tenant_id)[0])


def published_certificates(tenant_id: str) -> tuple[x509.Certificate, ...]:
    """Return the certificates for the metadata: current, next, previous. Creates a current certificate if there is none."""
    return tuple(_certificate(row.certificate) for row in _present(tenant_id))


def decryption_keys(tenant_id: str) -> tuple[rsa.RSAPrivateKey, ...]:
    """Return every private key that may decrypt a message of a partner."""
    return tuple(_identity(row).private_key for row in _present(tenant_id))


def current_key(tenant_id: str) -> SamlKey:
    """Return the row of the certificate that signs now. Creates it if there is none."""
    return _present(tenant_id)[0]


def prepare_key(tenant_id: str) -> SamlKey:
    """Publish a next certificate beside the current certificate and return it. If a next certificate is already published, return it."""
    _present(tenant_id)
    _insert_missing(tenant_id, SamlKey.State.NEXT)
    _keys.forget(tenant_id)
    return SamlKey.objects.of(tenant_id).get(state=SamlKey.State.NEXT)


def rotate_key(tenant_id: str) -> SamlKey:
    """Make the published next certificate the signing certificate; the former certificate stays published. Raises `NoNextKey`."""
    _rotate(tenant_id)
    _keys.forget(tenant_id)
    return SamlKey.objects.of(tenant_id).get(state=SamlKey.State.CURRENT)


def remove_key(tenant_id: str, kid: str) -> None:
    """Delete a previous or next key, so that metadata no longer names it. Raises `LookupError`, and `KeyInUse` for the current key."""
    row = SamlKey.objects.of(tenant_id).filter(kid=kid).first()
    if row is None:
        raise LookupError(f"There is no certificate {kid}.")
    if not SamlKey.objects.of(tenant_id).filter(pk=row.pk).exclude(state=SamlKey.State.CURRENT).delete()[0]:
        raise KeyInUse
    _keys.forget(tenant_id)


def _present(tenant_id: str) -> Sequence[SamlKey]:
    known = _keys.get(tenant_id)
    if not known or known[0].state != SamlKey.State.CURRENT:
        _insert_missing(tenant_id, SamlKey.State.CURRENT)
        _keys.forget(tenant_id)
        known = _keys.get(tenant_id)
    return known


def _insert_missing(tenant_id: str, state: SamlKey.State) -> None:
    if not SamlKey.objects.of(tenant_id).filter(state=state).exists():
        # Generate the key before `_insert` locks the tenant, because the generation takes tens of milliseconds.
        _insert(tenant_id, new_certified_key(subject=tenant_id, now=timezone.now()), state)


@unit_of_work
def _insert(tenant_id: str, made: CertifiedKey, state: SamlKey.State) -> None:
    lock_rows(Tenant, [tenant_id])
    if SamlKey.objects.of(tenant_id).filter(state=state).exists():
        return
    row = SamlKey(tenant_id=tenant_id, kid=made.fingerprint[:_KID_CHARACTERS], state=state, expires_at=made.expires_at)
    row.certificate = made.certificate_pem
    row.set_private_key(made.private_pem)
    row.current_since = timezone.now() if state == SamlKey.State.CURRENT else None
    row.save()


@unit_of_work
def _rotate(tenant_id: str) -> None:
    lock_rows(Tenant, [tenant_id])
    now, keys = timezone.now(), SamlKey.objects.of(tenant_id)
    if not keys.filter(state=SamlKey.State.NEXT).exists():
        raise NoNextKey
    keys.filter(state=SamlKey.State.CURRENT).update(state=SamlKey.State.PREVIOUS, rotated_at=now)
    keys.filter(state=SamlKey.State.NEXT).update(state=SamlKey.State.CURRENT, current_since=now)


def _identity(row: SamlKey) -> SigningIdentity:
    return SigningIdentity(row.kid, _private_key(row.kid, row.tenant_id, row.sealed_private_key), _certificate(row.certificate))


@lru_cache(maxsize=1024)
def _private_key(kid: str, tenant_id: str, sealed: str) -> rsa.RSAPrivateKey:
    row = SamlKey(tenant_id=tenant_id, kid=kid, sealed_private_key=sealed)
    # The seal proves that this service made the key, so its primes are not tested again. The test takes tens of milliseconds.
    return cast(rsa.RSAPrivateKey, load_pem_private_key(row.private_key().encode(), None, unsafe_skip_rsa_key_validation=True))


@lru_cache(maxsize=1024)
def _certificate(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())
