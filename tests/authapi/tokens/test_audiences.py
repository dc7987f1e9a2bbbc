"""The audiences of tokens for this service."""

from __future__ import annotations

import pytest

from authapi.tokens.audiences import is_issuer, is_management_audience

HOSTS = frozenset({"acme.example.test", "::1"})


@pytest.mark.parametrize(
    "audience",
    ["https://acme.example.test/api/v2/", "https://acme.example.test:8443/api/v2/", "https://[::1]:8000/api/v2/"],
)
def test_the_management_interface_of_a_registered_host_is_recognized_on_every_port(audience: str, settings: object) -> None:
    settings.INSECURE_HTTP = False  # type: ignore[attr-defined]
    assert is_management_audience(audience, HOSTS)


@pytest.mark.parametrize(
    "audience",
    [
        "",
        "urn:x",
        "http://acme.example.test/api/v2/",
        "https://acme.example.test/api/v2",
        "https://acme.example.test/api/v2/?",
        "https://acme.example.test/x/../api/v2/",
        "https://acme.example.test//api/v2/",
        "https://elsewhere.example.test/api/v2/",
        "https://elsewhere.example.test/https://acme.example.test/api/v2/",
        "https://acme.example.test@elsewhere.example.test/api/v2/",
        "https://user@acme.example.test/api/v2/",
        "https://acme.example.test:port/api/v2/",
        "https://acme.example.test.elsewhere.test/api/v2/",
        "https://[::1/api/v2/",
        "https:///api/v2/",
    ],
)
def test_no_other_audience_is_recognized_as_the_management_interface(audience: str, settings: object) -> None:
    settings.INSECURE_HTTP = False  # type: ignore[attr-defined]
    assert not is_management_audience(audience, HOSTS)


def test_a_plain_http_audience_is_recognized_only_if_plain_http_is_served(settings: object) -> None:
    settings.INSECURE_HTTP = True  # type: ignore[attr-defined]
    assert is_issuer("http://acme.example.test/", HOSTS)
    assert not is_issuer("https://acme.example.test/", HOSTS)
