"""What would be sent for one user, byte for byte: the same functions make it that make the request of a delivery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Lower

from identity.documents.user import user_document
from identity.models import User
from identity.services.failures import NotFound
from provisioning.actions.scope import is_in_scope
from provisioning.mapping.table import MappedUser, MappingRow, Operation, map_user
from provisioning.scim.options import ScimOptions
from provisioning.scim.transport import encoded
from provisioning.scim.user_sync import update_request


@dataclass(frozen=True)
class Preview:
    """The request of one operation, and whether the user is in scope. Out of scope, no request is sent.

    `left_out` says of each value that cannot be sent why; `notes` say what the server will answer.
    """

    method: str
    body: bytes
    unusable: tuple[str, ...] = ()
    is_in_scope: bool = True
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def preview(document: dict[str, Any], table: tuple[MappingRow, ...], options: ScimOptions, operation: Operation) -> Preview:
    """Return what a create or an update of this user sends; raise `MappingFailed` or `DataFailure` as a delivery would fail."""
    is_meant = is_in_scope(document, options.scope)
    mapped = map_user(document, table, operation)
    method, body = request_of(mapped, options, operation)
    return Preview(method, encoded(body) or b"", mapped.unusable, is_meant, mapped.left_out)


def request_of(mapped: MappedUser, options: ScimOptions, operation: Operation) -> tuple[str, dict[str, Any]]:
    """Return verb and body of the operation."""
    return ("POST", mapped.resource) if operation == "create" else update_request(options, mapped)


def document_of_user(*, tenant_id: str, user_id: str) -> dict[str, Any]:
    """Return the user as the next event would show it; raise `NotFound`."""
    return user_document(user_named(tenant_id=tenant_id, user_id=user_id))


def user_named(*, tenant_id: str, user_id: str) -> User:
    """Return the user with this id, or the only one with this e-mail address; raise `NotFound`."""
    users = User.objects.of(tenant_id).select_related("connection")
    found = users.filter(user_id=user_id).first()
    if found is None and "@" in user_id:
        same = list(users.annotate(lowered=Lower("email")).filter(lowered=user_id.lower())[:2])
        if len(same) > 1:
            raise NotFound("Several users have this e-mail address; name one by its id.")
        found = same[0] if same else None
    if found is None:
        raise NotFound("The user does not exist.")
    return found
