"""Settings of traces: unusable values prevent the start, and no error shows a secret."""

from __future__ import annotations

import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env
from config.settings.tracing import require_packages
from tests.factories.trace_collector import show_packages


def test_headers_are_read_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACING_HEADERS", "authorization=Basic dTpw==, x-key = k")
    assert env.headers("TRACING_HEADERS", "") == {"authorization": "Basic dTpw==", "x-key": "k"}


@pytest.mark.parametrize("given", ["hidden-value", "name=", "na me=hidden-value", "=hidden-value", "a=hidden\r\nb: c"])
def test_an_unusable_header_prevents_the_start_and_is_not_shown(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("TRACING_HEADERS", given)
    with pytest.raises(ImproperlyConfigured) as refusal:
        env.headers("TRACING_HEADERS", "")
    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize("given", ["collector:4318", "ftp://collector", "http://user:hidden@collector/", "http://[::1", "http://a:99999"])
def test_an_unusable_endpoint_prevents_the_start_and_is_not_shown(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("TRACING_ENDPOINT", given)
    with pytest.raises(ImproperlyConfigured) as refusal:
        env.address("TRACING_ENDPOINT", "", "")
    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize("given", ["1.1", "-0.1", "nan", "half"])
def test_a_share_of_requests_below_0_or_above_1_prevents_the_start(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("TRACING_SHARE", given)
    with pytest.raises(ImproperlyConfigured, match="at least 0 and at most 1"):
        env.number("TRACING_SHARE", 1.0, "", maximum=1.0)


def test_an_endpoint_is_accepted_if_the_packages_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    show_packages()
    monkeypatch.setenv("TRACING_ENDPOINT", "https://collector.example/v1/traces")
    endpoint = env.address("TRACING_ENDPOINT", "", "")

    require_packages(endpoint)
    assert endpoint == "https://collector.example/v1/traces"


def test_an_endpoint_prevents_the_start_if_the_packages_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Simulate that the packages are not installed.
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    with pytest.raises(ImproperlyConfigured, match=r"tracing\.lock"):
        require_packages("https://collector.example/v1/traces")
