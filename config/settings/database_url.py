"""Turn `DATABASE_URL` into Django's connection settings."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from foundation.database.session_settings import SESSION_SETTINGS

# With these options, libpq needs 15 to 25 seconds, and not hours, to notice that a server has failed without closing its connections.
_LIVENESS = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "15000"}
# If there are several servers, connect to the one that accepts writes. libpq applies the timeout, in seconds, to each server.
_SEVERAL_SERVERS = {"target_session_attrs": "read-write", "connect_timeout": "3"}
# If a replica does not answer within this time, lists are read from the primary. Two seconds are the minimum of libpq.
_REPLICA_CONNECT_SECONDS = "2"
# A pool waits longer after each failed connection. After this many seconds, the pool stops trying, and the next request tries again at
# once.
_POOL_RECONNECT_SECONDS = 5.0


def database_settings(url: str, *, pool_size: int, name: str = "DATABASE_URL") -> dict[str, Any]:
    """Return Django's database settings for `postgresql://user:password@host:port,host:port/name?option=value`.

    Several hosts, separated by commas, are the servers of one cluster, and the one that accepts writes is used. A `host` in the query
    takes precedence (a socket directory); other options go to libpq. `pool_size` 0 means one connection per thread, opened and closed
    with each request. `name` is the environment variable that error messages mention. Raises `ImproperlyConfigured` for another
    scheme, a URL without a database name, and an invalid port.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(f"{name} must start with postgresql://; other databases are not supported.")
    database = unquote(parts.path.lstrip("/"))
    if not database:
        raise ImproperlyConfigured(f"{name} names no database: postgresql://user@host:5432/<database>.")
    account, _, servers = parts.netloc.rpartition("@")
    user, _, password = account.partition(":")
    query = dict(parse_qsl(parts.query))
    hosts, ports = _hosts_and_ports(servers, name)
    host, port = query.pop("host", "") or hosts, query.pop("port", "") or ports
    return {
        "ENGINE": "foundation.database.engine",
        "NAME": database,
        "USER": unquote(user),
        "PASSWORD": unquote(password),
        "HOST": host,
        "PORT": port,
        "CONN_MAX_AGE": 0,
        # If the server of a pooled connection has failed, the connection is replaced before a request uses it.
        "CONN_HEALTH_CHECKS": True,
        "ATOMIC_REQUESTS": False,
        "OPTIONS": _options(host, pool_size) | query,
    }


def replica_settings(url: str, *, pool_size: int) -> dict[str, Any]:
    """Return Django's database settings of a replica. If there are several servers, a standby is preferred. No session can write.

    Raises `ImproperlyConfigured` like `database_settings`.
    """
    made = database_settings(url, pool_size=pool_size, name="DATABASE_REPLICA_URL")
    options = made["OPTIONS"]
    if "," in made["HOST"] and "target_session_attrs=" not in url:
        options["target_session_attrs"] = "prefer-standby"
    options.setdefault("connect_timeout", _REPLICA_CONNECT_SECONDS)
    options[SESSION_SETTINGS] |= {"default_transaction_read_only": "on"}
    return made


def _options(host: str, pool_size: int) -> dict[str, Any]:
    options: dict[str, Any] = {
        # Limits in milliseconds. They prevent one web request from using a connection, or from holding locks, for too long.
        SESSION_SETTINGS: {"statement_timeout": "30000", "lock_timeout": "10000", "idle_in_transaction_session_timeout": "60000"},
    }
    if pool_size:
        options["pool"] = {
            "min_size": 1,
            "max_size": pool_size,
            "timeout": 2.0,
            "max_lifetime": 3600.0,
            "reconnect_timeout": _POOL_RECONNECT_SECONDS,
        }
    if host and not host.startswith("/"):
        options |= _LIVENESS
    if "," in host:
        options |= _SEVERAL_SERVERS
    return options


def _hosts_and_ports(servers: str, name: str) -> tuple[str, str]:
    """Split `a:5432,b` into libpq's lists `a,b` and `5432,`, where an empty port means the default."""
    hosts, ports = [], []
    for server in servers.split(","):
        place = urlsplit(f"//{server}")
        try:
            ports.append(str(place.port or ""))
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} has an invalid port: {error}. Several servers: host:5432,host:5432.") from error
        hosts.append(place.hostname or "")
    return ",".join(hosts), ",".join(ports) if any(ports) else ""
