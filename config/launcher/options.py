"""The options of `make up`: read once from the environment of the command, and refused when invalid."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config import env

DEMO_TENANT = "demo"
ROOT = Path(__file__).resolve().parents[2]
_READ_IN = re.compile(r'\benv\.[a-z]+\(\s*"([A-Z][A-Z0-9_]+)"')
_GIVEN = re.compile(r"(?:^|\s)([A-Za-z_][A-Za-z0-9_]*)\s*[:?+]?=")
# The variables that the launcher reads from the environment directly, and not through `config.env`.
_FURTHER = frozenset({"DATA_DIR", "PYTHON", "YES"})
_SIMILAR = 0.75


@dataclass(frozen=True)
class Options:
    """The options of one `make up`. For an empty URL, `make up` starts a private server."""

    data_dir: Path
    port: int
    scim_port: int
    is_tls: bool
    is_detached: bool
    database_url: str
    redis_url: str
    web_server: str
    web_processes: int

    @property
    def origin(self) -> str:
        """Scheme, host and port of the service."""
        return f"{'https' if self.is_tls else 'http'}://localhost:{self.port}"

    @property
    def scim_base_url(self) -> str:
        return f"http://127.0.0.1:{self.scim_port}/v2"


def data_directory() -> Path:
    """Return the directory of the demo's files; it need not exist."""
    return Path(os.environ.get("DATA_DIR") or ROOT / ".data").absolute()


def read() -> Options:
    """Read the options. Raises `ImproperlyConfigured` with a message for an invalid value or a misspelled variable."""
    _refuse_misspelled(os.environ.get("MAKEFLAGS", ""))
    port = env.integer("PORT", 8000, "Port of `make up`.", minimum=1, maximum=65000)
    return Options(
        data_dir=data_directory(),
        port=port,
        scim_port=env.integer("SCIM_PORT", port + 80, "Port of the demo's SCIM server.", minimum=1, maximum=65535),
        is_tls=env.flag("TLS", default=False, effect="Let `make up` serve TLS with a private certificate authority."),
        is_detached=env.flag("DETACH", default=False, effect="Let `make up` return when every process answers."),
        database_url=env.secret("DATABASE_URL", "", "URL of PostgreSQL 14 or newer. If empty, `make up` starts a private server."),
        redis_url=env.secret("REDIS_URL", "", "URL of a Redis protocol server. If empty, `make up` starts a private server."),
        web_server=env.text("WEB_SERVER", "uvicorn", "Which ASGI server runs the web processes.", choices=("uvicorn", "daphne")),
        web_processes=env.integer("WEB_PROCESSES", 1, "Web processes that share the port.", minimum=1, maximum=64),
    )


def _refuse_misspelled(makeflags: str) -> None:
    """Refuse a variable of the command line whose name is nearly the name of a known variable. All other variables are allowed."""
    known = {*_FURTHER, *(name for file in _sources() for name in _READ_IN.findall(file.read_text()))}
    for name in _GIVEN.findall(makeflags.partition(" -- ")[2]):
        near = [] if name in known else get_close_matches(name.upper(), sorted(known), n=1, cutoff=_SIMILAR)
        if near:
            raise ImproperlyConfigured(f"There is no variable {name}. Did you mean {near[0]}?")


def _sources() -> list[Path]:
    return [Path(__file__), *sorted((ROOT / "config" / "settings").glob("*.py"))]
