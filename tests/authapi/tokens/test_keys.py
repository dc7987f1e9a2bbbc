"""Signing keys: created once, published before they sign, rotated without a failed verification, and revoked immediately."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection
from joserfc import jwt
from joserfc.jwk import KeySet

from authapi.models import SigningKey
from authapi.tokens import keys
from authapi.tokens.key_pairs import new_key_pair
from authapi.tokens.keys import UnknownKey, ensure_keys, published_keys, revoke_key, rotate_due_keys, rotate_keys, signing_key
from authapi.tokens.verifying import InvalidSignature, verify_access_token
from identity.models import Tenant
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import get
from tests.composed_keys import composed_private_key, generated_private_key
from tests.factories.authapi import access_token, global_client, host_of


def states(tenant: Tenant) -> list[tuple[str, str]]:
    return [(row.kid, row.state) for row in SigningKey.objects.of(tenant.pk)]


def test_the_first_use_creates_a_current_and_a_next_key(tenant: Tenant) -> None:
    assert states(tenant) == []
    kid, _ = signing_key(tenant.pk)
    assert [state for _, state in states(tenant)] == ["current", "next"]
    assert [jwk["kid"] for jwk in published_keys(tenant.pk)] == [row_kid for row_kid, _ in states(tenant)]
    assert published_keys(tenant.pk)[0]["kid"] == kid


def test_many_simultaneous_requests_create_the_keys_once(tenant: Tenant) -> None:
    together = threading.Barrier(4)

    def ask() -> None:
        together.wait()
        try:
            ensure_keys(tenant.pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [state for _, state in states(tenant)] == ["current", "next"]


def test_each_tenant_has_its_own_keys(tenant: Tenant) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    assert signing_key(tenant.pk)[0] != signing_key(other.pk)[0]


def test_private_keys_are_stored_encrypted_and_bound_to_their_row(tenant: Tenant) -> None:
    row = ensure_keys(tenant.pk)
    assert "PRIVATE KEY" not in row.sealed_private_key
    assert "PRIVATE KEY" in row.private_key()
    moved = SigningKey(tenant_id="elsewhere", kid=row.kid, sealed_private_key=row.sealed_private_key)
    with pytest.raises(RuntimeError, match="cannot be decrypted"):
        moved.private_key()


def test_a_published_key_has_all_public_members_and_nothing_private(tenant: Tenant) -> None:
    answer = get(tenant, "/.well-known/jwks.json")
    assert answer.status == 200
    for jwk in answer.json()["keys"]:
        assert jwk.keys() == {"alg", "kty", "use", "n", "e", "kid", "x5t", "x5c"}
        assert (jwk["alg"], jwk["kty"], jwk["use"]) == ("RS256", "RSA", "sig")


def test_every_token_verifies_after_a_rotation(tenant: Tenant) -> None:
    registered = global_client(tenant)
    issued = [access_token(tenant, registered)]
    # The key set that a client cached before the rotation.
    before = KeySet.import_key_set(get(tenant, "/.well-known/jwks.json").json())
    for _ in range(3):
        rotate_keys(tenant.pk)
        issued.append(access_token(tenant, registered))
        for token in issued:
            assert verify_access_token(token, host=host_of(tenant)).client_id == registered.client_id
    published = KeySet.import_key_set(get(tenant, "/.well-known/jwks.json").json())
    for token in issued:
        jwt.decode(token, published, algorithms=["RS256"])
    jwt.decode(issued[1], before, algorithms=["RS256"])
    assert [state for _, state in states(tenant)] == ["previous", "previous", "previous", "current", "next"]


def test_a_process_with_cached_old_keys_verifies_tokens_of_the_new_key(tenant: Tenant) -> None:
    registered = global_client(tenant)
    access_token(tenant, registered)
    remembered = keys.trust.get(tenant.pk)
    rotate_keys(tenant.pk)
    token = access_token(tenant, registered)
    known = remembered.public_keys[signing_key(tenant.pk)[0]]
    assert jwt.decode(token, known.imported(), algorithms=["RS256"]).claims["azp"] == registered.client_id


def test_a_previous_key_is_removed_after_the_last_token_that_it_signed_has_expired(tenant: Tenant) -> None:
    token = access_token(tenant, global_client(tenant))
    old = signing_key(tenant.pk)[0]
    rotate_keys(tenant.pk)
    assert old in {jwk["kid"] for jwk in published_keys(tenant.pk)}
    with time_machine.travel(datetime.now(UTC) + timedelta(days=31)):
        keys.trust.clear()
        assert old not in {jwk["kid"] for jwk in published_keys(tenant.pk)}
        with pytest.raises(InvalidSignature):
            verify_access_token(token, host=host_of(tenant))
        rotate_keys(tenant.pk)
        assert old not in {kid for kid, _ in states(tenant)}


@pytest.mark.parametrize("state", ["current", "next", "previous"])
def test_a_revoked_key_is_not_published_or_trusted_and_the_other_keys_stay_valid(tenant: Tenant, state: str) -> None:
    registered = global_client(tenant)
    access_token(tenant, registered)
    rotate_keys(tenant.pk)
    kid = SigningKey.objects.of(tenant.pk).get(state=state).kid
    tokens = {signing_key(tenant.pk)[0]: access_token(tenant, registered)}
    revoke_key(tenant.pk, kid)
    fresh = access_token(tenant, registered)
    verify_access_token(fresh, host=host_of(tenant))
    assert kid not in {jwk["kid"] for jwk in published_keys(tenant.pk)}
    if kid in tokens:
        with pytest.raises(InvalidSignature):
            verify_access_token(tokens[kid], host=host_of(tenant))
    live = [row_state for _, row_state in states(tenant) if row_state in {"current", "next"}]
    assert sorted(live) == ["current", "next"]


def test_a_key_of_another_tenant_cannot_be_revoked(tenant: Tenant) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    with pytest.raises(UnknownKey):
        revoke_key(tenant.pk, ensure_keys(other.pk).kid)


def test_the_scheduled_task_rotates_keys_that_have_signed_long_enough(tenant: Tenant) -> None:
    old = ensure_keys(tenant.pk)
    # Keys of other tests are minutes old, so only this tenant's key is due.
    _has_signed_for(tenant, timedelta(days=1))
    assert rotate_due_keys(timedelta(days=2)) == 0
    _has_signed_for(tenant, timedelta(days=3))
    assert rotate_due_keys(timedelta(days=2)) == 1
    assert signing_key(tenant.pk)[0] != old.kid
    fresh = signing_key(tenant.pk)[0]
    assert rotate_due_keys(timedelta(days=2)) == 0
    assert signing_key(tenant.pk)[0] == fresh


def _has_signed_for(tenant: Tenant, age: timedelta) -> None:
    SigningKey.objects.of(tenant.pk).filter(state="current").update(current_since=datetime.now(UTC) - age)


def test_the_command_rotates_the_keys_of_one_tenant_and_prints_the_new_key(tenant: Tenant) -> None:
    waiting = SigningKey.objects.of(tenant.pk).exclude(pk=ensure_keys(tenant.pk).pk).get().kid
    out = StringIO()
    call_command("rotate_signing_keys", tenant=tenant.pk, stdout=out)
    assert out.getvalue() == f"{tenant.pk}: key {waiting} signs now.\n"
    assert signing_key(tenant.pk)[0] == waiting


def test_the_command_revokes_a_key(tenant: Tenant) -> None:
    kid = ensure_keys(tenant.pk).kid
    call_command("rotate_signing_keys", tenant=tenant.pk, revoke=kid, stdout=StringIO())
    assert SigningKey.objects.of(tenant.pk).get(kid=kid).state == "revoked"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"revoke": "x"}, "--revoke requires --tenant"),
        ({"tenant": "no-such-tenant"}, "There is no tenant no-such-tenant"),
    ],
)
def test_the_command_refuses_invalid_options_with_an_explanation(tenant: Tenant, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("rotate_signing_keys", **options)


def test_the_command_reports_an_unknown_key(tenant: Tenant) -> None:
    with pytest.raises(CommandError, match="has no revocable key nothing"):
        call_command("rotate_signing_keys", tenant=tenant.pk, revoke="nothing")


def test_the_repr_of_a_key_pair_does_not_contain_its_private_key() -> None:
    pair = new_key_pair(subject="acme", now=datetime(2026, 1, 1, tzinfo=UTC))
    assert "PRIVATE" in pair.private_pem
    assert repr(pair) == f"KeyPair(kid={pair.kid!r})"
    assert len(pair.kid) == 21


def test_keys_outside_of_tests_are_generated_and_unique() -> None:
    first, second = (generated_private_key().private_numbers() for _ in range(2))
    assert {first.p, first.q}.isdisjoint({second.p, second.q})
    assert (first.public_numbers.n.bit_length(), first.public_numbers.e) == (2048, 65537)


def test_the_keys_of_tests_are_valid() -> None:
    key = composed_private_key()
    key.private_numbers().private_key()
    assert key.key_size == 2048
