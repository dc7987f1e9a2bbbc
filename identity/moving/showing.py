"""Shows the progress of a step of a move: a bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.core.management.base import OutputWrapper
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def shown_rows(output: OutputWrapper, verb: str, total: int) -> Iterator[Callable[[str, int], None]]:
    """Yield a function that advances the bar. It takes the name of a table and a number of rows."""
    console = Console(file=output)  # type: ignore[arg-type]  # Django's wrapper is a text stream
    columns = (TextColumn(f"{verb} {{task.description}}"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not output.isatty()) as progress:
        task = progress.add_task("", total=total)
        yield lambda table, rows: progress.update(task, advance=rows, description=table)
