"""Predicts how the server will answer if another account holds the `userName` of a user. Sends only read requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioning.mapping.table import Person
from provisioning.scim.client import ScimClient
from provisioning.scim.matches import has_name
from provisioning.scim.options import ScimOptions
from provisioning.scim.refusals import FilterRefused

_LONGEST_ID = 64


@dataclass(frozen=True)
class Foreseen:
    """The predicted result of a write: a description, advice, and whether the server will refuse the write."""

    text: str
    advice: str = ""
    is_refused: bool = True


def foresee(
    client: ScimClient,
    person: Person,
    options: ScimOptions,
    *,
    own_id: str | None,
    before: Mapping[str, Any] | None = None,
) -> Foreseen | None:
    """Predict how the server answers a write of this user if another account has the `userName`. None if nothing prevents the write.

    `own_id` is the id of the account to write, None for a create. `before` is this account, if it was read; if this account already has the
    name, no request is sent. Raises the exceptions of `ScimClient.filtered`.
    """
    if not person.user_name or (before is not None and has_name(before, person.user_name)):
        return None
    try:
        found = client.filtered("userName", person.user_name)
    except FilterRefused as refused:
        text = f"The service cannot tell whether another account has the userName, because the server refuses the search: {refused}."
        return Foreseen(text, is_refused=False)
    others = [item for item in found if item["id"] != own_id and has_name(item, person.user_name)]
    strangers = [item for item in others if item.get("externalId") != person.external_id]
    return _about(strangers[0], person, options, is_create=own_id is None) if strangers else None


def _about(holder: Mapping[str, Any], person: Person, options: ScimOptions, *, is_create: bool) -> Foreseen:
    place = str(holder["id"])[:_LONGEST_ID]
    if not is_create:
        return Foreseen(
            f"The server will answer 409: the account {place} has this userName.", "Change the name on the server or in this service."
        )
    if holder.get("externalId"):
        text = f"The server will answer 409: the account {place} has this userName and another externalId."
        return Foreseen(text, "The service never takes over this account. Check on the server to which user the account belongs.")
    if options.adopt_on_conflict and person.proves_name:
        text = f"The server will answer 409, and the account {place}, which has this userName, is then taken over and updated."
        return Foreseen(text, is_refused=False)
    text = f"The server will answer 409: the account {place} has this userName and no externalId."
    advice = "With the option adopt_on_conflict, the service takes over this account if the userName is proven to be the user's."
    return Foreseen(text, advice)
