"""Where the app that logs users in says what is wrong with the options of a strategy, without this app knowing any protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

# Returns a sentence, or None where nothing is wrong.
Judge = Callable[[str, Mapping[str, Any]], str | None]
_judges: dict[str, Judge] = {}


def let_judge(strategies: Iterable[str], judge: Judge) -> None:
    """Let `judge(strategy, options)` look at options of these strategies before they are stored."""
    _judges.update(dict.fromkeys(strategies, judge))


def judged_problem(strategy: str, options: Mapping[str, Any]) -> str | None:
    """Return what is wrong with options in the eyes of the strategy's judge, None without one."""
    judge = _judges.get(strategy)
    return judge(strategy, options) if judge is not None else None
