"""The options of `make up`: read once from the environment of the command, and refused when invalid."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from config import env

DEMO_TENANT = "demo"
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Options:
    """The options of one `make up`. An empty URL means a private server."""

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
    """Read the options. Raises `ImproperlyConfigured` with a message for an invalid value."""
    port = env.integer("PORT", 8000, "Port of `make up`.", minimum=1, maximum=65000)
    return Options(
        data_dir=data_directory(),
        port=port,
        scim_port=env.integer("SCIM_PORT", port + 80, "Port of the demo's SCIM server.", minimum=1, maximum=65535),
        is_tls=env.flag("TLS", default=False, effect="Let `make up` serve TLS with a private certificate authority."),
        is_detached=env.flag("DETACH", default=False, effect="Let `make up` return when everything answers."),
        database_url=env.secret("DATABASE_URL", "", "PostgreSQL 14 or newer; empty: a private one."),
        redis_url=env.secret("REDIS_URL", "", "A Redis protocol server; empty: a private one."),
        web_server=env.text("WEB_SERVER", "uvicorn", "Which ASGI server runs the web processes.", choices=("uvicorn", "daphne")),
        web_processes=env.integer("WEB_PROCESSES", 1, "Web processes that share the port.", minimum=1, maximum=64),
    )
