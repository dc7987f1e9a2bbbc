"""The signing keys of tenants: which key signs, which keys verify, and how keys rotate.

A key is published as `next` before it signs, so that the caches of clients contain the key before its first signature. After a rotation,
the old key stays published as `previous` until the last token that it may have signed has expired.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, cast

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.db.models import Q
from django.utils import timezone
from joserfc.jwk import RSAKey

from authapi.models import ApiResource, Client, SigningKey
from authapi.models.clients import SIGNING_ALGORITHMS
from authapi.models.resources import MAX_TOKEN_SECONDS
from authapi.tokens.key_pairs import KeyPair, new_key_pair
from foundation.database.transactions import after_commit, lock_rows, unit_of_work
from foundation.memory.ttl_cache import Remembered
from identity.hosts import hosts_of
from identity.models import Tenant
from identity.stopped_tenants import of_running_tenants

# The longest lifetime of a token, plus the time for which another process may still cache the old key.
_VERIFIES_AFTER_ROTATION = timedelta(seconds=MAX_TOKEN_SECONDS + 60)
_REMEMBERED_SECONDS = 1.0


class UnknownKey(LookupError):
    """The tenant has no key with this id that can be revoked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class PublicKey:
    """A public key that verifies tokens: its id, modulus and exponent. This object is hashable; the imported key is not."""

    kid: str
    n: str
    e: str

    def imported(self) -> RSAKey:
        return _imported(self)


@dataclass(frozen=True)
class Trust:
    """The data that verifies tokens of a tenant: its hosts, its verifying keys, and the JWKs that it publishes."""

    hosts: frozenset[str]
    public_keys: dict[str, PublicKey]
    published: tuple[dict[str, Any], ...]
    current: SigningKey | None


def _load_trust(tenant_id: str) -> Trust:
    still_verifies = Q(verifies_until__isnull=True) | Q(verifies_until__gt=timezone.now())
    rows = list(SigningKey.objects.of(tenant_id).exclude(state=SigningKey.State.REVOKED).filter(still_verifies))
    # The order of the keys in the JWKS: the key that signs now comes first.
    order = {SigningKey.State.CURRENT: 0, SigningKey.State.NEXT: 1, SigningKey.State.PREVIOUS: 2}
    rows.sort(key=lambda row: (order[SigningKey.State(row.state)], -row.pk))
    return Trust(
        hosts=hosts_of(tenant_id),
        public_keys={row.kid: PublicKey(row.kid, row.public_jwk["n"], row.public_jwk["e"]) for row in rows},
        published=tuple(row.public_jwk for row in rows),
        current=next((row for row in rows if row.state == SigningKey.State.CURRENT), None),
    )


# Other processes see a change of key states within this time. Parsed keys never change, so they are cached separately.
trust: Remembered[str, Trust] = Remembered(_load_trust, seconds=_REMEMBERED_SECONDS)
_PUBLISHED_ALGORITHM = "RS256"


def _load_signs_otherwise(tenant_id: str) -> bool:
    others = [name for name, _ in SIGNING_ALGORITHMS if name not in (_PUBLISHED_ALGORITHM, Client.HS256_ALGORITHM)]
    if Client.objects.of(tenant_id).filter(algorithm__in=others, revoked_at__isnull=True).exists():
        return True
    return ApiResource.objects.of(tenant_id).filter(settings__signing_alg__in=others).exists()


# Whether a client or an API of the tenant is set to an RSA algorithm other than `_PUBLISHED_ALGORITHM`.
_signs_otherwise: Remembered[str, bool] = Remembered(_load_signs_otherwise, seconds=_REMEMBERED_SECONDS)


@lru_cache(maxsize=4096)
def _imported(key: PublicKey) -> RSAKey:
    return RSAKey.import_key({"kty": "RSA", "kid": key.kid, "n": key.n, "e": key.e})


@lru_cache(maxsize=1024)
def _private_key(kid: str, tenant_id: str, sealed: str) -> RSAKey:
    row = SigningKey(tenant_id=tenant_id, kid=kid, sealed_private_key=sealed)
    # The seal proves that this service made the key, so its primes are not tested again. The test takes 38 ms and would delay a tenant's
    # first token.
    private = load_pem_private_key(row.private_key().encode(), None, unsafe_skip_rsa_key_validation=True)
    return RSAKey.import_key(cast(rsa.RSAPrivateKey, private))


