"""A digest matches its value only while the key of the digest is configured. A sealed value can be opened only for the place for which it
was sealed."""

from __future__ import annotations

import hmac
from typing import Any

import pytest

from foundation.secrets import vault


def test_a_digest_matches_its_value_only_while_its_key_is_configured(settings: Any) -> None:
    stored = vault.digest("value")
    assert vault.digest_matches("value", stored)
    assert not vault.digest_matches("other", stored)
    settings.DIGEST_KEYS = {"new": "another-digest-key-0123456789-0123456789"}
    assert not vault.digest_matches("value", stored)


@pytest.mark.parametrize("key", ["", "absent"])
def test_a_digest_made_with_an_unconfigured_key_matches_nothing(key: str) -> None:
    forged = hmac.digest(key.encode(), b"value", "sha256").hex()
    assert not vault.digest_matches("value", f"gone.{forged}")
    assert not vault.digest_matches("value", forged)


def test_a_sealed_value_can_be_opened_only_for_its_own_place() -> None:
    sealed = vault.seal("value", place="tenant-a:table:1:name")
    assert vault.unseal(sealed, place="tenant-a:table:1:name") == "value"
    with pytest.raises(vault.SecretUnreadable):
        vault.unseal(sealed, place="tenant-b:table:1:name")
