"""Login transactions: rows that keep a client's request while people log in, bound to the browser that began it.

The pages carry the handle of a row. A row is not used up by its answer: going back to its page, or pressing a button twice, asks
the same once more. What was found out on its pages counts for one answer only.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson
from django.conf import settings
from django.utils import timezone

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.models import LoginTransaction, Session
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.models import User

# Under which name the progress of a login keeps the organization that was chosen.
CHOSEN = "organization"
# ... and a recovery code that the person has not kept yet, sealed.
NEW_CODE = "new_recovery_code"
_LONGEST_HANDLE = 64


def keep(row: LoginTransaction, state: Mapping[str, Any], *, browser: str) -> str:
    """Save a new login transaction with the state of its request; return its handle."""
    handle = new_secret()
    row.digest, row.browser_digest = digest_of(handle), digest_of(browser)
    row.sealed_request = vault.seal(orjson.dumps(dict(state)).decode(), place=_place(row))
    row.expires_at = timezone.now() + timedelta(seconds=settings.AUTHORIZATION_REQUEST_SECONDS)
    row.save(force_insert=True)
    return handle


def is_kept(row: LoginTransaction) -> bool:
    """Tell whether the row was saved: before the first page it is not."""
    return row.pk is not None


def kept_state(row: LoginTransaction) -> dict[str, Any]:
    """Return the state of the request, as its protocol put it."""
    if not row.sealed_request:
        # Written by the version before.
        return dict(row.parameters)
    state: dict[str, Any] = orjson.loads(vault.unseal(row.sealed_request, place=_place(row)))
    return state


def kept_transaction(*, tenant_id: str, handle: str, browser: str) -> LoginTransaction:
    """Return the login transaction of a handle. Raises `RequestRefused` when there is none any more, or it is another browser's."""
    if not handle or len(handle) > _LONGEST_HANDLE:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    rows = LoginTransaction.objects.of(tenant_id).select_related("client", "session")
    row = rows.filter(digest=digest_of(handle), expires_at__gt=timezone.now()).first()
    if row is None:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    if not browser or row.browser_digest != digest_of(browser):
        # An attacker sent the address of a login of their own to another person (OpenID Connect Core 1.0, 3.1.2.1: CSRF).
        raise RequestRefused(LoginCase.FOREIGN_BROWSER)
    return row


def transaction_of(tenant_id: str, key: int | None, *, browser: str) -> LoginTransaction | None:
    """Return a login transaction by its key where it belongs to this browser and has not expired, None otherwise."""
    rows = LoginTransaction.objects.of(tenant_id).select_related("client", "session")
    return rows.filter(pk=key, browser_digest=digest_of(browser), expires_at__gt=timezone.now()).first() if key is not None else None


def new_handle(row: LoginTransaction) -> str:
    """Give a login transaction another handle, for a page that does not know its own."""
    handle = new_secret()
    row.digest = digest_of(handle)
    row.save(update_fields=["digest"])
    return handle


def note_progress(row: LoginTransaction, **progress: bool | str) -> None:
    """Remember what a page has found out."""
    row.progress = {**row.progress, **progress}
    if is_kept(row):
        row.save(update_fields=["progress", "session"])


def keep_code(row: LoginTransaction, user: User, code: str) -> None:
    """Keep a recovery code until the person says that they have it: a page that is lost on the way can be shown again."""
    note_progress(row, **{NEW_CODE: vault.seal(code, place=_code_place(row, user))})


def kept_code(row: LoginTransaction, user: User) -> str:
    """Return the recovery code that waits for the person, empty for none."""
    sealed = row.progress.get(NEW_CODE)
    return vault.unseal(str(sealed), place=_code_place(row, user)) if sealed else ""


def drop_code(row: LoginTransaction) -> None:
    """Forget the recovery code: the person has it."""
    row.progress.pop(NEW_CODE, None)
    row.save(update_fields=["progress"])


def bind(row: LoginTransaction, session: Session) -> None:
    """Let what the pages find out from now on count for this session; what another one's user did is forgotten. Saves nothing."""
    if row.session_id == session.pk:
        return
    # An organization may be named before the user is known.
    kept = {CHOSEN: row.progress[CHOSEN]} if row.session_id is None and CHOSEN in row.progress else {}
    row.session, row.progress = session, kept


def begin_anew(row: LoginTransaction) -> None:
    """Forget what the pages have found out: it has led to an answer."""
    row.session = None
    row.progress = {}
    if is_kept(row):
        row.save(update_fields=["progress", "session"])


def _code_place(row: LoginTransaction, user: User) -> str:
    return f"{row.tenant_id}:login_transaction:{row.pk}:recovery_code:{user.user_id}"


def _place(row: LoginTransaction) -> str:
    return f"{row.tenant_id}:login_transaction:{row.browser_digest}:request"
