from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env


@pytest.fixture(autouse=True)
def _own_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "SETTINGS", {})


def test_name_servers_have_an_address_and_an_optional_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVERS", "192.0.2.53, 192.0.2.54:5353, 2001:db8::53, [2001:db8::54]:5353, [2001:db8::55]")
    expected = [("192.0.2.53", 53), ("192.0.2.54", 5353), ("2001:db8::53", 53), ("2001:db8::54", 5353), ("2001:db8::55", 53)]
    assert env.servers("SERVERS", 53, "Where names are looked up.") == expected


@pytest.mark.parametrize("value", ["dns.example.org", "192.0.2.53:dns", "192.0.2.53:0", "192.0.2.53:70000", "192.0.2.53:", "[::1"])
def test_an_invalid_name_server_is_refused_with_the_name_of_the_setting(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SERVERS", value)
    with pytest.raises(ImproperlyConfigured, match="SERVERS="):
        env.servers("SERVERS", 53, "Where names are looked up.")
