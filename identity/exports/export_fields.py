"""Fields of a user that an export can show: paths into the document, each with a name. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foundation.export_lines import Field, steps_of

MOST_CSV_FIELDS = 30
MOST_FIELDS = 100
LONGEST_PATH = 256
# The columns of a CSV export if the caller names none.
DEFAULT_CSV_FIELDS = (
    "user_id", "email", "email_verified", "username", "phone_number", "phone_verified", "name", "given_name", "family_name", "nickname",
    "picture", "blocked", "identities[0].connection", "last_login", "last_ip", "logins_count", "created_at", "updated_at",
)  # fmt: skip
_METADATA = ("user_metadata", "app_metadata")


class InvalidFields(ValueError):
    """The fields of an export are invalid; `path` names the first invalid field."""

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


def fields_of(asked: Sequence[Mapping[str, str]], *, is_table: bool, known: Sequence[str]) -> list[Field]:
    """Return the requested fields. Raises `InvalidFields` with the path of the first invalid field."""
    most = MOST_CSV_FIELDS if is_table else MOST_FIELDS
    if len(asked) > most:
        raise InvalidFields(f"Array is too long ({len(asked)}), maximum {most}", "fields")
    fields: list[Field] = []
    for number, item in enumerate(asked):
        field = Field(item["name"], item.get("export_as") or item["name"])
        problem = _problem(field, fields, is_table=is_table, known=known)
        if problem:
            raise InvalidFields(problem, f"fields[{number}]")
        fields.append(field)
    return fields


def _problem(field: Field, before: list[Field], *, is_table: bool, known: Sequence[str]) -> str | None:
    try:
        steps = steps_of(field.path)
    except ValueError:
        return "Must be a path, such as identities[0].connection"
    if steps[0] not in known:
        return f"Users have no field {str(steps[0])[:64]}"
    if is_table and len(steps) == 1 and steps[0] in _METADATA:
        return "In a CSV export, name one member of the metadata, such as app_metadata.plan"
    if any(field.name == other.name for other in before):
        return "Two fields with the same name"
    return None
