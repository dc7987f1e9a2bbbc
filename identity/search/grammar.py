"""Parses the text of a query to clauses, with Lucene's meaning of operators. Pure.

`luqum` parses the text. This module interprets its tree like Lucene's classic parser: the operators of one level have no
precedence; each term is required, optional or prohibited (ADR 0080).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Lock
from typing import Any

from luqum import tree
from luqum.exceptions import ParseError
from luqum.parser import parser

from identity.search.literals import matcher_of, parts_of, unescaped
from identity.search.queries import (
    DEEPEST,
    EVERYTHING,
    LONGEST,
    MOST_TERMS,
    AllOf,
    AnyOf,
    Between,
    Clause,
    Exact,
    Exists,
    InvalidSearch,
    Matcher,
    Not,
    Term,
)

EXISTS = "_exists_"
# PLY's parser and lexer store the state of a run, so runs need a lock. A run takes 0.1 ms, and at most 0.1 s for the longest text.
_lock = Lock()
_TOO_MANY_TERMS = f"the query has more than {MOST_TERMS} terms"
_POSITION = re.compile(r"position (\d+)")
_PHRASE = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
# A term has at most five words: its operator, NOT, and a range with TO. Checked before parsing, because PLY's time is quadratic.
_MOST_WORDS = 5 * MOST_TERMS
_FOREIGN_OPERATORS = re.compile(r"&&|\|\||!.*")


def parsed_search(text: str) -> Clause:
    """Return the clauses of a query. Raises `InvalidSearch` with a readable reason."""
    if len(text) > LONGEST:
        raise InvalidSearch(f"the query has more than {LONGEST} characters")
    if not text.strip():
        raise InvalidSearch("the query is empty")
    if len(_PHRASE.sub(" ", text).split()) > _MOST_WORDS:
        raise InvalidSearch(_TOO_MANY_TERMS)
    return _Reader().clause(_tree(text), (), 0)


def _tree(text: str) -> Any:
    try:
        with _lock:
            return parser.parse(text)
    except ParseError as error:
        raise InvalidSearch(_in_words(text, str(error))) from error
    except (ValueError, ArithmeticError) as error:
        # `luqum` parses the numbers of boosts and distances itself and does not catch Python's errors.
        raise InvalidSearch("a number after ^ or ~ cannot be read") from error


def _in_words(text: str, reason: str) -> str:
    """Describe the position at which parsing failed. Only the message of `luqum` contains the position."""
    found = _POSITION.findall(reason)
    if text.count('"') % 2 and (not found or text[int(found[-1])] == '"'):
        return "a quotation mark is not closed"
    if not found:
        return "the query ends too early; a bracket may not be closed"
    place = int(found[-1])
    return f"the query cannot be read from character {place + 1} on: {text[place : place + 20]}"


class _Reader:
    """Turns one tree of `luqum` into clauses and counts its terms."""

    def __init__(self) -> None:
        self._terms = 0

    def clause(self, node: Any, path: tuple[str, ...], depth: int) -> Clause:
        """Return the clause of `node`; `path` is the enclosing field."""
        if depth > DEEPEST:
            raise InvalidSearch(f"the query is nested deeper than {DEEPEST} levels")
        match node:
            case tree.AndOperation() | tree.OrOperation() | tree.UnknownOperation() | tree.Plus() | tree.Prohibit() | tree.Not():
                return self._boolean(node, path, depth)
            case tree.Group() | tree.FieldGroup() | tree.Boost():
                # Ignore a boost: it only affects ranking, and results are sorted by a field.
                return self.clause(node.children[0], path, depth + 1)
            case tree.SearchField():
                return self._of_field(node, depth)
        return self._term(node, path)

    def _of_field(self, node: Any, depth: int) -> Clause:
        name, value = node.name, node.expr
        if name == EXISTS:
            return self._counted(Term(parts_of(_name_in(value)), Exists()))
        if name == "*" and isinstance(value, tree.Word) and value.value == "*":
            return EVERYTHING
        if isinstance(value, tree.Plus | tree.Prohibit) and isinstance(value.a, tree.Word):
            # Lucene refuses `phone_number:+49` and `number:-1`. They have only one possible meaning, so accept them.
            sign = "+" if isinstance(value, tree.Plus) else "-"
            return self._counted(Term(parts_of(name), matcher_of(sign + value.a.value)))
        return self.clause(value, parts_of(name), depth + 1)

    def _boolean(self, node: Any, path: tuple[str, ...], depth: int) -> Clause:
        """Combine the terms of one level like Lucene's `BooleanQuery`.

        1. AND makes the terms on both sides required. OR, or no operator, leaves these terms optional.
        2. `+` requires a term; `-` and NOT prohibit a term.
        3. All required terms must match and no prohibited term may match. Without a required term, one optional term must match.
        If all terms are prohibited, the level matches every user whom no term matches, as in Elasticsearch.
        """
        required: list[Clause] = []
        optional: list[Clause] = []
        prohibited: list[Clause] = []
        level = list(_level(node))
        for place, (operator, modifier, operand) in enumerate(level):
            is_joined = operator == "AND" or (place + 1 < len(level) and level[place + 1][0] == "AND")
            found = self.clause(operand, path, depth + 1)
            kind = prohibited if modifier == "-" else required if modifier == "+" or is_joined else optional
            kind.append(found)
        parts = required + [Not(clause) for clause in prohibited]
        if optional and not required:
            parts.insert(0, AnyOf(tuple(optional)) if len(optional) > 1 else optional[0])
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _term(self, node: Any, path: tuple[str, ...]) -> Clause:
        if isinstance(node, tree.Word) and not path:
            if _FOREIGN_OPERATORS.fullmatch(node.value):
                raise InvalidSearch("&&, || and ! are not operators here; write AND, OR and NOT")
            if node.value == "*":
                return EVERYTHING
        return self._counted(Term(path, _matcher(node)))

    def _counted(self, term: Term) -> Term:
        self._terms += 1
        if self._terms > MOST_TERMS:
            raise InvalidSearch(_TOO_MANY_TERMS)
        return term


def _level(node: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the terms of one level from left to right: the operator before the term, its modifier, and the term.

    Flattens the tree of `luqum`, which nests by a precedence that Lucene does not have. Brackets are separate nodes and stay intact.
    """
    waiting: list[tuple[str, Any]] = [("", node)]
    while waiting:
        before, current = waiting.pop()
        if isinstance(current, tree.AndOperation | tree.OrOperation | tree.UnknownOperation):
            between = "AND" if isinstance(current, tree.AndOperation) else ""
            operands = current.children
            waiting.extend((between, operand) for operand in reversed(operands[1:]))
            waiting.append((before, operands[0]))
        elif isinstance(current, tree.Plus | tree.Prohibit | tree.Not):
            yield before, "+" if isinstance(current, tree.Plus) else "-", current.a
        else:
            yield before, "", current


