"""Checks before any process starts: whether the ports are free, and whether the servers at `DATABASE_URL` and `REDIS_URL` answer."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import psycopg
import redis

from config.launcher.options import Options
from foundation.memory.redis_clients import redis_client

_OUTSIDE_SERVER_SECONDS = 5


class CannotStart(Exception):
    """A precondition fails; the message is one sentence for the user."""


def check(options: Options) -> None:
    """Raise `CannotStart` if a port is in use, if Daphne is to run several processes, or if an outside server is unsuitable.

    The outside servers are those at `DATABASE_URL` and `REDIS_URL`. They must answer, and PostgreSQL must be version 14 or newer.
    """
    _check_port(options.port, "PORT")
    _check_port(options.scim_port, "SCIM_PORT")
    if options.web_server == "daphne" and options.web_processes > 1:
        raise CannotStart("WEB_SERVER=daphne runs one process: leave WEB_PROCESSES at 1, or choose uvicorn.")
    if options.database_url:
        _check_database(options.database_url)
    if options.redis_url:
        _check_redis(options.redis_url)


def _check_port(port: int, variable: str) -> None:
    with socket.socket() as probe:
        # Without this option, the check would refuse a port with connections in TIME_WAIT. The servers set the option, too, so they can use
        # such a port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            advice = f"stop the program that listens there, or choose another {variable}"
            raise CannotStart(f"Port {port} is taken ({error.strerror}): {advice}.") from error


def _check_database(url: str) -> None:
    try:
        with psycopg.connect(url, connect_timeout=_OUTSIDE_SERVER_SECONDS) as connection:
            version = connection.info.server_version
    except (psycopg.Error, ValueError) as error:
        raise CannotStart(f"DATABASE_URL does not answer at {_place(url)}: {_first_line(error)}") from error
    if version < 140000:
        raise CannotStart(f"DATABASE_URL leads to PostgreSQL {version // 10000} at {_place(url)}; 14 or newer is needed.")


def _check_redis(url: str) -> None:
    try:
        redis_client(url, connect_seconds=_OUTSIDE_SERVER_SECONDS, answer_seconds=_OUTSIDE_SERVER_SECONDS).ping()
    except (redis.RedisError, ValueError) as error:
        raise CannotStart(f"REDIS_URL does not answer at {_place(url)}: {_first_line(error)}") from error


def _place(url: str) -> str:
    # The message never shows the whole URL, because it can contain a password.
    try:
        parts = urlsplit(url)
        return f"{parts.hostname or 'a local socket'}{f':{parts.port}' if parts.port else ''}{parts.path}"
    except ValueError:
        return "an address that cannot be read"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".") + "."
