"""The configuration of a webhook: members that can be read, sealed secrets, refused members, and the header Authorization."""

from __future__ import annotations

from typing import Any

import pytest

from provisioning.webhooks.configuration import ConfigurationRefused, authorization_header, parse_configuration

URL = "https://hooks.example.test/in?a=1"
SIGNED = {"method": "standard-webhooks", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
AUTHORIZATIONS: list[tuple[dict[str, str], dict[str, str], tuple[str, str]]] = [
    (
        {"method": "basic", "username": "ada", "password": "pä:ss"},
        {"method": "basic", "username": "ada"},
        ("Authorization", "Basic YWRhOnDDpDpzcw=="),
    ),
    ({"method": "bearer", "token": "t0k3n"}, {"method": "bearer"}, ("Authorization", "Bearer t0k3n")),
    (
        {"method": "custom_header", "header_key": "X-Key", "header_value": "a b"},
        {"method": "custom_header", "header_key": "X-Key"},
        ("X-Key", "a b"),
    ),
]


@pytest.mark.parametrize(("sent", "shown", "header"), AUTHORIZATIONS)
def test_secrets_are_separated_from_visible_members(sent: dict[str, str], shown: dict[str, str], header: tuple[str, str]) -> None:
    parsed = parse_configuration({"webhook_endpoint": URL, "webhook_authorization": sent, "webhook_signature": SIGNED}, allow_http=False)
    assert parsed.shown == {
        "webhook_endpoint": URL,
        "webhook_authorization": shown,
        "webhook_signature": {"method": "standard-webhooks"},
    }
    assert authorization_header(parsed.shown["webhook_authorization"], parsed.secrets) == header
    assert not any(secret in repr(parsed) for secret in parsed.secrets.values())


BEARER = {"method": "bearer", "token": "t"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "webhook_endpoint"),
    ({"webhook_endpoint": 5}, "webhook_endpoint"),
    ({"webhook_endpoint": "http://hooks.example.test"}, "webhook_endpoint"),
    ({"webhook_endpoint": "https://"}, "webhook_endpoint"),
    ({"webhook_endpoint": "https://u:p@hooks.example.test"}, "webhook_endpoint"),
    ({"webhook_endpoint": "https://hooks.example.test/#x"}, "webhook_endpoint"),
    ({"webhook_endpoint": "https://hooks.example.test/\r\nX: y"}, "webhook_endpoint"),
    ({"webhook_endpoint": "https://hooks.example.test:99999"}, "webhook_endpoint"),
    ({"webhook_endpoint": URL}, "webhook_authorization"),
    ({"webhook_endpoint": URL, "webhook_authorization": {"method": "digest"}}, "webhook_authorization.method"),
    ({"webhook_endpoint": URL, "webhook_authorization": {"method": ["basic"]}}, "webhook_authorization.method"),
    ({"webhook_endpoint": URL, "webhook_authorization": {"method": "bearer"}}, "webhook_authorization.token"),
    ({"webhook_endpoint": URL, "webhook_authorization": {"method": "bearer", "token": "a\nb"}}, "webhook_authorization.token"),
    ({"webhook_endpoint": URL, "webhook_authorization": {**BEARER, "username": "u"}}, "webhook_authorization.username"),
    (
        {"webhook_endpoint": URL, "webhook_authorization": {"method": "basic", "username": "a:b", "password": "p"}},
        "webhook_authorization.username",
    ),
    (
        {"webhook_endpoint": URL, "webhook_authorization": {"method": "custom_header", "header_key": "Host", "header_value": "x"}},
        "webhook_authorization.header_key",
    ),
    ({"webhook_endpoint": URL, "webhook_authorization": BEARER, "webhook_signature": {"method": "standard-webhooks"}}, "webhook_signature"),
    (
        {"webhook_endpoint": URL, "webhook_authorization": BEARER, "webhook_signature": {**SIGNED, "secret": "short"}},
        "webhook_signature.secret",
    ),
    ({"webhook_endpoint": URL, "webhook_authorization": BEARER, "x": 1}, "x"),
]


@pytest.mark.parametrize(("configuration", "name"), REFUSED)
def test_the_refusal_of_an_invalid_member_names_its_path(configuration: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigurationRefused) as refused:
        parse_configuration(configuration, allow_http=False)
    assert refused.value.name == name


def test_plain_http_is_accepted_if_the_settings_allow_it() -> None:
    configuration = {"webhook_endpoint": "http://127.0.0.1:9/", "webhook_authorization": BEARER}
    assert parse_configuration(configuration, allow_http=True).shown["webhook_endpoint"] == "http://127.0.0.1:9/"
