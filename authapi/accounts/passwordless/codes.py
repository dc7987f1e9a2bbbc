"""Creates, finds and uses up stored codes and links. Every check locks the recipient, so guesses are checked one after another."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import F
from django.utils import timezone

from authapi.accounts.passwordless.addresses import Address
from authapi.models import Client, PasswordlessCode
from foundation.database.transactions import lock_name
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.models import Connection

# At most this number of codes is valid in a scope at the same time: the newest codes. The number is greater than one; otherwise a request
# of an attacker would invalidate the code that the user has already received.
_COUNTING = 2
# Number of wrong guesses from all IP addresses after which a code is invalid. The limit for guesses from one IP address is lower
# (`CODE_GUESSES_FROM_PLACE`).
_MOST_FAILURES = 10
_LONGEST_CODE = 16


@dataclass(frozen=True)
class Scope:
    """The scope in which a code is valid. A scope without `client` matches the codes of every client.

    Use such a scope only for checks that use up no code.
    """

    connection: Connection
    address: Address
    client: Client | None
    bound_to: str = ""


@dataclass(frozen=True)
class Contents:
    """The secrets of a message. A field is empty if the message does not contain this secret."""

    code: str = field(default="", repr=False)
    link: str = field(default="", repr=False)


def bound_to_login(login_key: int) -> str:
    """Return the value that binds a code to one login on the hosted pages."""
    return f"login:{login_key}"


def bound_to_session(secret: str) -> str:
    """Return the value that binds a code to the `auth_session` of an application."""
    return f"session:{digest_of(secret)}"


def hold(scope: Scope) -> None:
    """Lock the recipient until the transaction ends: guesses and uses of its codes run one after another, even in different processes."""
    lock_name(f"passwordless:{scope.connection.pk}:{scope.address.value}")


def keep_code(row: PasswordlessCode, *, length: int, seconds: int, has_code: bool, has_link: bool) -> Contents:
    """Create a code and a link, or one of them. Save `row` with their digests, and return the code and the link in plain text."""
    now = timezone.now()
    contents = Contents(_new_code(length) if has_code else "", new_secret() if has_link else "")
    row.code_expires_at = now + timedelta(seconds=seconds if has_code else 0)
    link_ends_at = now + timedelta(seconds=settings.PASSWORDLESS_LINK_SECONDS if has_link else 0)
    row.expires_at = max(row.code_expires_at, link_ends_at)
    row.link_digest = digest_of(contents.link) if contents.link else ""
    row.code_digest = vault.digest(_said(row, contents.code)) if contents.code else ""
    row.save(force_insert=True)
    return contents


def matching_code(scope: Scope, code: str) -> PasswordlessCode | None:
    """Return the row with this code. For a wrong code, count a failure on every valid row and return None. Lock the scope first."""
    counting = list(_counting(scope, timezone.now())[:_COUNTING])
    # Compare with every row, or with a dummy if no row exists. So the time reveals neither which row matches nor whether a row exists.
    found = [row for row in counting if len(code) <= _LONGEST_CODE and vault.digest_matches(_said(row, code), row.code_digest)]
    if not counting:
        vault.digest_matches(code[:_LONGEST_CODE], "")
    if found:
        return found[0]
    PasswordlessCode.objects.of(scope.connection.tenant_id).filter(pk__in=[row.pk for row in counting]).update(failures=F("failures") + 1)
    return None


def use_up(row: PasswordlessCode, *, now: datetime | None = None) -> None:
    """Invalidate this code and all other codes of the same connection, client and recipient. Lock the scope first."""
    rows = PasswordlessCode.objects.of(row.tenant_id)
    same = rows.filter(connection_id=row.connection_id, address=row.address, client_id=row.client_id, used_at=None)
    same.update(used_at=now or timezone.now())


def newest_moment(scope: Scope) -> datetime | None:
    """Return the time at which the last message of this scope was requested. None if no message was requested."""
    return _of(scope).order_by("-pk").values_list("created_at", flat=True).first()


def _counting(scope: Scope, now: datetime) -> models.QuerySet[PasswordlessCode]:
    rows = _of(scope).filter(used_at=None, code_expires_at__gt=now, failures__lt=_MOST_FAILURES).exclude(code_digest="")
    return rows.select_related("client", "connection").order_by("-pk")


def _of(scope: Scope) -> models.QuerySet[PasswordlessCode]:
    rows = PasswordlessCode.objects.of(scope.connection.tenant_id)
    rows = rows.filter(connection=scope.connection, address=scope.address.value, bound_to=scope.bound_to)
    return rows if scope.client is None else rows.filter(client=scope.client)


def _new_code(length: int) -> str:
    return "".join(secrets.choice("0123456789") for _ in range(length))


def _said(row: PasswordlessCode, code: str) -> str:
    """Return the input of a digest. It includes the identifying columns of the row, so a digest copied to another row matches nothing."""
    place = (row.tenant_id, row.connection_id, str(row.client_id), row.address, row.bound_to, row.code_expires_at.isoformat())
    return "\x00".join((*place, code))


def session_code(client: Client, session: str) -> PasswordlessCode | None:
    """Return the newest unexpired row of an `auth_session` of the client; None if no such row exists."""
    rows = PasswordlessCode.objects.of(client.tenant_id).select_related("connection")
    return rows.filter(client=client, bound_to=bound_to_session(session), expires_at__gt=timezone.now()).order_by("-pk").first()


def link_code(tenant_id: str, secret: str) -> PasswordlessCode | None:
    """Return the row of a link, even if the link was used or has expired. None for an unknown link."""
    if not secret:
        return None
    rows = PasswordlessCode.objects.of(tenant_id).select_related("client", "connection")
    return rows.filter(link_digest=digest_of(secret)).first()


def waiting_code(tenant_id: str, key: str) -> PasswordlessCode | None:
    """Return the row with this primary key if the row is unused and unexpired. None otherwise."""
    if not key.isdecimal():
        return None
    rows = PasswordlessCode.objects.of(tenant_id).select_related("client", "connection")
    return rows.filter(pk=int(key), used_at=None, expires_at__gt=timezone.now()).first()


def login_key_of(row: PasswordlessCode) -> int | None:
    """Return the primary key of the login transaction that a row is bound to. None if an application requested the code."""
    kind, _, key = row.bound_to.partition(":")
    return int(key) if kind == "login" else None
