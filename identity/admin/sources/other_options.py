"""Options of a connection without a form field of their own, as rows of a name and a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError

from foundation.admin.value_fields import ValuesField
from identity.options.schemas.nodes import Members


class OptionsField(ValuesField):
    """A map of options. Members of an object with known members have rows of their own, such as `mfa.active`."""

    # The schema of the strategy. The form sets it.
    schema = Members({})

    def to_python(self, value: Any) -> Any:
        found = super().to_python(value)
        if double := next((name for name in found if any(other.startswith(f"{name}.") for other in found)), None):
            raise ValidationError(
                f"“{double[:40]}” has a row, and its members have rows, too. Keep the row of “{double[:40]}” or the rows of its members."
            )
        return nested(self.schema, found)

    def prepare_value(self, value: Any) -> Any:
        return super().prepare_value(flattened(self.schema, value) if isinstance(value, Mapping) else value)


def flattened(schema: Members, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with one name for each member of an object with known members, such as `mfa.active`."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        node = schema.nodes.get(name)
        if isinstance(node, Members) and isinstance(value, Mapping) and value:
            found |= {f"{name}.{inner}": member for inner, member in flattened(node, value).items()}
        else:
            found[name] = value
    return found


def nested(schema: Members, rows: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nested options: the inverse of `flattened`. A dot after a name that is no object in the schema stays in the name."""
    found: dict[str, Any] = {}
    for name, value in rows.items():
        place, node, parts = found, schema, name.split(".")
        while len(parts) > 1 and isinstance(inner := node.nodes.get(parts[0]), Members):
            held = place.get(parts[0])
            place[parts[0]] = held if isinstance(held, dict) else {}
            place, node, parts = place[parts[0]], inner, parts[1:]
        place[".".join(parts)] = value
    return found
