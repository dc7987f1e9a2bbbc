"""Templates of tenants: Liquid without files, objects or work without end (docs/adr/0100). Pure.

The engine of python-liquid evaluates no Python. What it leaves open is closed here:

1. Data is text, numbers, switches, lists and objects of these (`plain`), so no attribute leads to an object of ours.
2. Tags that load other templates are gone, and so are ranges, which become lists of any length before a loop is counted.
3. Filters are those of `identity.messages.filters`, each bounded: the engine counts output, not what a filter builds.
4. Every node costs a step, and every turn of a loop a node: steps are bounded, and with them time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from liquid import BoundTemplate, Environment, Mode, RenderContext
from liquid.ast import Node
from liquid.builtin.expressions.primitive import RangeLiteral
from liquid.exceptions import LiquidError
from liquid.expression import Expression

from identity.messages.filters import FILTERS, Unbounded

LONGEST_SOURCE = 60_000
LONGEST_OUTPUT = 200_000
_MOST_STEPS = 20_000
_MOST_TURNS = 2_000
_MOST_NAMESPACE_BYTES = 500_000
_DEEPEST_DATA = 12
_MOST_NAMES = 200
# Those of authors, and those that the engine itself is made of: text, output, and what it finds where no tag is.
_TAGS = frozenset(
    ("if", "unless", "case", "for", "break", "continue", "assign", "capture", "cycle", "increment", "decrement", "comment", "echo", "#")
)
_INNER_TAGS = frozenset({"content", "output", "illegal"})


class TemplateBroken(ValueError):
    """The template cannot be rendered; the text says why and where."""


class _Context(RenderContext):
    """Counts steps: the engine looks at `disabled_tags` before it renders any node."""

    _steps_left = _MOST_STEPS
    _turns_left = _MOST_TURNS

    @property
    def disabled_tags(self) -> list[str]:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise Unbounded("The template has too much to do.")
        return []

    @disabled_tags.setter
    def disabled_tags(self, value: object) -> None:
        """Leave it as it is: no tag of a template disables another one."""

    def assign(self, key: str, val: Any) -> None:
        """Bound the names: the engine measures all of them at each assignment."""
        super().assign(key, val)
        if len(self.locals) > _MOST_NAMES:
            raise Unbounded("The template has too many variables.")

    def raise_for_loop_limit(self, length: int = 1) -> None:
        """Count the turns of every loop that begins, also of one after the other."""
        self._turns_left -= length
        if self._turns_left < 0:
            raise Unbounded("The loops of the template have too many turns.")


class _Template(BoundTemplate):
    context_class = _Context


class _Sandbox(Environment):
    output_stream_limit = LONGEST_OUTPUT
    local_namespace_limit = _MOST_NAMESPACE_BYTES
    context_depth_limit = 20
    template_class = _Template


def _sandbox(*, is_html: bool) -> _Sandbox:
    sandbox = _Sandbox(tolerance=Mode.STRICT, autoescape=is_html)
    sandbox.template_class = _Template
    for name in [name for name in sandbox.tags if name not in _TAGS | _INNER_TAGS]:
        del sandbox.tags[name]
    sandbox.filters.clear()
    sandbox.filters.update(FILTERS)
    return sandbox


@lru_cache(maxsize=2)
def _sandbox_for(is_html: bool) -> _Sandbox:  # noqa: FBT001  (a key of the cache)
    return _sandbox(is_html=is_html)


def rendered(source: str, data: Mapping[str, Any], *, is_html: bool) -> str:
    """Return the text that a template makes of `data`; with `is_html` values are escaped. Raises `TemplateBroken`.

    Data that is not plain raises `TypeError`: that is a mistake of the caller, not of the template.
    """
    values = plain(data)
    if len(source) > LONGEST_SOURCE:
        raise TemplateBroken(f"The template is longer than {LONGEST_SOURCE} characters.")
    try:
        template = _sandbox_for(is_html).from_string(source)
        _refuse_ranges(template)
        return template.render(values)
    except TemplateBroken:
        raise
    except LiquidError as error:
        raise TemplateBroken(_said(error)) from error
    except Unbounded as error:
        raise TemplateBroken(str(error)) from error
    except RecursionError as error:
        raise TemplateBroken("The template is nested too deep.") from error
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        # A filter that got a value of another kind than it is for.
        raise TemplateBroken(f"The template cannot be rendered: {type(error).__name__}.") from error


def plain(value: Any, depth: int = 0) -> Any:
    """Return a copy of plain data; raise `TypeError` for anything else, also for subclasses with methods of their own."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if depth >= _DEEPEST_DATA:
        return ""
    if isinstance(value, Mapping):
        return {str(name): plain(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, depth + 1) for inner in value]
    if isinstance(value, str):
        # Text that promises to be safe HTML is text like any other.
        return str.__str__(value)[:]
    raise TypeError(f"Templates take plain data, and no {type(value).__name__}.")


def _refuse_ranges(template: BoundTemplate) -> None:
    context = _Context(template)
    waiting: list[Node | Expression] = list(template.nodes)
    while waiting:
        part = waiting.pop()
        if isinstance(part, RangeLiteral):
            raise TemplateBroken("Ranges such as (1..10) cannot be used.")
        if isinstance(part, Node):
            waiting.extend(part.children(context, include_partials=False))
            waiting.extend(part.expressions())
        else:
            waiting.extend(part.children())


def _said(error: LiquidError) -> str:
    """Return the sentence of an error with its line, and without the source around it."""
    text = str(error.args[0]) if error.args else "The template is broken"
    token = getattr(error, "token", None)
    source, index = getattr(token, "source", None), getattr(token, "start_index", -1)
    line = f" (line {source[:index].count(chr(10)) + 1})" if isinstance(source, str) and isinstance(index, int) and index >= 0 else ""
    return f"{text[:300]}{line}"
