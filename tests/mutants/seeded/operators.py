"""Makes every mutant of a source text: a comparison, a constant, a statement, a condition, an argument or a piece of SQL is changed.

Imports no module of the product. Each mutant replaces one piece of the text and leaves the rest unchanged.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# Each operator and its replacement.
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_CALCULATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_SQL = re.compile(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b")
_SQL_PIECES: tuple[tuple[str, str], ...] = (
    (r" FOR (NO KEY )?UPDATE\b", ""), (r" SKIP LOCKED", ""), (r"\bDISTINCT ", ""), (r"\bgreatest\(", "least("), (r" DESC\b", ""),
    (r" NOT EXISTS\b", " EXISTS"), (r" IS NOT NULL\b", " IS NULL"), (r" IS NULL\b", " IS NOT NULL"), (r" <= ", " < "), (r" >= ", " > "),
    (r" < ", " <= "), (r" > ", " >= "), (r" <> ", " = "), (r"(?<=\w) \+ 1\b", " + 2"), (r" AND NOT [\w.]+", ""),
    (r" AND [\w.]+ = [^\s()]+(?=\s|$|\))", ""), (r" AND [\w.]+ = ANY\([^()]*\)", ""), (r"\bDO NOTHING\b", ""), (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"), (r" LIMIT (%\(\w+\)s|\d+)", ""),
)  # fmt: skip
# What is replaced (a node, or the start and end offsets of a piece), its replacement, and the name of the mutation operator.
_Replacement = tuple[ast.AST | tuple[int, int], str, str]
_LOGGERS = frozenset({"logger", "metrics"})


@dataclass(frozen=True, order=True)
class Change:
    """One piece of a source text and its replacement. `symbol` is the function, class or constant that contains it.

    `function` is the outermost function that contains the piece, or empty outside of functions.
    """

    begin: int
    end: int
    old: str = field(compare=False)
    new: str
    operator: str
    symbol: str = field(compare=False)
    line: int = field(compare=False)
    function: str = field(compare=False, default="")

    def applied(self, source: str) -> str:
        return source[: self.begin] + self.new + source[self.end :]

    def __str__(self) -> str:
        return f"{self.symbol}:{self.line} {self.operator}: {_short(self.old)} -> {_short(self.new) or 'nothing'}"


def changes_of(source: str) -> list[Change]:
    """Return the mutants of the text, in the order of the changed pieces. Each mutant is valid Python and differs from the text."""
    original = ast.dump(ast.parse(source))
    return [change for change in sorted(set(_Walk(source).changes())) if _differs(change.applied(source), original)]


def function_at(source: str, line: int) -> str:
    """Return the qualified name of the outermost function at a line, or an empty text outside of functions."""
    return next((name for name, node in _functions(ast.parse(source), "") if node.lineno <= line <= (node.end_lineno or 0)), "")


def _functions(parent: ast.AST, prefix: str) -> Iterator[tuple[str, ast.stmt]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")


def _differs(source: str, original: str) -> bool:
    try:
        return ast.dump(ast.parse(source)) != original
    except SyntaxError:
        return False


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else f"{flat[:57]}..."


class _Walk:
    """Walks through the syntax tree of one text. Skips annotations, docstrings, log messages and names of fields."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tree = ast.parse(source)
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = source.splitlines()

    def changes(self) -> Iterator[Change]:
        yield from self._in(self._tree, "", "")

    def _in(self, node: ast.AST, symbol: str, function: str) -> Iterator[Change]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            symbol = f"{symbol}.{node.name}".lstrip(".")
            function = function or ("" if isinstance(node, ast.ClassDef) else symbol)
        elif isinstance(node, ast.Assign) and not symbol and isinstance(node.targets[0], ast.Name):
            symbol = node.targets[0].id
        elif isinstance(node, ast.Import | ast.ImportFrom) or _is_quiet(node):
            return
        for old, new, operator in self._replacements(node):
            begin, end = old if isinstance(old, tuple) else self._span(old)
            line = self._source.count("\n", 0, begin) + 1
            yield Change(begin, end, self._source[begin:end], new, operator, symbol or "module", line, function)
        for child in _children(node):
            yield from self._in(child, symbol, function)

    def _replacements(self, node: ast.AST) -> Iterator[_Replacement]:
        match node:
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp() | ast.BinOp():
                yield from ((node, new, operator) for new, operator in _calculated(node))
            case ast.Constant(value=value):
                yield from self._constants(node, value)
            case ast.JoinedStr():
                yield from self._sql_pieces(node)
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                yield from ((test, new, "removed condition") for new in ("True", "False"))
            case ast.comprehension(ifs=ifs):
                yield from ((test, "True", "removed condition") for test in ifs)
            case _:
                yield from self._acts(node)

    def _acts(self, node: ast.AST) -> Iterator[_Replacement]:
        match node:
            case ast.Call(args=[first, second, *_]) if not any(isinstance(one, ast.Starred) for one in (first, second)):
                span = (self._span(first)[0], self._span(second)[1])
                yield span, f"{ast.unparse(second)}, {ast.unparse(first)}", "swapped argument"
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield value, "None", "returned value"
            case ast.Expr() | ast.Raise() | ast.AugAssign() | ast.Delete():
                yield node, "pass", "removed statement"

    def _constants(self, node: ast.Constant, value: object) -> Iterator[_Replacement]:
        if isinstance(value, bool):
            yield node, str(not value), "constant"
        elif isinstance(value, int | float):
            yield node, repr(value + 1), "constant"
        elif isinstance(value, str) and _SQL.search(value):
            yield from self._sql_pieces(node)
        elif isinstance(value, str) and value:
            yield node, '""', "constant"

    def _sql_pieces(self, node: ast.expr) -> Iterator[tuple[tuple[int, int], str, str]]:
        begin, end = self._span(node)
        text = self._source[begin:end]
        if not _SQL.search(text):
            return
        for pattern, new in _SQL_PIECES:
            for found in re.finditer(pattern, text):
                yield (begin + found.start(), begin + found.end()), new, "SQL"

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        # The parser gives columns in bytes, and the positions of changes are in characters.
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def _calculated(node: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield the replacements of a comparison, a boolean expression or a calculation, with the names of the mutation operators."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            yield ast.unparse(ast.Compare(node.left, [_COMPARISONS[type(operator)]()], node.comparators)), "comparison"
        case ast.BoolOp(op=operator, values=values):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield f"({ast.unparse(ast.BoolOp(other, values))})", "boolean"
            for left_out in range(len(values)):
                kept = [value for number, value in enumerate(values) if number != left_out]
                yield f"({ast.unparse(kept[0] if len(kept) == 1 else ast.BoolOp(operator, kept))})", "removed condition"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"({ast.unparse(operand)})", "boolean"
        case ast.BinOp(op=operator) if type(operator) in _CALCULATIONS:
            yield f"({ast.unparse(ast.BinOp(node.left, _CALCULATIONS[type(operator)](), node.right))})", "calculation"


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params"} or isinstance(node, ast.JoinedStr):
            continue
        children: Sequence[object] = value if isinstance(value, list) else [value]
        yield from (child for child in children if isinstance(child, ast.AST))


def _is_quiet(node: ast.AST) -> bool:
    """Tell whether the node is a docstring, or a call for a log or a metric. Tests of behavior do not notice changes of such nodes."""
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, ast.Constant):
        return True
    call = node.value.func if isinstance(node.value, ast.Call) else None
    while isinstance(call, ast.Attribute | ast.Call):
        call = call.value if isinstance(call, ast.Attribute) else call.func
    return isinstance(call, ast.Name) and call.id in _LOGGERS
