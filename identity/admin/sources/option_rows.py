"""Options of a connection that are maps, as rows: claims for fields of the profile, and parameters for the provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError

from foundation.admin.column_rows import Cells, Column, Rows, RowsField, is_cell
from foundation.secrets.hidden_values import is_secret

# Maximum length of a claim in a row. It permits every attribute of SAML, because the options limit these to 500 characters.
_LONGEST_CLAIM = 512
_LONGEST_VALUE = 2000
_CHOOSE = ("", "Choose a field")
_FIXED, _PASSED = "value", "alias"
_SOURCES = ((_FIXED, "Fixed value"), (_PASSED, "From the application"))


class ClaimsField(RowsField):
    """Rows, each with a claim of the provider and the field of the profile that this claim fills.

    With `repeats`, a field may have several rows: the first of these rows whose claim has a value fills the field.
    """

    def __init__(self, *, claim: str, fields: tuple[str, ...], repeats: bool, initial: Any = None, **options: Any) -> None:
        self._fields, self._repeats = fields, repeats
        stored = initial if isinstance(initial, Mapping) else {}
        # An unknown stored name is kept, and has no effect.
        unknown = tuple((name, f"{name} (unknown field)") for name in stored if name not in fields and is_cell(name))
        choices = (_CHOOSE, *((name, name) for name in fields), *unknown)
        columns = (Column("claim", claim, longest=_LONGEST_CLAIM), Column("field", "Field of the profile", choices))
        super().__init__(columns=columns, initial=initial, **options)

    def rows_of(self, stored: Mapping[str, Any]) -> tuple[list[Cells], dict[str, Any]]:
        rows: list[Cells] = []
        kept: dict[str, Any] = {}
        known = [name for name in self._fields if name in stored]
        for field in (*known, *(name for name in stored if name not in known)):
            claims = self._claims(stored[field])
            if claims and is_cell(field):
                rows += [(claim, field) for claim in claims]
            else:
                kept[field] = stored[field]
        return rows, kept

    def map_of(self, rows: list[tuple[int, Cells]]) -> dict[str, Any]:
        found: dict[str, list[str]] = {}
        for number, (claim, field) in rows:
            self._check(number, claim, field, found)
            found.setdefault(field, []).append(claim)
        return {field: self._joined(field, claims) for field, claims in found.items()}

    def _check(self, number: int, claim: str, field: str, found: Mapping[str, list[str]]) -> None:
        if not field:
            raise ValidationError(f"Row {number}: choose the field of the profile for “{claim[:40]}”.")
        if field not in dict(self.columns[1].choices):
            raise ValidationError(f"Row {number}: “{field[:40]}” is not a field of the profile.")
        if not claim:
            raise ValidationError(f"Row {number}: enter the {self.columns[0].label.lower()} for {field}.")
        if field in found and (not self._repeats or claim in found[field]):
            raise ValidationError(f"Row {number}: another row fills {field} already.")

    def _claims(self, value: Any) -> list[str]:
        """Return the claims of a stored member; empty if rows cannot represent them."""
        named = value if isinstance(value, list) and self._repeats else [value]
        is_plain = all(is_cell(name, _LONGEST_CLAIM) for name in named) and len(set(named)) == len(named)
        return named if is_plain else []

    def _joined(self, field: str, claims: list[str]) -> Any:
        """Return one claim as text and several as a list. A stored list of one claim stays a list."""
        stored = self.initial.get(field) if isinstance(self.initial, Mapping) else None
        return claims if len(claims) > 1 or claims == stored else claims[0]


class TextsField(RowsField):
    """Rows of a name and a text. With `refuses_secrets`, names of secrets are refused, because pages show the texts."""

    def __init__(self, *, columns: tuple[str, str], refuses_secrets: bool, initial: Any = None, **options: Any) -> None:
        self._refuses_secrets = refuses_secrets
        name, text = columns
        super().__init__(columns=(Column("name", name), Column("text", text, longest=_LONGEST_VALUE)), initial=initial, **options)

    def rows_of(self, stored: Mapping[str, Any]) -> tuple[list[Cells], dict[str, Any]]:
        kept = {name: text for name, text in stored.items() if not (is_cell(name) and is_cell(text, _LONGEST_VALUE))}
        return [(name, text) for name, text in stored.items() if name not in kept], kept

    def map_of(self, rows: list[tuple[int, Cells]]) -> dict[str, Any]:
        found: dict[str, str] = {}
        for number, (name, text) in rows:
            _check_name(number, name, found)
            if self._refuses_secrets and is_secret(name):
                raise ValidationError(f"Row {number}: {name[:40]} is a secret. Set it with the management interface, which encrypts it.")
            if not text:
                raise ValidationError(f"Row {number}: enter a value for “{name[:40]}”.")
            found[name] = text
        return found

    def prepare_value(self, value: Any) -> Any:
        """Leave out refused secrets, so that they are not sent back."""
        if not (isinstance(value, Rows) and self._refuses_secrets):
            return super().prepare_value(value)
        return Rows([(name, "" if is_secret(name.strip()) else text) for name, text in value])


class ParametersField(RowsField):
    """Rows, each with a parameter for the provider: a fixed value, or a parameter of the application's request that is passed on."""

    def __init__(self, *, initial: Any = None, **options: Any) -> None:
        columns = (
            Column("name", "Parameter"),
            Column("source", "Source", _SOURCES),
            Column("text", "Value, or name of the application's parameter", longest=_LONGEST_VALUE),
        )
        super().__init__(columns=columns, initial=initial, **options)

    def rows_of(self, stored: Mapping[str, Any]) -> tuple[list[Cells], dict[str, Any]]:
        rows: list[Cells] = []
        kept: dict[str, Any] = {}
        for name, rule in stored.items():
            source = next(iter(rule)) if isinstance(rule, Mapping) and len(rule) == 1 else None
            if source in (_FIXED, _PASSED) and is_cell(name) and is_cell(rule[source], _LONGEST_VALUE):
                rows.append((name, source, rule[source]))
            else:
                kept[name] = rule
        return rows, kept

    def map_of(self, rows: list[tuple[int, Cells]]) -> dict[str, Any]:
        found: dict[str, dict[str, str]] = {}
        for number, (name, source, text) in rows:
            _check_name(number, name, found)
            if source not in dict(_SOURCES):
                raise ValidationError(f"Row {number}: choose the source of “{name[:40]}”.")
            if not text:
                raise ValidationError(f"Row {number}: enter a value for “{name[:40]}”.")
            found[name] = {source: text}
        return found


def _check_name(number: int, name: str, found: Mapping[str, Any]) -> None:
    if not name:
        raise ValidationError(f"Row {number}: enter a name.")
    if name in found:
        raise ValidationError(f"Row {number}: the name “{name[:40]}” appears twice.")
