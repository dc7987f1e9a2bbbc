"""Settings of Celery. Its queue may be lost at any moment, because all work is also stored in the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.core.exceptions import ImproperlyConfigured
from kombu import Queue

from config.settings import frameworks
from foundation.memory.sentinel_address import SCHEMES, InvalidSentinelAddress, sentinel_address

_AMQP = frozenset({"amqp", "amqps", "pyamqp"})
_BROKERS = ("redis://", "rediss://", "redis+sentinel://", "rediss+sentinel://", "unix://", "amqp://", "amqps://")

# The maximum time in seconds for which a worker may keep a message unacknowledged. Then Redis delivers the message to another worker.
_VISIBILITY_SECONDS = 120
TASK_SECONDS = 30

_ALWAYS: dict[str, Any] = {
    # Celery reads this timeout in three places and uses the shortest value, so set it in all three (Celery, "Using Redis", visibility
    # timeout).
    "CELERY_RESULT_BACKEND_TRANSPORT_OPTIONS": {"visibility_timeout": _VISIBILITY_SECONDS},
    "CELERY_VISIBILITY_TIMEOUT": _VISIBILITY_SECONDS,
    "CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP": True,
    "CELERY_BROKER_CONNECTION_MAX_RETRIES": None,
    # Celery treats a damaged response from Redis as an error of the channel. Without this setting, the error would end the worker.
    "CELERY_BROKER_CHANNEL_ERROR_RETRY": True,
    "CELERY_TASK_DEFAULT_QUEUE": "work",
    # Workers alternate between the two queues. Otherwise work for which a person waits would start only after thousands of deliveries.
    "CELERY_TASK_QUEUES": (Queue("work"), Queue("deliveries")),
    "CELERY_TASK_ROUTES": {"provisioning.deliver": {"queue": "deliveries"}},
    "CELERY_TASK_PUBLISH_RETRY": False,
    "CELERY_TASK_IGNORE_RESULT": True,
    "CELERY_TASK_ACKS_LATE": True,
    "CELERY_TASK_REJECT_ON_WORKER_LOST": True,
    "CELERY_TASK_TIME_LIMIT": TASK_SECONDS,
    "CELERY_TASK_SOFT_TIME_LIMIT": 20,
    "CELERY_TASK_SERIALIZER": "json",
    "CELERY_ACCEPT_CONTENT": ["json"],
    # Otherwise a process that may write to Redis could shut workers down, or take queues from them.
    "CELERY_WORKER_ENABLE_REMOTE_CONTROL": False,
    "CELERY_WORKER_PREFETCH_MULTIPLIER": 1,
    "CELERY_WORKER_MAX_TASKS_PER_CHILD": 1000,
    "CELERY_WORKER_ETA_TASK_LIMIT": 1000,
    "CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT": 15,
    "CELERY_WORKER_ENABLE_SOFT_SHUTDOWN_ON_IDLE": True,
    "CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS": False,
    "CELERY_WORKER_HIJACK_ROOT_LOGGER": False,
    "CELERY_BEAT_SCHEDULE": frameworks.CELERY_BEAT_SCHEDULE,
    # Opening a database connection for each message costs more than the message; `config.celery` checks connections instead.
    "CELERY_DB_REUSE_MAX": 1_000_000_000,
}


def celery_settings(*, broker: str, prefix: str, data_dir: Path) -> dict[str, Any]:
    """Return Celery's settings by their Django names, for a queue at the URL `broker` and a schedule file in `data_dir`.

    Raises `ImproperlyConfigured` for a URL of another kind of server, and for an invalid URL of sentinels.
    """
    return {
        **_ALWAYS,
        "CELERY_BROKER_URL": broker_url(broker),
        "CELERY_BROKER_TRANSPORT_OPTIONS": _transport_options(broker, prefix),
        "CELERY_BEAT_SCHEDULE_FILENAME": str(data_dir / "beat-schedule"),
    }


def _transport_options(broker: str, prefix: str) -> dict[str, Any]:
    if urlsplit(broker).scheme in _AMQP:
        # If the broker does not answer, publishing fails after about two seconds instead of minutes.
        return {"connect_timeout": 1, "write_timeout": 2}
    return {
        "visibility_timeout": _VISIBILITY_SECONDS,
        "global_keyprefix": f"{prefix}:",
        "socket_timeout": 1,
        "socket_connect_timeout": 1,
        "health_check_interval": 10,
        "max_retries": 1,
        "interval_start": 0,
    }


def broker_url(url: str) -> str:
    """Return the URL as Celery reads it.

    A Unix socket becomes `redis+socket://` with its database as `virtual_host`. Sentinels become `sentinel://`, without their
    addresses and passwords, which `config.task_transports` reads from the settings.
    """
    parts = urlsplit(url)
    if parts.scheme in SCHEMES:
        return _sentinel_url(url)
    if parts.scheme in {"redis", "rediss", *_AMQP}:
        return url
    if parts.scheme != "unix":
        raise ImproperlyConfigured(f"The broker must be one of {', '.join(_BROKERS)}; found the scheme {parts.scheme!r}.")
    query = urlencode([("virtual_host" if name == "db" else name, value) for name, value in parse_qsl(parts.query)])
    # Built by hand: urlunsplit omits the slashes before an empty host of an unknown scheme.
    return f"redis+socket://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")


def _sentinel_url(url: str) -> str:
    try:
        address = sentinel_address(url)
    except InvalidSentinelAddress as error:
        raise ImproperlyConfigured(str(error)) from error
    return f"sentinel://sentinels/{address.to_servers.get('db', 0)}"
