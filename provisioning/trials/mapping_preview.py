"""Shows the exact request body for one user, made by the same functions as the requests of deliveries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.db.models.functions import Lower

from identity.documents.user import user_document
from identity.models import User
from identity.services.failures import Invalid, NotFound
from provisioning.actions.pace import NoTurn
from provisioning.actions.scope import is_in_scope
from provisioning.actions.setups import Setup
from provisioning.links.name_holders import foresee
from provisioning.mapping.review import check_sendable
from provisioning.mapping.table import (
    MappedUser,
    MappingFailed,
    MappingRefused,
    MappingRow,
    Operation,
    map_user,
    parse_table,
    person_of,
)
from provisioning.runs.failures import ActionError, DataFailure, Misconfigured
from provisioning.scim.name_proof import proves_name, trusted_strategies
from provisioning.scim.options import ScimOptions
from provisioning.scim.transport import encoded
from provisioning.scim.user_sync import update_request
from provisioning.services.actions import mapping_problems
from provisioning.trials.scim_sessions import mask_of, open_session, require_scim, set_up_of

_AS_SET_UP: Any = object()
# Seconds for all reads of one preview. The time is short, because a person waits for the page.
_BUDGET_SECONDS = 4.0


@dataclass(frozen=True)
class Preview:
    """The request of one operation, and whether the user is in the scope. Outside the scope, no request is sent.

    `left_out` contains a sentence for each value that cannot be sent; `notes` contain expected answers of the server.
    """

    method: str
    body: bytes
    unusable: tuple[str, ...] = ()
    is_in_scope: bool = True
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def mapping_preview(
    setup: Setup, *, user_id: str, operation: Operation, mapping: Any = _AS_SET_UP, enterprise: bool | None = None
) -> Preview:
    """Return the exact request for a user, with the table of the action or with an unsaved table.

    If the server is reachable, `notes` tell whether another account has the `userName` and how the server will answer.

    Raises `NotFound`, `NotSupported` and `Misconfigured`. Raises `Invalid` if the table is invalid, or if the table or the scope fails for
    this user.
    """
    require_scim(setup)
    options, table = set_up_of(setup)
    if enterprise is not None:
        options = replace(options, enterprise=enterprise)
    try:
        if mapping is not _AS_SET_UP or enterprise is not None:
            table = parse_table(setup.mapping if mapping is _AS_SET_UP else mapping, enterprise=options.enterprise)
        if mapping is not _AS_SET_UP:
            check_sendable(table)
        document = _document_of(tenant_id=setup.tenant_id, user_id=user_id)
        shown = _preview(document, table, options, operation)
        return replace(shown, notes=_foreseen(setup, document, table, options, operation) if shown.is_in_scope else ())
    except MappingRefused as error:
        raise Invalid(mapping_problems(error)) from error
    except DataFailure as error:
        raise Invalid({"options": [str(error)]}) from error
    except MappingFailed as error:
        raise Invalid({"mapping": [str(error)]}) from error


def _preview(document: dict[str, Any], table: tuple[MappingRow, ...], options: ScimOptions, operation: Operation) -> Preview:
    """Return the request of a create or an update; raise `MappingFailed` or `DataFailure` if a delivery would fail."""
    is_meant = is_in_scope(document, options.scope)
    mapped = map_user(document, table, operation)
    method, body = request_of(mapped, options, operation)
    return Preview(method, encoded(body) or b"", mapped.unusable, is_meant, mapped.left_out)


def request_of(mapped: MappedUser, options: ScimOptions, operation: Operation) -> tuple[str, dict[str, Any]]:
    """Return HTTP method and body of the operation."""
    return ("POST", mapped.resource) if operation == "create" else update_request(options, mapped)


def _document_of(*, tenant_id: str, user_id: str) -> dict[str, Any]:
    """Return the user document as the next event would contain it; raise `NotFound`."""
    return user_document(user_named(tenant_id=tenant_id, user_id=user_id))


def user_named(*, tenant_id: str, user_id: str) -> User:
    """Return the user with this id, or the only user with this e-mail address; raise `NotFound`."""
    users = User.objects.of(tenant_id).select_related("connection")
    found = users.filter(user_id=user_id).first()
    if found is None and "@" in user_id:
        same = list(users.annotate(lowered=Lower("email")).filter(lowered=user_id.lower())[:2])
        if len(same) > 1:
            raise NotFound("Several users have this e-mail address. Enter a user id.")
        found = same[0] if same else None
    if found is None:
        raise NotFound("The user does not exist.")
    return found


def _foreseen(
    setup: Setup, document: dict[str, Any], table: tuple[MappingRow, ...], options: ScimOptions, operation: Operation
) -> tuple[str, ...]:
    """Return notes that say how the server will answer if an account has the `userName`, or why the answer is unknown.

    Returns no notes if a secret or an option of the action is missing or invalid, because then no server can be asked.
    """
    try:
        session = open_session(setup, mask_of(setup), seconds=_BUDGET_SECONDS)
    except Misconfigured:
        return ()
    person, client = person_of(document, table), session.client_of(str(document.get("user_id", "")))
    strategy = _strategy_of(document)
    is_proven = proves_name(document, person, options, strategy=strategy, trusted_strategies=trusted_strategies())
    person = replace(person, proves_name=is_proven)
    try:
        own = client.find(person) if operation == "update" and person.external_id else None
        foreseen = foresee(client, person, options, own_id=None if own is None else own.id)
    except (ActionError, NoTurn) as failure:
        return (f"The service cannot tell whether another account has the userName: {failure}.",)
    if operation == "update" and own is None and not options.upsert:
        return ("The user has no account on the server. The option upsert is off, so a delivery of an update skips the user.",)
    return () if foreseen is None else (f"{foreseen.text} {foreseen.advice}".strip(),)


def _strategy_of(document: dict[str, Any]) -> str:
    """Return the strategy of the primary identity, which is the first; an empty string for a sample without identities."""
    identities = document.get("identities")
    first = identities[0] if isinstance(identities, list) and identities else {}
    return str(first.get("provider", "")) if isinstance(first, dict) else ""