def signing_key(tenant_id: str) -> tuple[str, RSAKey]:
    """Return the id and the private key of the key that signs now. Creates the tenant's keys if there are none."""
    current = trust.get(tenant_id).current or ensure_keys(tenant_id)
    return current.kid, _private_key(current.kid, tenant_id, current.sealed_private_key)


def published_keys(tenant_id: str) -> tuple[dict[str, Any], ...]:
    """Return the JWKs of `/.well-known/jwks.json`: the current, the next, and the previous RSA keys that still verify.

    A JWK has `alg` only while the tenant uses no other RSA algorithm: clients refuse a token whose algorithm differs from the `alg` of its
    key (RFC 7517, 4.4).
    """
    known = trust.get(tenant_id)
    if known.current is None:
        ensure_keys(tenant_id)
        known = trust.get(tenant_id)
    if not _signs_otherwise.get(tenant_id):
        return known.published
    return tuple({name: value for name, value in jwk.items() if name != "alg"} for jwk in known.published)


def forget_published_after_commit(tenant_id: str) -> None:
    """After the commit, forget the cached answer to the question whether the published keys may contain `alg`."""
    after_commit(_signs_otherwise.forget, tenant_id)


def ensure_keys(tenant_id: str) -> SigningKey:
    """Create the tenant's current and next key if they are missing; return the current key."""
    _ensure_keys(tenant_id)
    trust.forget(tenant_id)
    return SigningKey.objects.of(tenant_id).get(state=SigningKey.State.CURRENT)


def rotate_keys(tenant_id: str) -> SigningKey:
    """Make the next key the current key and publish a new next key; return the key that signs now."""
    _ensure_keys(tenant_id)
    # Generate the key before `_rotate` locks the tenant, because the generation takes tens of milliseconds.
    _rotate(tenant_id, new_key_pair(subject=tenant_id, now=timezone.now()))
    trust.forget(tenant_id)
    return SigningKey.objects.of(tenant_id).get(state=SigningKey.State.CURRENT)


def rotate_due_keys(max_age: timedelta, *, limit: int = 100) -> int:
    """Rotate the keys of up to `limit` tenants whose current key has signed for longer than `max_age`; return their number."""
    due = of_running_tenants(SigningKey.all_tenants.filter(state=SigningKey.State.CURRENT, current_since__lt=timezone.now() - max_age))
    tenants = list(due.order_by("current_since").values_list("tenant_id", flat=True)[:limit])
    for tenant_id in tenants:
        rotate_keys(tenant_id)
    return len(tenants)


def revoke_key(tenant_id: str, kid: str) -> None:
    """Revoke a key at once: all tokens that it signed become invalid. If it is the current key, rotate it first. Raises `UnknownKey`."""
    row = SigningKey.objects.of(tenant_id).filter(kid=kid).exclude(state=SigningKey.State.REVOKED).first()
    if row is None:
        raise UnknownKey
    if row.state == SigningKey.State.CURRENT:
        rotate_keys(tenant_id)
    SigningKey.objects.of(tenant_id).filter(kid=kid).update(state=SigningKey.State.REVOKED, verifies_until=timezone.now())
    ensure_keys(tenant_id)


@unit_of_work
def _ensure_keys(tenant_id: str) -> None:
    lock_rows(Tenant, [tenant_id])
    present = set(SigningKey.objects.of(tenant_id).values_list("state", flat=True))
    for state in (SigningKey.State.CURRENT, SigningKey.State.NEXT):
        if state not in present:
            _insert(tenant_id, new_key_pair(subject=tenant_id, now=timezone.now()), state)


@unit_of_work
def _rotate(tenant_id: str, fresh: KeyPair) -> None:
    lock_rows(Tenant, [tenant_id])
    now = timezone.now()
    keys = SigningKey.objects.of(tenant_id)
    keys.filter(state=SigningKey.State.PREVIOUS, verifies_until__lte=now).delete()
    keys.filter(state=SigningKey.State.CURRENT).update(
        state=SigningKey.State.PREVIOUS, rotated_at=now, verifies_until=now + _VERIFIES_AFTER_ROTATION
    )
    keys.filter(state=SigningKey.State.NEXT).update(state=SigningKey.State.CURRENT, current_since=now)
    _insert(tenant_id, fresh, SigningKey.State.NEXT)


def _insert(tenant_id: str, pair: KeyPair, state: SigningKey.State) -> None:
    row = SigningKey(tenant_id=tenant_id, kid=pair.kid, public_jwk=pair.public_jwk, state=state)
    row.set_private_key(pair.private_pem)
    row.current_since = timezone.now() if state == SigningKey.State.CURRENT else None
    row.save()
