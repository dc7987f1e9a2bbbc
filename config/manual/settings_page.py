"""The page of settings: every environment variable that `config.settings.base` reads, under the headings of that file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from config.env import SETTINGS, Setting
from config.manual.markdown import code, page, table
from config.settings import base

_HEADING = re.compile(r"^# --- (?P<title>.+?) -+$", re.MULTILINE)
_READ = re.compile(r"\benv\.[a-z]+\(\s*\"(?P<name>[A-Z_]+)\"")

_INTRODUCTION = """# Settings

Every setting is an environment variable. An invalid value stops the start with an error that names the variable. A variable that is
not set, or empty, has its default.

- **In production** set `DJANGO_SETTINGS_MODULE=config.settings.production` and at least the four key lists, `PLATFORM_HOST`,
  `DATABASE_URL` and `REDIS_URL`.
- **In a checkout** nothing is needed: `make up` writes the settings of its servers into `.data/environment`, and commands read this file.
  The README lists the variables of `make up` itself, such as `PORT`.

| Type | How it is written |
|---|---|
| flag | `1`, `true`, `yes`, `on` or `0`, `false`, `no`, `off` |
| integer, number | an integer or a decimal number; the name or the effect states the unit of a duration |
| text, list | as it is, without quotes; commas separate the items of a list |
| keys | `<id>:<value>`, newest first, separated by commas; ids of 1 to 8 letters or digits, values of 32 or more random characters |
| secret | like text; the service never shows or logs the value, and no error repeats it |

A setting of the type keys or secret can be in a file: `SESSION_KEYS_FILE=/etc/identity/secrets/SESSION_KEYS` instead of `SESSION_KEYS`. The
file is read once, at the start. The service does not start if both variables are set, or if the file is missing or empty.
"""


def settings_page() -> str:
    """Return the page."""
    return page(_INTRODUCTION, *_sections())


def _sections() -> Iterator[str]:
    source = Path(base.__file__).read_text()
    marks = list(_HEADING.finditer(source))
    ends = [mark.start() for mark in marks[1:]] + [len(source)]
    for mark, end in zip(marks, ends, strict=True):
        body = source[mark.end() : end]
        settings = [SETTINGS[found["name"]] for found in _READ.finditer(body)]
        if settings:
            title, _, remark = mark["title"].partition(": ")
            yield page(f"## {title}", f"{remark[:1].upper()}{remark[1:]}." if remark else "", _settings_table(settings))


def _settings_table(settings: list[Setting]) -> str:
    rows = ((code(setting.name), _type(setting), code(_default(setting)), setting.effect) for setting in settings)
    return table(("Variable", "Type", "Default", "Effect"), rows)


def _type(setting: Setting) -> str:
    return f"{setting.kind}, {setting.allowed}" if setting.allowed else setting.kind


def _default(setting: Setting) -> str:
    # A path inside the checkout is shown relative to the checkout.
    return setting.default.replace(f"{base.BASE_DIR}/", "")
