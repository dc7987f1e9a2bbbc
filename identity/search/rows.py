"""Turns conditions into a `Q` on users. Every value is a parameter, and the form of each condition lets PostgreSQL use its indexes."""

from __future__ import annotations

import re
from functools import cached_property

from django.db.models import BooleanField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.functions import Collate, Lower, Reverse
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual

from identity.models import Connection, LinkedIdentity
from identity.models.connections import SOCIAL_STRATEGIES
from identity.search.conditions import (
    Condition,
    DomainIs,
    HasValue,
    IdentityIs,
    JsonHolds,
    JsonLike,
    Never,
    TextBetween,
    TextIs,
    TextLike,
    ValueIs,
    ValueWithin,
)
from identity.search.expressions import SEPARATOR, Constant, IndexedText, IsNotTrue, JsonPredicate, JsonTextLike, Like
from identity.search.fields import INDEXED_TEXT
from identity.search.queries import AllOf, AnyOf, Node, Not, Pattern

# If at most this many users have a matching linked identity, the condition contains their keys and uses an index. For more users, a
# subquery checks each row.
_MOST_LINKED = 1_000
# An unescaped wildcard of LIKE.
_MARKS = re.compile(r"(?<!\\)(?:\\\\)*[%_]")
# Columns in which at most a few users have the same value.
_SELECTIVE = ("user_id", "email", "phone_number")
_INDEXED_VALUES = ("created_at", "last_login", "phone_number")


class UserConditions:
    """Builds the `Q` of conditions on the users of one tenant. Reads the tenant's connections for conditions on identities."""

    def __init__(self, tenant_id: str) -> None:
        self._tenant_id = tenant_id
        self._identities: dict[tuple[str, str], Q] = {}

    def of(self, node: Node[Condition]) -> Q:
        """Translate a tree of conditions into a `Q` on `User`."""
        match node:
            case AllOf(parts):
                return Q(*(self.of(part) for part in parts)) if parts else Q(Constant(value=True))
            case AnyOf(parts):
                return Q(*(self.of(part) for part in parts), _connector=Q.OR) if parts else Q(Constant(value=False))
            case Not(part):
                return Q(IsNotTrue(ExpressionWrapper(self.of(part), BooleanField())))
            case IdentityIs(part, text):
                # Several terms may name the same identity; look it up once.
                if (part, text) not in self._identities:
                    self._identities[part, text] = self._identity(part, text)
                return self._identities[part, text]
        return _of_columns(node)

    def _identity(self, part: str, text: str) -> Q:
        """Return the condition on the primary identity of the user or on the linked identities."""
        linked = LinkedIdentity.objects.of(self._tenant_id)
        if part == "user_id":
            strategies = {strategy for _, _, strategy in self._connections}
            own = Q(user_id__in=[f"{strategy}|{text}" for strategy in strategies]) if strategies else Q(Constant(value=False))
            return self._or_linked(own, linked.filter(provider__in=strategies, identifier=text))
        keys = [key for key, name, strategy in self._connections if _is_of(part, text, name, strategy)]
        own = Q(connection__in=keys) if keys else Q(Constant(value=False))
        if part == "connection":
            return self._or_linked(own, linked.filter(connection__in=keys))
        if part == "provider":
            return self._or_linked(own, linked.filter(provider=text))
        social = Q(provider__in=SOCIAL_STRATEGIES)
        return self._or_linked(own, linked.filter(social if text == "true" else ~social))

    def _or_linked(self, own: Q, linked: QuerySet[LinkedIdentity]) -> Q:
        users = list(linked.order_by().values_list("user_id", flat=True)[: _MOST_LINKED + 1])
        if not users:
            return own
        if len(users) <= _MOST_LINKED:
            return own | Q(pk__in=users)
        return own | Q(Exists(linked.filter(user=OuterRef("pk"))))

    @cached_property
    def _connections(self) -> list[tuple[str, str, str]]:
        return list(Connection.objects.of(self._tenant_id).order_by().values_list("pk", "name", "strategy"))


def is_selective(node: Node[Condition]) -> bool:
    """Tell whether both are true: an index finds the rows of this condition, and there are only a few such rows."""
    match node:
        case AllOf(parts):
            return any(is_selective(part) for part in parts)
        case AnyOf(parts):
            return all(is_selective(part) for part in parts)
        case TextIs(column):
            return column in _SELECTIVE
        case IdentityIs(part):
            return part == "user_id"
    return False


