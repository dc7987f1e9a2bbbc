"""`PROVIDER_ADDRESSES` maps strategy and name to a URL. An invalid value prevents the start with an error message."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env

EFFECT = "Addresses in place of others."


@pytest.fixture(autouse=True)
def _own_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "SETTINGS", {})


def test_urls_are_read_by_strategy_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    given = "github.token_endpoint=https://a.example.test/t?x=y, github.user_endpoint=https://a.example.test/u,apple.issuer=http://b.example.test"
    monkeypatch.setenv("ADDRESSES", given)
    assert env.replacements("ADDRESSES", EFFECT) == {
        "github": {"token_endpoint": "https://a.example.test/t?x=y", "user_endpoint": "https://a.example.test/u"},
        "apple": {"issuer": "http://b.example.test"},
    }


@pytest.mark.parametrize("given", ["github=https://a.test", "github.token_endpoint", "github.token_endpoint=a.test", ".x=https://a.test"])
def test_an_invalid_item_prevents_the_start_with_an_error_about_the_item(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("ADDRESSES", given)
    with pytest.raises(ImproperlyConfigured, match="ADDRESSES"):
        env.replacements("ADDRESSES", EFFECT)