def _matcher(node: Any) -> Matcher:
    match node:
        case tree.Word():
            return matcher_of(node.value)
        case tree.Phrase():
            return Exact(unescaped(node.value[1:-1]))
        case tree.Range():
            return _between(node)
        case tree.From():
            return Between(_bound(node.a), None, includes_low=node.include)
        case tree.To():
            return Between(None, _bound(node.a), includes_high=node.include)
        case tree.Regex():
            raise InvalidSearch("regular expressions are not supported; put a slash into quotation marks")
    raise InvalidSearch("fuzzy searches with ~ are not supported; put a tilde into quotation marks")


def _between(node: Any) -> Between:
    return Between(_bound(node.low), _bound(node.high), bool(node.include_low), bool(node.include_high))


def _bound(node: Any) -> str | None:
    if isinstance(node, tree.Prohibit):
        return f"-{unescaped(node.a.value)}"
    return None if isinstance(node, tree.Word) and node.value == "*" else _text_of(node)


def _text_of(node: Any) -> str:
    if isinstance(node, tree.Phrase):
        return unescaped(node.value[1:-1])
    if isinstance(node, tree.Word):
        return unescaped(node.value)
    raise InvalidSearch("a word or a text in quotation marks is expected")


def _name_in(node: Any) -> str:
    """Return the name in `_exists_`, with its escapes: an escaped dot is part of a key, an unescaped dot separates keys."""
    if isinstance(node, tree.Word):
        return str(node.value)
    if isinstance(node, tree.Phrase):
        return str(node.value[1:-1])
    raise InvalidSearch("_exists_ needs the name of one field")
