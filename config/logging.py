"""Formats of log lines: readable on a terminal, JSON in production. Both mask secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson
import structlog

MASKED = "[masked]"
# Patterns of bearer and basic credentials, JWTs, and members and parameters with secrets, anywhere in a line.
# The lower-case texts before a pattern are a cheap check: every line that matches the pattern contains one of them, and most lines contain
# none.
_SECRETS = (
    (("bearer", "basic"), re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), rf"\1 {MASKED}"),
    (("eyj",), re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), MASKED),
    (
        ("secret", "assertion", "token", "password", "verifier"),
        re.compile(
            r"(?i)([\"']?(?:client_secret|client_assertion|access_token|refresh_token|id_token|password|scim_bearer_token|code_verifier)"
            r"[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,}]+"
        ),
        rf"\1{MASKED}",
    ),
    # A password in the URL of a database or broker.
    (("://",), re.compile(r"(?i)\b([a-z+]+://[^\s:/@]*:)[^\s@/]+@"), rf"\1{MASKED}@"),
)


def masked(text: str) -> str:
    """Return `text` with every likely credential masked."""
    lowered = text.lower()
    for signs, pattern, replacement in _SECRETS:
        if any(sign in lowered for sign in signs):
            text = pattern.sub(replacement, text)
    return text


def mask_secrets(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    """Mask every text of a log entry, including its traceback. This function is a processor of structlog."""
    return {name: _masked_value(value) for name, value in event.items()}


def _masked_value(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {name: _masked_value(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_masked_value(member) for member in value]
    return value


def rendered(event: Any, **options: Any) -> str:
    """Return an entry as JSON. If the fast encoder refuses a value, such as a huge number or an unpaired surrogate, the standard encoder
    writes the entry."""
    try:
        return orjson.dumps(event, default=options.get("default")).decode()
    except TypeError:
        return json.dumps(event, **options)


_SHARED: tuple[Any, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def configure_structlog() -> None:
    """Send structlog's entries through the standard library, whose formatter masks and writes them."""
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.PositionalArgumentsFormatter(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def logging_settings(*, level: str, as_json: bool) -> dict[str, Any]:
    """Return Django's LOGGING: one handler that writes JSON or readable lines to standard output."""
    renderer = structlog.processors.JSONRenderer(serializer=rendered) if as_json else structlog.dev.ConsoleRenderer(colors=False)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": list(_SHARED),
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.format_exc_info,
                    mask_secrets,
                    renderer,
                ],
            }
        },
        "handlers": {"out": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "line"}},
        "root": {"handlers": ["out"], "level": level},
        "loggers": {
            "django": {"handlers": [], "propagate": True, "level": level},
            # These two loggers of Celery write two lines for each message that a worker process receives. Drop these lines, because each
            # attempt of a delivery is stored as a row in any case.
            "celery.app.trace": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            # The level suppresses the line about each malformed request, because any client can send such requests. Exceptions of the
            # application are still logged.
            "uvicorn": {"handlers": [], "propagate": True},
            "uvicorn.error": {"level": "ERROR"},
            # No access log: URLs contain codes, hints and offsets. Without this entry, the entry of the parent logger `uvicorn` would
            # switch the access log on again.
            "uvicorn.access": {"handlers": [], "propagate": False},
            # No DEBUG lines: they contain whole URLs, and some providers expect tokens in the query of a URL.
            "urllib3": {"level": "INFO"},
            # 404 and 403 are ordinary responses. Errors with status 500 are still logged.
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"handlers": [], "level": "CRITICAL"},
        },
    }
