"""`/oauth/ro` with a token that a device signed, and the keys of devices."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import RSAKey

from authapi.models import DeviceKey, SignIn
from authapi.protocols.legacy.opting_in import DEVICE_KEY
from authapi.protocols.legacy.requests import JWT_BEARER
from authapi.services.device_keys import delete_device_key, register_device_key
from identity.services.failures import Invalid, NotFound
from identity.services.users import update_user
from tests.authapi.asgi_client import Received
from tests.authapi.forging import decoded
from tests.authapi.protocols.legacy.conftest import GRANTS, OldClient, change, refusal
from tests.factories.identity import make_user

KEY, OTHER = RSAKey.generate_key(2048), RSAKey.generate_key(2048)
# The service refuses this key, because it is too short.
SHORT = generate_private_key(65537, 1024).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()  # noqa: S505
INVALID = (400, "invalid_grant", "The id_token is not signed by a key of this device, is too old, or was used before.")
PHONE, PHONE_ID = "Ada's phone", "device-1"


def register(old: OldClient, **changes: Any) -> DeviceKey:
    fields = {
        "user_id": old.user.user_id,
        "client_id": old.client.client_id,
        "device_name": PHONE,
        "device_id": PHONE_ID,
        "public_key": KEY.as_pem(private=False).decode(),
    }
    return register_device_key(tenant_id=old.tenant.pk, **{**fields, **changes})


def signed(old: OldClient, key: RSAKey = KEY, *, algorithm: str = "RS256", **changes: Any) -> str:
    now = int(time.time())
    claims = {"iss": PHONE_ID, "sub": old.user.user_id, "aud": old.issuer, "iat": now, "exp": now + 60, "jti": uuid.uuid4().hex}
    left = {name: value for name, value in {**claims, **changes}.items() if value is not None}
    return jwt.encode({"alg": algorithm}, left, key, algorithms=[algorithm])


def log_in(old: OldClient, token: str | None, **changes: Any) -> Received:
    form = {"client_id": old.client.client_id, "grant_type": JWT_BEARER, "device": PHONE, "id_token": token, "scope": "openid"}
    return old.ask("/oauth/ro", {**form, **changes})


@pytest.mark.parametrize("missing", ["id_token", "device"])
def test_the_refusal_names_a_missing_parameter(old: OldClient, missing: str) -> None:
    assert refusal(log_in(old, "x", **{missing: None})) == (400, "invalid_request", f"missing {missing} parameter")


def test_a_client_without_the_grant_is_refused(old: OldClient) -> None:
    change(old.client, grant_types=[grant for grant in GRANTS if grant != DEVICE_KEY])
    words = f"Grant type '{DEVICE_KEY}' not allowed for the client."
    assert refusal(log_in(old, "x")) == (403, "unauthorized_client", words)


def test_a_device_logs_its_user_in(old: OldClient) -> None:
    register(old)
    answer = log_in(old, signed(old))
    assert answer.status == 200, answer.body
    assert decoded(answer.json()["id_token"])[1]["sub"] == old.user.user_id
    assert decoded(answer.json()["id_token"])[1]["amr"] == ["hwk"]
    assert SignIn.objects.of(old.tenant.pk).get().type == "s"


def test_a_token_is_accepted_once(old: OldClient) -> None:
    register(old)
    token = signed(old)
    assert [log_in(old, token).status for _ in range(2)] == [200, 400]


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "device-2"},
        {"sub": "database|nobody"},
        {"aud": "https://elsewhere.example.test/"},
        {"exp": int(time.time()) - 60},
        {"iat": int(time.time()) + 600, "exp": int(time.time()) + 700},
        {"exp": int(time.time()) + 3600},
        {"jti": None},
        {"jti": "x" * 65},
        {"exp": "soon"},
        {"aud": None},
    ],
)
def test_an_invalid_claim_is_refused(old: OldClient, changes: dict[str, Any]) -> None:
    register(old)
    assert refusal(log_in(old, signed(old, **changes))) == INVALID


def test_a_token_of_another_key_or_another_device_is_refused(old: OldClient) -> None:
    register(old)
    assert refusal(log_in(old, signed(old, OTHER))) == INVALID
    assert refusal(log_in(old, signed(old), device="Another phone")) == INVALID
    assert refusal(log_in(old, signed(old, algorithm="RS384"))) == INVALID
    for token in ("x", "a.b.c", "é", "x" * 5000):
        assert refusal(log_in(old, token)) == INVALID


def test_a_key_is_valid_only_for_its_user_and_its_client_and_its_tenant(old: OldClient, second: OldClient) -> None:
    register(old)
    other = make_user(connection=old.connection, email="bob@example.test")
    assert refusal(log_in(old, signed(old, sub=other.user_id))) == INVALID
    assert refusal(log_in(second, signed(old, aud=second.issuer))) == INVALID


def test_a_deleted_key_is_refused(old: OldClient) -> None:
    key = register(old)
    assert delete_device_key(tenant_id=old.tenant.pk, wire_id=key.wire_id)
    assert refusal(log_in(old, signed(old))) == INVALID


def test_the_refusal_says_that_a_user_is_blocked(old: OldClient) -> None:
    register(old)
    update_user(tenant_id=old.tenant.pk, user_id=old.user.user_id, changes={"blocked": True})
    assert refusal(log_in(old, signed(old))) == (401, "unauthorized", "user is blocked")


def test_a_second_registration_of_a_device_replaces_its_key(old: OldClient) -> None:
    register(old)
    register(old, public_key=OTHER.as_pem(private=False).decode())
    assert refusal(log_in(old, signed(old))) == INVALID
    assert log_in(old, signed(old, OTHER)).status == 200


@pytest.mark.parametrize("pem", ["", "x", SHORT], ids=["missing", "not PEM", "a short key"])
def test_an_invalid_or_short_key_is_refused(old: OldClient, pem: str) -> None:
    with pytest.raises(Invalid):
        register(old, public_key=pem)


def test_users_and_clients_of_another_tenant_are_unknown(old: OldClient, second: OldClient) -> None:
    for changes in ({"user_id": second.user.user_id}, {"client_id": second.client.client_id}):
        with pytest.raises(NotFound):
            register(old, **changes)