def is_indexed(node: Node[Condition]) -> bool:
    """Tell whether indexes find the rows of this condition, so that a query need not read every user."""
    match node:
        case AllOf(parts):
            return any(is_indexed(part) for part in parts)
        case AnyOf(parts):
            return bool(parts) and all(is_indexed(part) for part in parts)
        case TextIs(column) | TextLike(column):
            return column in INDEXED_TEXT or (isinstance(node, TextIs) and column in _SELECTIVE)
        case JsonHolds(_, _, is_served):
            return is_served
        case ValueWithin(column) | HasValue(column):
            return column in _INDEXED_VALUES
    return isinstance(node, DomainIs | IdentityIs | Never)


def _is_of(part: str, text: str, name: str, strategy: str) -> bool:
    if part == "isSocial":
        return (strategy in SOCIAL_STRATEGIES) is (text == "true")
    return text == (name if part == "connection" else strategy)


def _of_columns(condition: Condition) -> Q:
    match condition:
        case TextIs() | TextLike() | TextBetween() | DomainIs():
            return _of_text(condition)
        case ValueIs(column, value, needs):
            return Q(**{column: value}, **_present(needs))
        case ValueWithin(column, start, end):
            ends = {f"{column}__gte": start, f"{column}__lt": end}
            return Q(**{name: bound for name, bound in ends.items() if bound is not None})
        case HasValue(column, is_text, needs):
            return Q(**(_present(column) if is_text else {f"{column}__isnull": False}), **_present(needs))
        case JsonHolds(column, predicate):
            return Q(JsonPredicate(F(column), Value(predicate)))
        case JsonLike(column, path, pattern):
            return Q(JsonTextLike(column, f"{path}[*]", _like(pattern)))
        case Never():
            return Q(Constant(value=False))
    raise TypeError(condition)


def _present(column: str) -> dict[str, str]:
    """Return a lookup that requires a non-empty text: the API omits empty texts, so an empty text counts as missing."""
    return {f"{column}__gt": ""} if column else {}


def _of_text(condition: TextIs | TextLike | TextBetween | DomainIs) -> Q:
    match condition:
        case TextIs(column, text, is_folded):
            if not is_folded:
                return Q(**{column: text})
            found = Q(Exact(Lower(column), Lower(Value(text))))
            # The email address has its own index.
            return found if column == "email" else found & _narrowed(column, _escaped(text))
        case TextLike(column, pattern, is_folded):
            return _patterned(column, _like(pattern), is_folded=is_folded)
        case DomainIs(column, domain):
            return _patterned(column, f"%@{_escaped(domain)}", is_folded=True)
    return _between(condition)


def _patterned(column: str, pattern: str, *, is_folded: bool) -> Q:
    if not is_folded:
        return Q(Like(F(column), Value(pattern))) & Q(**_present(column))
    end = pattern[1:]
    if column == "email" and pattern[0] == "%" and not _MARKS.search(end):
        # The end of an address is the start of the reversed address, which has an index.
        return Q(Like(Reverse(Lower(column)), Lower(Value(f"{_escaped(_literal(end)[::-1])}%"))))
    return Q(Like(Lower(column), Lower(Value(pattern)))) & _narrowed(column, pattern)


def _narrowed(column: str, pattern: str) -> Q:
    """Return the same condition on the concatenated texts, which the trigram index serves.

    The caller combines the result with the condition on the column, which removes false matches.
    """
    if column not in INDEXED_TEXT:
        return Q()
    return Q(Like(IndexedText(), Lower(Value(f"%{SEPARATOR}{pattern}{SEPARATOR}%"))))


def _between(condition: TextBetween) -> Q:
    text = Collate(Lower(condition.column) if condition.is_folded else F(condition.column), "C")
    found = Q(**_present(condition.column))
    for bound, lookup in (
        (condition.low, GreaterThanOrEqual if condition.includes_low else GreaterThan),
        (condition.high, LessThanOrEqual if condition.includes_high else LessThan),
    ):
        if bound is not None:
            value = Value(bound, output_field=TextField())
            found &= Q(lookup(text, Lower(value) if condition.is_folded else value))
    return found


def _like(pattern: Pattern) -> str:
    marks = ["_" if single else "%" for single in pattern.singles]
    return "".join(_escaped(piece) + mark for piece, mark in zip(pattern.pieces, [*marks, ""], strict=True))


def _literal(pattern: str) -> str:
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
