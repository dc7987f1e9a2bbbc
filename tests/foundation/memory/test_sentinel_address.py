"""URLs of Redis sentinels: every part is read, an error names the invalid part, and no error shows the password."""

from __future__ import annotations

import pytest

from foundation.memory.sentinel_address import InvalidSentinelAddress, is_sentinel_url, sentinel_address

WHOLE = (
    "rediss+sentinel://app:p%40ss@one:26380,two,[::1]:26381/main/3"
    "?sentinel_username=asker&sentinel_password=q&ssl_ca_certs=/ca.pem&ssl_check_hostname=false"
)


def test_every_part_of_a_url_is_read() -> None:
    found = sentinel_address(WHOLE)

    tls = {"ssl_ca_certs": "/ca.pem", "ssl_check_hostname": False}
    assert found.master == "main"
    assert found.sentinels == (("one", 26380), ("two", 26379), ("::1", 26381))
    assert found.to_servers == {"username": "app", "password": "p@ss", "db": 3, **tls}
    assert found.to_sentinels == {"username": "asker", "password": "q", **tls}
    assert found.is_encrypted


def test_the_name_and_password_for_the_redis_servers_are_not_sent_to_the_sentinels() -> None:
    found = sentinel_address("redis+sentinel://app:secret@one/main")

    assert found.to_sentinels == {}
    assert found.to_servers == {"username": "app", "password": "secret"}
    assert not found.is_encrypted


@pytest.mark.parametrize("url", ["redis://one/0", "rediss://one/0", "unix:///run/redis.sock"])
def test_the_url_of_one_redis_server_is_not_read_as_a_url_of_sentinels(url: str) -> None:
    assert not is_sentinel_url(url)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("redis+sentinel://app:canary@one", "names no sentinel or no master"),
        ("redis+sentinel:///main", "names no sentinel or no master"),
        ("redis+sentinel://app:canary@one,/main", "a sentinel without a host"),
        ("redis+sentinel://app:canary@one:many/main", "an invalid port"),
        ("redis+sentinel://app:canary@one/main/first", "is not a number"),
        ("redis+sentinel://app:canary@one/main?sll_ca_certs=/ca.pem", "Unknown options in the address of Redis: sll_ca_certs"),
        ("redis+sentinel://app:canary@one/main?ssl_ca_certs=/ca.pem", "has options of TLS"),
    ],
)
def test_an_invalid_url_is_refused_without_showing_its_password(url: str, sentence: str) -> None:
    with pytest.raises(InvalidSentinelAddress, match=sentence) as refused:
        sentinel_address(url)

    assert "canary" not in str(refused.value)
