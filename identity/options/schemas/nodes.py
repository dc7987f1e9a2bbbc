"""Building blocks of option schemas, which determine the readable and the sealed members. Pure.

A schema lists the readable members and the known secrets. All members except the readable ones are sealed: secrets, unknown members, and
members whose value does not have the shape in the schema. Paths are JSON pointers (RFC 6901) without the leading slash, so the path of a
first-level member is its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from foundation.secrets.hidden_values import is_secret

Path = str
# Credentials in a URL (before the host) and private keys in PEM are secrets, in a member with any name.
_HOLDS_SECRET = re.compile(r"\A\s*[a-z][a-z0-9+.-]*://[^/?#\s]*@|-----BEGIN [A-Z0-9 ]*PRIVATE KEY", re.IGNORECASE)


@dataclass(frozen=True)
class Readable:
    """Text, a number, a boolean, null, or a list of these. If `has_query` is False, addresses with a query string are sealed."""

    has_query: bool = True


@dataclass(frozen=True)
class Secret:
    """A value that is never shown again. It may have any shape."""


@dataclass(frozen=True)
class Members:
    """An object with known members."""

    nodes: Mapping[str, Node]


@dataclass(frozen=True)
class Each:
    """An object whose members have arbitrary names and one schema.

    With `is_plain_too`, the options may have a text, number, boolean or list in place of the object, if the schema of the members permits
    this value. With `has_secret_names`, a member with the name of a secret, such as `client_secret`, is sealed.
    """

    node: Node
    is_plain_too: bool = False
    has_secret_names: bool = False

    def member(self, name: str) -> Node:
        """Return the schema of one member."""
        return SECRET if self.has_secret_names and is_secret(name) else self.node


@dataclass(frozen=True)
class Mapped:
    """Nested objects whose leaves are readable. They map names of attributes to expressions."""


Node = Readable | Secret | Members | Each | Mapped
READABLE = Readable()
SECRET = Secret()
ADDRESS = Readable(has_query=False)
MAPPED = Mapped()


def readable(names: str) -> dict[str, Node]:
    """Return members that are readable. `names` contains the names of the members, separated by spaces."""
    return dict.fromkeys(names.split(), READABLE)


@dataclass(frozen=True)
class Parts:
    """Options in two parts: the readable options, and the sealed values by path. The `repr` omits the values."""

    shown: dict[str, Any]
    secrets: dict[Path, Any] = field(repr=False)


def split(schema: Members, options: Mapping[str, Any]) -> Parts:
    """Split `options` into readable and sealed members by `schema`. A sealed member that is null is left out."""
    secrets: dict[Path, Any] = {}
    shown = _shown_members(schema, options, (), secrets)
    return Parts(shown, secrets)


def joined(shown: Mapping[str, Any], secrets: Mapping[Path, Any]) -> dict[str, Any]:
    """Return the options from the two parts of `split`."""
    whole: dict[str, Any] = _copied(shown)
    for path, value in secrets.items():
        *parents, name = names_of(path)
        place = whole
        for parent in parents:
            inner = place.get(parent)
            if not isinstance(inner, dict):
                inner = place[parent] = {}
            place = inner
        place[name] = value
    return whole


def is_kept(path: Path, *, shown: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Tell whether a change keeps a sealed value. `shown` has the options that the client could read, and `sent` has the new options.

    The value is kept if the new options leave out its path. But if the client could read an enclosing object and leaves this object out,
    the object is removed with its secrets. The value is replaced in two cases: the new options have anything, even null, at its path; or
    they have anything other than an object, even null, in place of an enclosing object.
    """
    seen: Any = shown
    given: Any = sent
    for name in names_of(path):
        if not isinstance(given, Mapping):
            return False
        if name not in given:
            return not (isinstance(seen, Mapping) and name in seen)
        given = given[name]
        seen = seen.get(name) if isinstance(seen, Mapping) else None
    return False


def is_declared(schema: Members, path: Path) -> bool:
    """Tell whether the schema declares the value at `path` as a secret or as an object that contains a secret."""
    node: Node | None = schema
    for name in names_of(path):
        node = node.nodes.get(name) if isinstance(node, Members) else node.member(name) if isinstance(node, Each) else None
        if isinstance(node, Secret):
            return True
    return node is not None and any(secret_paths(node))


def secret_paths(node: Node, names: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield the path of each secret that the schema declares; `*` means an arbitrary name."""
    if isinstance(node, Secret):
        yield path_of(names)
    elif isinstance(node, Members):
        for name, inner in node.nodes.items():
            yield from secret_paths(inner, (*names, name))
    elif isinstance(node, Each):
        yield from secret_paths(node.node, (*names, "*"))


def value_at(path: Path, options: Mapping[str, Any]) -> Any:
    """Return the value at a path, or None."""
    value: Any = options
    for name in names_of(path):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def path_of(names: tuple[str, ...]) -> Path:
    return "/".join(name.replace("~", "~0").replace("/", "~1") for name in names)


def names_of(path: Path) -> list[str]:
    return [name.replace("~1", "/").replace("~0", "~") for name in path.split("/")]


def _shown_members(node: Members | Each, options: Mapping[str, Any], names: tuple[str, ...], secrets: dict[Path, Any]) -> dict[str, Any]:
    """Return the readable members of an object, and collect all other members in `secrets`."""
    shown: dict[str, Any] = {}
    for name, value in options.items():
        inner = node.nodes.get(name) if isinstance(node, Members) else node.member(name)
        place = (*names, name)
        if isinstance(inner, Members | Each) and isinstance(value, Mapping):
            member = _shown_members(inner, value, place, secrets)
            # An object that contains only secrets is not shown. So a client that leaves it out keeps the secrets: a missing object is
            # removed only if the client could read it.
            if member or not value:
                shown[name] = member
        elif _is_readable(inner, value):
            shown[name] = _copied(value)
        elif value is not None:
            secrets[path_of(place)] = value
    return shown


def _is_readable(node: Node | None, value: Any) -> bool:
    if isinstance(node, Readable):
        return all(_is_plain(node, item) for item in (value if isinstance(value, list) else [value]))
    if isinstance(node, Each):
        return node.is_plain_too and _is_readable(node.node, value)
    return isinstance(node, Mapped) and _is_mapped(value)


def _is_plain(node: Readable, value: Any) -> bool:
    if isinstance(value, str):
        return not _HOLDS_SECRET.search(value) and (node.has_query or "?" not in value)
    return value is None or isinstance(value, bool | int | float)


def _is_mapped(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_mapped(item) for item in value.values())
    return _is_readable(READABLE, value)


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(item) for name, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
