"""The page of commands: the commands of this service with their options, and the targets of the Makefile."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import get_commands, load_command_class

from config.manual.markdown import code, fence, page, prose, table
from config.manual.source import APPS

# Options of every Django command, omitted from the tables.
_COMMON = frozenset(
    {"help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color", "skip_checks", "subcommand"}
)
_TARGET = re.compile(r"^(?P<name>[a-z-]+):.*## (?P<text>.+)$", re.MULTILINE)
_INTRODUCTION = """# Commands

```sh
.venv/bin/python manage.py <command> --help
```

In a checkout, commands find the servers of a running `make up`. In production, run commands with the environment of the service and with
`DJANGO_SETTINGS_MODULE=config.settings.production`. Django's own commands are also available: run `migrate` before a new version starts,
`createsuperuser` to create the first operator, and `check --deploy` to check the settings.
"""


def commands_page() -> str:
    """Return the page."""
    return page(
        _INTRODUCTION,
        *(_command_block(name, parser) for name, parser in _parsers()),
        "## Make",
        "`make help` shows the same list. Pass the words in capitals as `NAME=value`.",
        table(("Target", "What it does"), _targets()),
    )


def _parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for name, app in sorted(get_commands().items()):
        if app in APPS:
            parser = load_command_class(app, name).create_parser("manage.py", name)
            inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
            if not inner:
                yield name, parser
            for action in inner:
                # The choices also contain former names of subcommands. Skip them.
                for subcommand, subparser in action.choices.items():
                    if subparser.prog.endswith(f" {subcommand}"):
                        yield f"{name} {subcommand}", subparser


def _command_block(name: str, parser: argparse.ArgumentParser) -> str:
    actions = [action for action in parser._actions if action.dest not in _COMMON]
    rows = ((_written(action), _help_of(action)) for action in actions)
    summary, _, rest = (parser.description or "").strip().partition("\n")
    return page(
        f"## `manage.py {name}`",
        prose(summary),
        table(("Option", "Meaning"), rows) if actions else "",
        fence("text", rest.strip("\n")) if rest.strip() else "",
    )


def _written(action: argparse.Action) -> str:
    names = " or ".join(code(name) for name in action.option_strings)
    value = _value_of(action)
    if not action.option_strings:
        return code(f"[{value}]" if action.nargs in {"?", "*"} else value)
    return (names if not value else names[:-1] + f" {value}`") + (" (needed)" if action.required else "")


def _value_of(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.choices is not None and action.metavar is None:
        return " | ".join(str(choice) for choice in action.choices)
    return str(action.metavar or action.dest.upper())


def _help_of(action: argparse.Action) -> str:
    values: dict[str, Any] = {**vars(action), "prog": "manage.py"}
    return (action.help or "") % values if action.help and "%" in action.help else action.help or ""


def _targets() -> Iterator[tuple[str, str]]:
    for found in sorted(_TARGET.finditer((Path(settings.BASE_DIR) / "Makefile").read_text()), key=lambda target: target["name"]):
        yield code(f"make {found['name']}"), found["text"]
