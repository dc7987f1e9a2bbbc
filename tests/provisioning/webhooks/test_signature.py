"""Signatures as in the specification Standard Webhooks: its published example, and malformed secrets."""

from __future__ import annotations

import base64

import pytest

from provisioning.webhooks.signature import SecretRefused, key_of, signature


def test_the_signature_equals_the_signature_of_the_published_example() -> None:
    signed = signature(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_!", base64.b64encode(b"k" * 32).decode(), f"whsec_{base64.b64encode(b'k' * 23).decode()}"]
)
def test_a_malformed_secret_is_refused(secret: str) -> None:
    with pytest.raises(SecretRefused):
        key_of(secret)
