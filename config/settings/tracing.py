"""The packages that traces need."""

from __future__ import annotations

from importlib.util import find_spec

from django.core.exceptions import ImproperlyConfigured

_EXPORTER = "opentelemetry.exporter.otlp.proto.http"


def require_packages(endpoint: str) -> None:
    """Raise `ImproperlyConfigured` if `endpoint` is not empty and a package for traces is not installed."""
    if endpoint and not _is_installed():
        raise ImproperlyConfigured("TRACING_ENDPOINT needs more packages: install requirements/tracing.lock instead of base.lock.")


def _is_installed() -> bool:
    try:
        return find_spec(_EXPORTER) is not None
    except ModuleNotFoundError:
        return False
