"""Options of `email` and `sms` connections: the service refuses to store values that could not work."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.accounts.passwordless.addresses import Address, Channel
from authapi.accounts.passwordless.options import read_options
from identity.models import Tenant
from identity.services.connections import create_connection
from identity.services.failures import Invalid


@pytest.mark.parametrize("strategy", ["email", "sms"])
@pytest.mark.parametrize(
    "passcode",
    [
        {"length": 4},
        {"length": 11},
        {"length": "6"},
        {"length": True},
        {"time_step": 59},
        {"time_step": 901},
        "odd",
    ],
)
def test_a_weak_or_invalid_passcode_option_is_refused(tenant: Tenant, strategy: str, passcode: Any) -> None:
    with pytest.raises(Invalid, match="totp"):
        create_connection(tenant_id=tenant.pk, name="way-in", strategy=strategy, options={"totp": passcode})


def test_an_unknown_provider_of_text_messages_is_refused(tenant: Tenant) -> None:
    with pytest.raises(Invalid, match="provider"):
        create_connection(tenant_id=tenant.pk, name="sms", strategy="sms", options={"provider": "pigeon"})


def test_an_invalid_value_that_an_older_version_stored_is_ignored() -> None:
    assert read_options({"totp": {"length": 2, "time_step": "x"}}) == read_options({})
    assert read_options({"totp": {"length": 8, "time_step": 300}}).length == 8


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        (Address(Channel.EMAIL, "ada@example.test"), "a•••@example.test"),
        (Address(Channel.EMAIL, "a@example.test"), "a•••@example.test"),
        (Address(Channel.SMS, "+4915112345678"), "••••••••••••78"),
    ],
)
def test_an_address_is_masked_on_pages(address: Address, masked: str) -> None:
    assert address.masked == masked
