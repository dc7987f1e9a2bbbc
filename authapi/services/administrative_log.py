"""The only writer of the lines of a tenant's administrative log (docs/adr/0086).

Each write through the management interface has one line. The line is stored in the transaction of the write. If the write had no
transaction, the line is stored when the write is answered. `staff_lines` makes the lines for changes by staff, and for changes by users at
their account page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import DatabaseError, transaction

from authapi.edge.addresses import stored_address
from authapi.edge.rate_figures import FAILED_OPERATIONS
from authapi.models import AdministrativeLine, Client
from foundation.ids import new_sign_in_id
from foundation.json_values import storable
from identity.models import User

OPERATION, FAILED_OPERATION, DELETED_USER = "sapi", "fapi", "sdu"
# Lines of the sign-in log have none of these codes.
TYPES = frozenset({OPERATION, FAILED_OPERATION, DELETED_USER})
_CREATES_USER, _DELETES_USER = "create_user", "delete_user"

log = structlog.get_logger(__name__)


@dataclass
class Writing:
    """A running write through the management interface.

    `request` is the member `details.request` of the line, and `status` is the status of a successful answer. `read_body` returns the body
    without secrets, and the id of the user that the body names. The body is stored only if the write succeeds: the body of a failed write
    may be invalid. The ids of the lines are generated once, so that a second transaction with the same line changes nothing.
    """

    tenant_id: str
    operation: str
    act: str
    status: int
    client_id: str
    client_name: str
    scope: str
    ip: str | None
    user_agent: str
    user_id: str
    request: dict[str, Any]
    read_body: Callable[[], tuple[Any, str]]
    is_kept: bool = False
    ids: dict[str, str] = field(default_factory=lambda: {code: new_sign_in_id() for code in sorted(TYPES)})


_current: ContextVar[Writing | None] = ContextVar("management_write", default=None)


@contextmanager
def writing(under_way: Writing) -> Iterator[None]:
    """Set the running write inside the `with` block, so that the transaction of the write also stores its line."""
    token = _current.set(under_way)
    try:
        yield
    finally:
        _current.reset(token)


def note_work(result: Any = None, **_: Any) -> None:
    """Store the line of the running write in the transaction that is about to commit. `result` is what the service function returned."""
    under_way = _current.get()
    if under_way is None or under_way.is_kept:
        return
    if under_way.operation == _CREATES_USER and isinstance(result, User):
        under_way.user_id = result.user_id
    types = (OPERATION, DELETED_USER) if under_way.operation == _DELETES_USER else (OPERATION,)
    insert([_line_of(under_way, code, status=under_way.status) for code in types])

    def keep() -> None:
        under_way.is_kept = True

    transaction.on_commit(keep)


def note_answer(under_way: Writing, *, status: int, message: str = "") -> None:
    """Store the line of a write that is answered with `status`, unless the transaction of the write has already stored the line.

    Lines of failures have a rate limit per client.

    The description of a failed operation is the error text. Database errors are logged, not raised, because the write is already done.
    """
    is_success = status < 400
    if is_success and under_way.is_kept:
        return
    if not is_success and not FAILED_OPERATIONS.takes(under_way.tenant_id, under_way.client_id):
        return
    line = _line_of(under_way, OPERATION if is_success else FAILED_OPERATION, status=status)
    if not is_success:
        line.description = storable(message or under_way.act)[:500]
    try:
        insert([line])
    except DatabaseError:
        log.exception("administrative_line_lost", operation=under_way.operation)


def _line_of(under_way: Writing, code: str, *, status: int) -> AdministrativeLine:
    body, named = under_way.read_body() if code != FAILED_OPERATION else (None, "")
    request = under_way.request if body is None else {**under_way.request, "body": body}
    return AdministrativeLine(
        id=under_way.ids[code],
        tenant_id=under_way.tenant_id,
        type=code,
        is_success=code != FAILED_OPERATION,
        description=under_way.act,
        user_id=storable(under_way.user_id or named)[:300],
        client_id=under_way.client_id,
        client_name=under_way.client_name,
        scope=under_way.scope[:500],
        ip=stored_address(under_way.ip),
        user_agent=storable(under_way.user_agent)[:500],
        details={"request": request, "response": {"statusCode": status}},
    )


def note_registration(
    client: Client, *, act: str, ip: str, user_agent: str, request: dict[str, Any], status: int, initial_token: str = ""
) -> None:
    """Store the line of a client that registers itself or manages its registration, in the transaction of that change."""
    details: dict[str, Any] = {"request": request, "response": {"statusCode": status}}
    if initial_token:
        details["initial_access_token"] = initial_token
    line = AdministrativeLine(
        tenant_id=client.tenant_id,
        type=OPERATION,
        is_success=True,
        description=act,
        client_id=client.client_id,
        client_name=client.name,
        ip=stored_address(ip),
        user_agent=storable(user_agent)[:500],
        details=details,
    )
    insert([line])


def insert(lines: list[AdministrativeLine]) -> None:
    """Insert lines of one tenant; skips lines whose id already exists."""
    AdministrativeLine.objects.of(lines[0].tenant_id).bulk_create(lines, ignore_conflicts=True)
