"""Ceremonies of passkeys at rest: begun, found, used up once. The person is not known before the answer is judged.

A login of the hosted pages has one open ceremony at a time, which lives as long as the login: the browser asks for a passkey from the
moment that the page is shown. That of an application lives for five minutes, and belongs to its client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from secrets import token_bytes
from typing import Any

import orjson
from django.db.models import QuerySet
from django.utils import timezone
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url

from authapi.models import Client, LoginTransaction, PasskeyCeremony
from foundation.database.transactions import lock_name, unit_of_work
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.factors.ceremonies import CHALLENGE_BYTES
from identity.models import Connection, Organization

LIFE = timedelta(minutes=5)
_LONGEST_SECRET = 128


@dataclass(frozen=True)
class SignUpWish:
    """Who wants an account: what they say of themselves, and the id that the new user gets, which the passkey names."""

    identifier: str
    profile: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Begun:
    """A ceremony of an application: what the passkey signs, and the secret that the application shows with the answer."""

    challenge: bytes
    auth_session: str = field(repr=False)


@dataclass(frozen=True)
class Opened:
    """A ceremony that was used up by its answer. `sign_up` is None for a login."""

    row: PasskeyCeremony
    challenge: bytes
    sign_up: SignUpWish | None = None


@unit_of_work
def challenge_of_login(row: LoginTransaction, *, relying_party: str) -> bytes:
    """Return what a passkey signs for one login of the hosted pages: the open challenge, else a new one.

    The same for two windows of one login, so that the second one does not take the challenge of the first.
    """
    lock_name(f"login:{row.pk}")
    found = _open_rows(row.tenant_id).filter(bound_to=_bound_to(row), relying_party=relying_party).order_by("-pk").first()
    if found is not None:
        return _contents(found)[0]
    challenge = token_bytes(CHALLENGE_BYTES)
    made = PasskeyCeremony(
        tenant_id=row.tenant_id, client_id=row.client_id, bound_to=_bound_to(row), relying_party=relying_party, expires_at=row.expires_at
    )
    _save(made, new_secret(), challenge)
    return challenge


def take_challenge_of_login(row: LoginTransaction, *, relying_party: str) -> bytes | None:
    """Take the challenge of a login: it counts for one answer, right or wrong. None where none is open."""
    found = _open_rows(row.tenant_id).filter(bound_to=_bound_to(row), relying_party=relying_party).order_by("-pk").first()
    return _contents(found)[0] if found is not None and _use_up(found) else None


def begin_ceremony(
    client: Client,
    connection: Connection,
    *,
    relying_party: str,
    organization: Organization | None = None,
    sign_up: SignUpWish | None = None,
) -> Begun:
    """Begin a login or a sign-up of an application."""
    secret, challenge = new_secret(), token_bytes(CHALLENGE_BYTES)
    row = PasskeyCeremony(
        tenant_id=client.tenant_id,
        client=client,
        connection=connection,
        organization=organization,
        relying_party=relying_party,
        is_registration=sign_up is not None,
        expires_at=_end(),
    )
    _save(row, secret, challenge, sign_up)
    return Begun(challenge, secret)


def find_ceremony(client: Client, auth_session: str, *, relying_party: str) -> PasskeyCeremony | None:
    """Return what an application has begun at this domain; None for an unknown, used or expired one, and for another client's."""
    if not auth_session or len(auth_session) > _LONGEST_SECRET:
        return None
    rows = _open_rows(client.tenant_id).select_related("connection", "organization")
    return rows.filter(digest=digest_of(auth_session), client=client, bound_to="", relying_party=relying_party).first()


def open_ceremony(row: PasskeyCeremony) -> Opened | None:
    """Use up a ceremony: it counts for one answer, right or wrong. None where another answer came first."""
    if not _use_up(row):
        return None
    challenge, sign_up = _contents(row)
    return Opened(row, challenge, sign_up)


def _open_rows(tenant_id: str) -> QuerySet[PasskeyCeremony]:
    return PasskeyCeremony.objects.of(tenant_id).filter(used_at=None, expires_at__gt=timezone.now())


def _use_up(row: PasskeyCeremony) -> bool:
    # Of two answers at once, one finds it open.
    return PasskeyCeremony.objects.of(row.tenant_id).filter(pk=row.pk, used_at=None).update(used_at=timezone.now()) == 1


def _save(row: PasskeyCeremony, secret: str, challenge: bytes, sign_up: SignUpWish | None = None) -> None:
    said: dict[str, Any] = {"challenge": bytes_to_base64url(challenge)}
    if sign_up is not None:
        said |= {"identifier": sign_up.identifier, "profile": dict(sign_up.profile)}
    row.digest = digest_of(secret)
    row.sealed = vault.seal(orjson.dumps(said).decode(), place=_place(row))
    row.save(force_insert=True)


def _contents(row: PasskeyCeremony) -> tuple[bytes, SignUpWish | None]:
    said = orjson.loads(vault.unseal(row.sealed, place=_place(row)))
    sign_up = SignUpWish(said["identifier"], said["profile"]) if row.is_registration else None
    return base64url_to_bytes(said["challenge"]), sign_up


def _place(row: PasskeyCeremony) -> str:
    """Return what the sealed text belongs to: copied to another row, it opens nothing."""
    return f"{row.tenant_id}:passkey_ceremony:{row.client_id}:{row.digest}:{row.relying_party}:{row.is_registration}"


def _bound_to(row: LoginTransaction) -> str:
    return f"login:{row.pk}"


def _end() -> datetime:
    return timezone.now() + LIFE
