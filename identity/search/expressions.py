"""SQL that Django has no expression for: text joined for the trigram index, JSON paths, and a negation without a third value."""

from __future__ import annotations

from typing import Any

from django.db.models import BooleanField, F, Func, TextField, Value

from identity.search.fields import INDEXED_TEXT

# Stands between the texts that the trigram index joins, and around them: so a pattern can be anchored.
SEPARATOR = "\n"


class IndexedText(Func):
    """Every searchable text of a user in one, lower-cased: the expression of the trigram index, which serves one index for all."""

    # PostgreSQL compares it with the index's: all but the columns is literal, without parameters.
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
    """`column @@ path`: served by an index where the path compares with `==` only."""

    template = "(%(expressions)s::jsonpath)"
    arg_joiner = " @@ "
    output_field = BooleanField()


class JsonTextLike(Func):
    """Whether a text at the path of the JSON has the pattern."""

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
    """A parameter as a path."""

    template = "%(expressions)s::jsonpath"
    output_field = TextField()


class IsNotTrue(Func):
    """True where the condition is false or unknown: what has no value does not have the value that is asked for."""

    template = "((%(expressions)s) IS NOT TRUE)"
    output_field = BooleanField()


class Constant(Func):
    """TRUE or FALSE in words. Django's own empty conditions would empty or fill the whole statement around a negation."""

    output_field = BooleanField()

    def __init__(self, *, value: bool) -> None:
        super().__init__()
        self._is_true = value

    def as_sql(self, compiler: Any, connection: Any, *_: Any, **__: Any) -> Any:
        return ("TRUE" if self._is_true else "FALSE"), []
