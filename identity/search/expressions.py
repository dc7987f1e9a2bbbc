"""SQL that Django's expressions do not cover: the text of the trigram index, JSON paths, and a negation that is true for missing values."""

from __future__ import annotations

from typing import Any

from django.db.models import BooleanField, F, Func, TextField, Value

from identity.search.fields import INDEXED_TEXT

# Separates and surrounds the texts in the trigram index, so that a pattern can match a whole text.
SEPARATOR = "\n"


class IndexedText(Func):
    """The texts of a user in `INDEXED_TEXT`, concatenated in lower case. This is the expression of the trigram index."""

    # Everything except the columns is literal, because PostgreSQL uses the index only for the same expression, without parameters.
    arg_joiner = " || E'\\n' || "
    template = "LOWER(E'\\n' || %(expressions)s || E'\\n')"
    output_field = TextField()

    def __init__(self) -> None:
        super().__init__(*(_OrEmpty(F(column)) for column in INDEXED_TEXT))


class _OrEmpty(Func):
    template = "COALESCE(%(expressions)s, '')"
    output_field = TextField()


class Like(Func):
    """`column LIKE pattern`; the pattern is a parameter."""

    template = "(%(expressions)s)"
    arg_joiner = " LIKE "
    output_field = BooleanField()


class JsonPredicate(Func):
    """`column @@ path`. An index serves the predicate if the path compares only with `==`."""

    template = "(%(expressions)s::jsonpath)"
    arg_joiner = " @@ "
    output_field = BooleanField()


class JsonTextLike(Func):
    """Whether a text at the path of the JSON matches the pattern."""

    template = (
        "EXISTS (SELECT 1 FROM jsonb_path_query(%(expressions)s) AS found (item)"
        " WHERE jsonb_typeof(item) = 'string' AND (item #>> '{}') LIKE %(pattern)s)"
    )
    output_field = BooleanField()

    def __init__(self, column: str, path: str, pattern: str) -> None:
        super().__init__(F(column), JsonPath(Value(path)), Value(pattern))

    def as_sql(self, compiler: Any, connection: Any, *_: Any, **__: Any) -> Any:
        column, path, pattern = (compiler.compile(part) for part in self.get_source_expressions())
        sql = self.template % {"expressions": f"{column[0]}, {path[0]}", "pattern": pattern[0]}
        return sql, [*column[1], *path[1], *pattern[1]]


class JsonPath(Func):
    """A parameter that is cast to a JSON path."""

    template = "%(expressions)s::jsonpath"
    output_field = TextField()


class IsNotTrue(Func):
    """True if the condition is false or unknown: a missing value differs from every requested value."""

    template = "((%(expressions)s) IS NOT TRUE)"
    output_field = BooleanField()


class Constant(Func):
    """A literal TRUE or FALSE, which is also correct inside a negation. There, Django's own empty conditions would wrongly select all rows,
    or no rows."""

    output_field = BooleanField()

    def __init__(self, *, value: bool) -> None:
        super().__init__()
        self._is_true = value

    def as_sql(self, compiler: Any, connection: Any, *_: Any, **__: Any) -> Any:
        return ("TRUE" if self._is_true else "FALSE"), []
