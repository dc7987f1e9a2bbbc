"""Turn `DATABASE_URL` into Django's connection settings."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def database_settings(url: str, *, pool_size: int) -> dict[str, Any]:
    """Return Django's database settings for `postgresql://user:password@host:port/name?host=/socket/dir`.

    A `host` in the query takes precedence (a socket directory). `pool_size` 0 means one connection per thread, opened and closed
    with each request. Raises `ImproperlyConfigured` for another scheme or a URL without a database name.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured("DATABASE_URL must start with postgresql://; other databases are not supported.")
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise ImproperlyConfigured("DATABASE_URL names no database: postgresql://user@host:5432/<database>.")
    query = dict(parse_qsl(parts.query))
    options: dict[str, Any] = {
        # Identifies a backend in pg_stat_activity, and limits the resources of one web request.
        "options": "-c statement_timeout=30000 -c lock_timeout=10000 -c idle_in_transaction_session_timeout=60000",
    }
    if pool_size:
        options["pool"] = {"min_size": 1, "max_size": pool_size, "timeout": 2.0, "max_lifetime": 3600.0}
    host = query.pop("host", "") or parts.hostname or ""
    options.update(query)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 0,
        # A pooled connection that died with its server is replaced before a request uses it.
        "CONN_HEALTH_CHECKS": True,
        "ATOMIC_REQUESTS": False,
        "OPTIONS": options,
    }
