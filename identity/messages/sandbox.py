"""Renders templates of tenants: Liquid without files, objects or unbounded work (docs/adr/0100). Pure.

The engine, python-liquid, evaluates no Python. This module closes its remaining gaps:

1. Data is text, numbers, booleans, lists and mappings of these (`plain`), so no attribute leads to an object of the service.
2. Tags that load other templates are removed. Ranges are refused, because the engine builds their lists before it counts a loop.
3. Only the filters of `identity.messages.filters` exist. Each filter limits its result, because the engine limits only the
   output of the whole template.
4. Every node costs a step, and every iteration of a loop renders a node. Steps are limited, which limits the time.
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
# Tags for authors, and the internal tags of the engine: text, output and unknown tags.
_TAGS = frozenset(
    ("if", "unless", "case", "for", "break", "continue", "assign", "capture", "cycle", "increment", "decrement", "comment", "echo", "#")
)
_INNER_TAGS = frozenset({"content", "output", "illegal"})


class TemplateBroken(ValueError):
    """The template cannot be rendered; the message has the reason and the position."""


class _Context(RenderContext):
    """Counts steps: the engine reads `disabled_tags` before it renders each node."""

    _steps_left = _MOST_STEPS
    _turns_left = _MOST_TURNS

    @property
    def disabled_tags(self) -> list[str]:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise Unbounded("The template takes too many steps to render.")
        return []

    @disabled_tags.setter
    def disabled_tags(self, value: object) -> None:
        """Ignore the value: no tag of a template disables another tag."""

    def assign(self, key: str, val: Any) -> None:
        """Limit the number of variables: the engine measures all of them at each assignment."""
        super().assign(key, val)
        if len(self.locals) > _MOST_NAMES:
            raise Unbounded("The template has too many variables.")

    def raise_for_loop_limit(self, length: int = 1) -> None:
        """Count the iterations of all loops together, nested or in sequence."""
        self._turns_left -= length
        if self._turns_left < 0:
            raise Unbounded("The loops of the template run too many times.")


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
    """Render a template with `data`; `is_html` escapes values. Raises `TemplateBroken`.

    Raises `TypeError` for data that is not plain: that is an error of the caller, not of the template.
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
        # A filter received a value of a type that it does not support.
        raise TemplateBroken(f"The template cannot be rendered: {type(error).__name__}.") from error


def plain(value: Any, depth: int = 0) -> Any:
    """Return a copy that contains only plain types: `str`, `int`, `float`, `bool`, `list`, `dict` and None.

    Instances of subclasses of `str` become `str`, sequences become `list` and mappings become `dict`. Data that is nested too deep becomes
    an empty text. Raises `TypeError` for anything else, including instances of subclasses of numbers.
    """
    if value is None or type(value) in (str, int, float, bool):
        return value
    if depth >= _DEEPEST_DATA:
        return ""
    if isinstance(value, Mapping):
        return {str(name): plain(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, depth + 1) for inner in value]
    if isinstance(value, str):
        # Text of a class that marks safe HTML is treated as plain text.
        return str.__str__(value)[:]
    raise TypeError(f"Templates accept plain data, not {type(value).__name__}.")


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
    """Return the message of an error with its line number, without quoting the template."""
    text = str(error.args[0]) if error.args else "The template is broken"
    token = getattr(error, "token", None)
    source, index = getattr(token, "source", None), getattr(token, "start_index", -1)
    line = f" (line {source[:index].count(chr(10)) + 1})" if isinstance(source, str) and isinstance(index, int) and index >= 0 else ""
    return f"{text[:300]}{line}"
