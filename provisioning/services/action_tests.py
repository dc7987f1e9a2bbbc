"""The mapping preview of an action, for the interface and the admin alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from identity.services.failures import Invalid
from provisioning.actions.pace import NoTurn
from provisioning.actions.setups import Setup
from provisioning.links.name_holders import foresee
from provisioning.mapping.preview import Preview, document_of_user, preview
from provisioning.mapping.review import check_sendable
from provisioning.mapping.table import MappingFailed, MappingRefused, MappingRow, Operation, parse_table, person_of
from provisioning.runs.failures import ActionError, DataFailure, Misconfigured
from provisioning.scim.name_proof import proves_name
from provisioning.scim.options import ScimOptions
from provisioning.services.actions import mapping_problems
from provisioning.trials.scim_sessions import mask_of, open_session, require_scim, set_up_of, trusted_strategies

_AS_SET_UP: Any = object()
# All reads of one preview together: a person waits for the page.
_BUDGET_SECONDS = 4.0


def mapping_preview(
    setup: Setup, *, user_id: str, operation: Operation, mapping: Any = _AS_SET_UP, enterprise: bool | None = None
) -> Preview:
    """Return exactly what would be sent for a user, with the table of the action or with one that is not saved yet.

    Where the server can be asked, `notes` say what it will answer because another account holds the `userName`.

    Raises `NotFound`, `NotSupported`, `Misconfigured`, `Invalid` for a table that cannot be used, or where it or the scope does
    not fit this user.
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
        document = document_of_user(tenant_id=setup.tenant_id, user_id=user_id)
        shown = preview(document, table, options, operation)
        return replace(shown, notes=_foreseen(setup, document, table, options, operation) if shown.is_in_scope else ())
    except MappingRefused as error:
        raise Invalid(mapping_problems(error)) from error
    except DataFailure as error:
        raise Invalid({"options": [str(error)]}) from error
    except MappingFailed as error:
        raise Invalid({"mapping": [str(error)]}) from error


def _foreseen(
    setup: Setup, document: dict[str, Any], table: tuple[MappingRow, ...], options: ScimOptions, operation: Operation
) -> tuple[str, ...]:
    """Return what the server will answer because of the `userName`, or why that is not known; nothing without its secrets."""
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
        return (f"It is not known whether another account holds the userName: {failure}.",)
    if operation == "update" and own is None and not options.upsert:
        return ("No account of the server is this user, and upsert is off: a delivery skips the update.",)
    return () if foreseen is None else (f"{foreseen.text} {foreseen.advice}".strip(),)


def _strategy_of(document: dict[str, Any]) -> str:
    """Return the strategy of the primary identity, which stands first; an empty text for a sample without identities."""
    identities = document.get("identities")
    first = identities[0] if isinstance(identities, list) and identities else {}
    return str(first.get("provider", "")) if isinstance(first, dict) else ""
