"""Turn `REDIS_URL` into the spelling Celery's transport knows."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit


def broker_url(redis_url: str) -> str:
    """Return the URL unchanged, but a Unix socket as `redis+socket://` with its database as `virtual_host`."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    query = urlencode([("virtual_host" if name == "db" else name, value) for name, value in parse_qsl(parts.query)])
    # Written by hand: urlunsplit leaves the slashes out before an empty host of a scheme it does not know.
    return f"redis+socket://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")
