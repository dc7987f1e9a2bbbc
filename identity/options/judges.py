"""Registry of checks of options, by strategy. The app that logs users in registers the checks, so this app needs no knowledge of
protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

# Returns a message about the problem, or None.
Judge = Callable[[str, Mapping[str, Any]], str | None]
_judges: dict[str, Judge] = {}


def let_judge(strategies: Iterable[str], judge: Judge) -> None:
    """Register `judge(strategy, options)`, which checks options of these strategies before they are stored."""
    _judges.update(dict.fromkeys(strategies, judge))


def judged_problem(strategy: str, options: Mapping[str, Any]) -> str | None:
    """Return the problem that the strategy's judge finds in the options, or None."""
    judge = _judges.get(strategy)
    return judge(strategy, options) if judge is not None else None
