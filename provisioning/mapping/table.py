"""The mapping table: parsing, default rows, and application to a user document. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson

from foundation.expressions.language import MAX_CHARACTERS, ExpressionFailed, ExpressionRefused, compile_expression
from provisioning.mapping.paths import PathRefused, ScimPath, drop_empty_elements, parse_path, set_value
from provisioning.mapping.schemas import ENTERPRISE_USER, USER
from provisioning.mapping.values import Fitting

Operation = Literal["create", "update"]

MAX_ROWS = 100
MAX_RESOURCE_BYTES = 32 * 1024
_WHEN = ("both", "create", "update")
_IF_EMPTY = ("omit", "remove", "error")
_FIELDS = frozenset({"path", "source", "when", "if_empty", "enabled"})
_REQUIRED_PATHS = ("externalId", "userName")


@dataclass(frozen=True)
class TableProblem:
    """A problem of a table: in one field of the row at `index`, in the whole row, or in the whole table."""

    text: str
    index: int | None = None
    field: str = ""


class MappingRefused(ValueError):
    """The mapping table is invalid."""

    def __init__(self, problems: list[TableProblem]) -> None:
        self.problems = problems
        first = problems[0]
        super().__init__(first.text if first.index is None else f"Row {first.index + 1}: {first.text}")


class MappingFailed(ValueError):
    """The user cannot be mapped."""


@dataclass(frozen=True)
class MappingRow:
    """One row: target path, source expression, operation, and the handling of empty values.

    If a value is empty, `omit` omits the attribute, `remove` also removes it in per-attribute updates, and `error` makes the delivery fail.
    """

    path: str
    source: str
    when: str = "both"
    if_empty: str = "omit"
    enabled: bool = True


# The rows of the table in the section "Outbound SCIM user mapping" of the spec, in the same order.
DEFAULT_TABLE: tuple[MappingRow, ...] = (
    MappingRow("externalId", "user_id"),
    MappingRow("active", "!blocked"),
    MappingRow("userName", "email"),
    MappingRow('emails[type eq "work"].value', "email"),
    MappingRow("name.givenName", "given_name"),
    MappingRow("name.familyName", "family_name"),
    MappingRow("name.formatted", "name"),
    MappingRow("displayName", "name"),
    MappingRow("nickName", "nickname"),
    MappingRow('phoneNumbers[type eq "work"].value', "user_metadata.phone"),
    # The rows of the Enterprise User extension exist but are disabled (spec, rule 2); tenants can enable these rows and change their source
    # expressions.
    MappingRow(f"{ENTERPRISE_USER}:employeeNumber", "app_metadata.employee_number", enabled=False),
    MappingRow(f"{ENTERPRISE_USER}:costCenter", "app_metadata.cost_center", enabled=False),
    MappingRow(f"{ENTERPRISE_USER}:organization", "app_metadata.organization", enabled=False),
    MappingRow(f"{ENTERPRISE_USER}:division", "app_metadata.division", enabled=False),
    MappingRow(f"{ENTERPRISE_USER}:department", "app_metadata.department", enabled=False),
    MappingRow(f"{ENTERPRISE_USER}:manager.value", "app_metadata.manager_id", enabled=False),
)


@dataclass(frozen=True)
class MappedUser:
    """The SCIM user, the paths to remove in per-attribute updates, and the paths whose value cannot be sent.

    `left_out` contains a message for each value that cannot be sent, with the expected type and the type of the value.
    """

    resource: dict[str, Any]
    removed: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Person:
    """The correlation key of a user, and the user name, which is used if a server refuses to filter on the key.

    `has_own_key`: the key is the user id, or another value that users cannot choose. `proves_name`: an account with this user name
    and without a key is accepted as the account of this user (`provisioning.scim.name_proof`).
    """

    external_id: str
    user_name: str
    has_own_key: bool = True
    proves_name: bool = False


def parse_table(rows: Any, *, enterprise: bool = False) -> tuple[MappingRow, ...]:
    """Parse the rows of a tenant's table, or return the default table for None; `enterprise` enables all rows of the Enterprise User
    extension.

    Raises `MappingRefused` with a sentence that names the row.
    """
    table = DEFAULT_TABLE if rows is None else _parsed(rows)
    if not enterprise:
        return table
    return tuple(replace(row, enabled=True) if row.path.startswith(f"{ENTERPRISE_USER}:") else row for row in table)


def map_user(document: Mapping[str, Any], table: Iterable[MappingRow], operation: Operation) -> MappedUser:
    """Apply the enabled rows for `operation` to a user document.

    Empty values (absent, null, blank) are omitted: `name` is missing if all its parts are empty, and an extension's URN is in
    `schemas` only if it has a value. Raises `MappingFailed` if the value of a row with `error` is empty, if an expression fails for this
    user, or if the resource is too large.
    """
    resource: dict[str, Any] = {"schemas": [USER]}
    emptied: list[ScimPath] = []
    fitting = Fitting()
    for row in table:
        if not row.enabled or row.when not in ("both", operation):
            continue
        path, known = parse_path(row.path), len(fitting.problems)
        value = fitting.at(path, _found(row, document))
        is_unusable = len(fitting.problems) > known
        if value is not None:
            set_value(resource, path, value)
        elif row.if_empty == "error":
            told = f": {fitting.problems[known][1]}" if is_unusable else " is empty"
            raise MappingFailed(f"{row.path}{told}, so the delivery fails, as this row of the mapping requires (If empty: fail).")
        elif row.if_empty == "remove" and not is_unusable:
            # A value of the wrong type comes from an error in the table. Such an error must not remove the value on the server.
            emptied.append(path)
    drop_empty_elements(resource)
    resource["schemas"] += [name for name in resource if name.startswith("urn:")]
    _check_size(resource)
    return MappedUser(
        resource,
        removed=tuple(dict.fromkeys(path.removal for path in emptied if not replaces_list(path, resource))),
        unusable=tuple(dict.fromkeys(place for place, _ in fitting.problems)),
        left_out=tuple(f"{place}: {text}." for place, text in dict.fromkeys(fitting.problems)),
    )


def replaces_list(path: ScimPath, resource: Mapping[str, Any]) -> bool:
    """Tell whether the path belongs to a list in `resource`. An update replaces the whole list, so it needs no separate removal of the
    path."""
    return path.is_in_list and path.attribute in (resource.get(path.urn, {}) if path.urn else resource)


def person_of(document: Mapping[str, Any], table: Iterable[MappingRow]) -> Person:
    """Return the mapped `externalId` and `userName`; empty strings for missing values.

    Raises `MappingFailed` if the expression of one of these two rows fails for this user.
    """
    rows = [row for row in table if row.path in _REQUIRED_PATHS]
    values = {row.path: Fitting().at(parse_path(row.path), _found(row, document)) for row in rows}
    return Person(values.get("externalId") or "", values.get("userName") or "", has_own_key=_is_chosen_here(rows))


def is_keyed_by_user_id(table: Iterable[MappingRow]) -> bool:
    """Tell whether the correlation key is the id of the user."""
    return any(row.path == "externalId" and row.enabled and row.source.strip() == "user_id" for row in table)


def _is_chosen_here(table: Iterable[MappingRow]) -> bool:
    """Tell whether the correlation key is a value that users cannot choose: the user id, or a member that only administrators write."""
    sources = [row.source.strip() for row in table if row.path == "externalId" and row.enabled]
    return any(source == "user_id" or re.fullmatch(r"app_metadata(\.\w+)+", source) for source in sources)


def _found(row: MappingRow, document: Mapping[str, Any]) -> Any:
    try:
        return compile_expression(row.source)(document)
    except ExpressionFailed as error:
        raise MappingFailed(f"The expression of {row.path} failed for this user: {error}.") from error


def _check_size(resource: dict[str, Any]) -> None:
    try:
        size = len(orjson.dumps(resource))
    except orjson.JSONEncodeError as error:
        raise MappingFailed("The mapped user cannot be written as JSON.") from error
    if size > MAX_RESOURCE_BYTES:
        raise MappingFailed(f"The mapped user is larger than {MAX_RESOURCE_BYTES} bytes.")


def _parsed(rows: Any) -> tuple[MappingRow, ...]:
    if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_ROWS:
        raise MappingRefused([TableProblem(f"A mapping table is a list of 1 to {MAX_ROWS} rows.")])
    problems = [problem for index, row in enumerate(rows) for problem in _problems_of_row(index, row)]
    if problems:
        raise MappingRefused(problems)
    table = tuple(MappingRow(**row) for row in rows)
    problems = [*_repeated(table), *_mixed_forms(table), *_missing(table)]
    if problems:
        raise MappingRefused(problems)
    return table


def _problems_of_row(index: int, row: Any) -> list[TableProblem]:
    if not isinstance(row, dict) or not {"path", "source"} <= row.keys() <= _FIELDS:
        text = "A row must have the members path and source. The members when, if_empty and enabled are optional; others are refused."
        return [TableProblem(text, index)]
    problems: list[TableProblem] = []
    for name, choices in (("when", _WHEN), ("if_empty", _IF_EMPTY)):
        if row.get(name, choices[0]) not in choices:
            problems.append(TableProblem(f"The member {name} must be one of {', '.join(choices)}.", index, name))
    if not isinstance(row.get("enabled", True), bool):
        problems.append(TableProblem("The member enabled must be true or false.", index, "enabled"))
    return [*problems, *_unreadable(index, row)]


def _unreadable(index: int, row: dict[str, Any]) -> list[TableProblem]:
    problems: list[TableProblem] = []
    readers: tuple[tuple[str, Callable[[str], object]], ...] = (("path", parse_path), ("source", compile_expression))
    for name, read in readers:
        try:
            if not isinstance(row[name], str):
                raise PathRefused(f"The member {name} must be a text of at most {MAX_CHARACTERS} characters.")
            read(row[name])
        except (PathRefused, ExpressionRefused) as error:
            problems.append(TableProblem(str(error), index, name))
    return problems


def _repeated(table: tuple[MappingRow, ...]) -> list[TableProblem]:
    seen: set[str] = set()
    problems = []
    for index, row in enumerate(table):
        if row.path in seen:
            problems.append(TableProblem("Each path may occur once in the table.", index, "path"))
        seen.add(row.path)
    return problems


def _mixed_forms(table: tuple[MappingRow, ...]) -> list[TableProblem]:
    forms: dict[tuple[str, str], str] = {}
    problems = []
    for index, path in enumerate(parse_path(row.path) for row in table):
        if forms.setdefault((path.urn, path.attribute), path.form) != path.form:
            problems.append(TableProblem(f"{path.attribute} is set as a whole in one row and in parts in another.", index, "path"))
    return problems


def _missing(table: tuple[MappingRow, ...]) -> list[TableProblem]:
    present = {row.path for row in table if row.enabled and row.when == "both"}
    reason = "that applies to creates and updates (when=both): the service finds users by this attribute."
    return [TableProblem(f"The table needs an enabled row for {path} {reason}") for path in _REQUIRED_PATHS if path not in present]
