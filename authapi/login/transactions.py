"""Login transactions: rows that keep a client's request while the user logs in. Each row is bound to the browser that began the login.

The pages pass on the handle of a row. An answer to the client does not use up the row. So a user can go back to a page of the login, or
press a button twice, and the client gets another answer. The results of the pages are valid for one answer.
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

# Key in the progress of a login: the organization that the user chose.
CHOSEN = "organization"
# Key in the progress of a login: a sealed recovery code that the user has not saved yet.
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
    """Tell whether the row is saved. A row is saved when the first page is shown."""
    return row.pk is not None


def kept_state(row: LoginTransaction) -> dict[str, Any]:
    """Return the state of the request that its protocol stored."""
    if not row.sealed_request:
        # The previous version of the service wrote rows without `sealed_request`.
        return dict(row.parameters)
    state: dict[str, Any] = orjson.loads(vault.unseal(row.sealed_request, place=_place(row)))
    return state


def kept_transaction(*, tenant_id: str, handle: str, browser: str) -> LoginTransaction:
    """Return the login transaction of a handle.

    Raises `RequestRefused` if the transaction no longer exists or belongs to another browser.
    """
    if not handle or len(handle) > _LONGEST_HANDLE:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    rows = LoginTransaction.objects.of(tenant_id).select_related("client", "session")
    row = rows.filter(digest=digest_of(handle), expires_at__gt=timezone.now()).first()
    if row is None:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    if not browser or row.browser_digest != digest_of(browser):
        # An attacker may have sent the URL of their own login to another user (OpenID Connect Core 1.0, 3.1.2.1: CSRF).
        raise RequestRefused(LoginCase.FOREIGN_BROWSER)
    return row


def transaction_of(tenant_id: str, key: int | None, *, browser: str) -> LoginTransaction | None:
    """Return a login transaction by its primary key. None if the transaction belongs to another browser or has expired."""
    rows = LoginTransaction.objects.of(tenant_id).select_related("client", "session")
    return rows.filter(pk=key, browser_digest=digest_of(browser), expires_at__gt=timezone.now()).first() if key is not None else None


def new_handle(row: LoginTransaction) -> str:
    """Give a login transaction a new handle, for a caller that does not know the present handle."""
    handle = new_secret()
    row.digest = digest_of(handle)
    row.save(update_fields=["digest"])
    return handle


def note_progress(row: LoginTransaction, **progress: bool | str) -> None:
    """Store the result of a page in the row of its login transaction."""
    row.progress = {**row.progress, **progress}
    if is_kept(row):
        row.save(update_fields=["progress", "session"])


def keep_code(row: LoginTransaction, user: User, code: str) -> None:
    """Keep a recovery code until the user confirms that it is saved, so that the page can be shown again."""
    note_progress(row, **{NEW_CODE: vault.seal(code, place=_code_place(row, user))})


def kept_code(row: LoginTransaction, user: User) -> str:
    """Return the recovery code that the user has not saved yet, empty if there is no such code."""
    sealed = row.progress.get(NEW_CODE)
    return vault.unseal(str(sealed), place=_code_place(row, user)) if sealed else ""


def drop_code(row: LoginTransaction) -> None:
    """Forget the recovery code: the user has saved it."""
    row.progress.pop(NEW_CODE, None)
    row.save(update_fields=["progress"])


def bind(row: LoginTransaction, session: Session) -> None:
    """Bind the row to this session. If this is another session than before, forget the results of the pages. Does not save the row."""
    if row.session_id == session.pk:
        return
    # Keep the organization, because it may have been chosen before the user was known.
    kept = {CHOSEN: row.progress[CHOSEN]} if row.session_id is None and CHOSEN in row.progress else {}
    row.session, row.progress = session, kept


def begin_anew(row: LoginTransaction) -> None:
    """After an answer, delete the results of the pages, because they are valid for one answer only."""
    row.session = None
    row.progress = {}
    if is_kept(row):
        row.save(update_fields=["progress", "session"])


def _code_place(row: LoginTransaction, user: User) -> str:
    return f"{row.tenant_id}:login_transaction:{row.pk}:recovery_code:{user.user_id}"


def _place(row: LoginTransaction) -> str:
    return f"{row.tenant_id}:login_transaction:{row.browser_digest}:request"
