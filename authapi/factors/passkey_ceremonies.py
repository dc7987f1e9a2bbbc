"""Stores the ceremonies of passkeys: starts, finds and uses up a ceremony. The user is unknown until the answer is checked.

A login on the hosted pages has at most one open ceremony. This ceremony lasts as long as the login, because the browser offers passkeys as
soon as the page is shown, and the user can choose one at any time. A ceremony of an application lasts five minutes and belongs to its
client.
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
    """A requested account: its profile, and the id that was chosen for the new user. The passkey contains this id."""

    identifier: str
    profile: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Begun:
    """A started ceremony of an application: the challenge that the passkey must sign, and the secret that the application sends with the
    answer."""

    challenge: bytes
    auth_session: str = field(repr=False)


@dataclass(frozen=True)
class Opened:
    """A ceremony that was used up by the answer of the browser. `sign_up` is None for a login."""

    row: PasskeyCeremony
    challenge: bytes
    sign_up: SignUpWish | None = None


@unit_of_work
def challenge_of_login(row: LoginTransaction, *, relying_party: str) -> bytes:
    """Return the challenge for one login on the hosted pages: the open challenge, or a new challenge.

    Two windows of one login share the challenge, so that the second window does not invalidate the challenge of the first.
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
    """Return and use up the challenge of a login. A challenge is valid for one answer, whether correct or not.

    None if no challenge is open.
    """
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
    """Start a login or a sign-up of an application."""
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
    """Return the open ceremony of an application at this domain.

    None if the ceremony is unknown, used or expired, or belongs to another client.
    """
    if not auth_session or len(auth_session) > _LONGEST_SECRET:
        return None
    rows = _open_rows(client.tenant_id).select_related("connection", "organization")
    return rows.filter(digest=digest_of(auth_session), client=client, bound_to="", relying_party=relying_party).first()


def open_ceremony(row: PasskeyCeremony) -> Opened | None:
    """Use up a ceremony. A ceremony is valid for one answer, whether correct or not. None if another answer has used it up."""
    if not _use_up(row):
        return None
    challenge, sign_up = _contents(row)
    return Opened(row, challenge, sign_up)


def _open_rows(tenant_id: str) -> QuerySet[PasskeyCeremony]:
    return PasskeyCeremony.objects.of(tenant_id).filter(used_at=None, expires_at__gt=timezone.now())


def _use_up(row: PasskeyCeremony) -> bool:
    # Only one of two concurrent answers finds the ceremony open.
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
    """Return the values to which the encryption of this row is bound: a ciphertext that is copied to another row cannot be decrypted."""
    return f"{row.tenant_id}:passkey_ceremony:{row.client_id}:{row.digest}:{row.relying_party}:{row.is_registration}"


def _bound_to(row: LoginTransaction) -> str:
    return f"login:{row.pk}"


def _end() -> datetime:
    return timezone.now() + LIFE
