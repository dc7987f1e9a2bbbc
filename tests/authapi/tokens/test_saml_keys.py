"""Certificates for SAML: created once, published before they sign, and published as long as partners need them."""

from __future__ import annotations

import threading
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from authapi.models import SamlKey
from authapi.tokens.keys import signing_key
from authapi.tokens.saml_keys import (
    KeyInUse,
    NoNextKey,
    current_key,
    decryption_keys,
    prepare_key,
    published_certificates,
    remove_key,
    rotate_key,
    signing_identity,
)
from authapi.xml.certificates import fingerprint_of
from identity.models import Tenant


def states(tenant: Tenant) -> list[str]:
    return [row.state for row in SamlKey.objects.of(tenant.pk)]


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("saml_keys", *arguments, stdout=out)
    return out.getvalue()


def test_the_first_use_creates_one_certificate_with_a_separate_key(tenant: Tenant) -> None:
    identity = signing_identity(tenant.pk)
    assert states(tenant) == ["current"]
    assert published_certificates(tenant.pk) == (identity.certificate,)
    public = identity.private_key.public_key()
    assert identity.certificate.public_key() == public
    assert signing_key(tenant.pk)[1].public_key != public
    assert identity.certificate.not_valid_after_utc > timezone.now() + timedelta(days=3000)


def test_many_simultaneous_requests_create_the_certificate_once(tenant: Tenant) -> None:
    together = threading.Barrier(4)

    def ask() -> None:
        together.wait()
        try:
            signing_identity(tenant.pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states(tenant) == ["current"]


def test_a_rollover_publishes_the_new_certificate_first_and_keeps_the_old_certificate(tenant: Tenant) -> None:
    old = signing_identity(tenant.pk)
    following = prepare_key(tenant.pk)
    assert prepare_key(tenant.pk).kid == following.kid
    assert signing_identity(tenant.pk).kid == old.kid
    published = published_certificates(tenant.pk)
    assert (published[0], len(published)) == (old.certificate, 2)
    assert rotate_key(tenant.pk).kid == following.kid
    assert signing_identity(tenant.pk).kid == following.kid
    assert published_certificates(tenant.pk) == (published[1], published[0])
    # Messages that partners still encrypt for the old certificate can be decrypted.
    assert [each.public_key().public_numbers() for each in decryption_keys(tenant.pk)][1] == old.private_key.public_key().public_numbers()
    remove_key(tenant.pk, old.kid)
    assert published_certificates(tenant.pk) == (published[1],)


def test_only_an_already_published_certificate_can_sign(tenant: Tenant) -> None:
    signing_identity(tenant.pk)
    with pytest.raises(NoNextKey):
        rotate_key(tenant.pk)
    assert states(tenant) == ["current"]


def test_the_signing_certificate_cannot_be_removed(tenant: Tenant) -> None:
    row = current_key(tenant.pk)
    with pytest.raises(KeyInUse):
        remove_key(tenant.pk, row.kid)
    with pytest.raises(LookupError):
        remove_key(tenant.pk, "unknown")
    assert states(tenant) == ["current"]


def test_private_keys_are_stored_encrypted_and_bound_to_their_row(tenant: Tenant) -> None:
    row = current_key(tenant.pk)
    assert "PRIVATE KEY" not in row.sealed_private_key
    assert "PRIVATE KEY" in row.private_key()
    moved = SamlKey(tenant_id="elsewhere", kid=row.kid, sealed_private_key=row.sealed_private_key)
    with pytest.raises(RuntimeError, match="cannot be decrypted"):
        moved.private_key()


def test_the_command_can_list_prepare_rotate_and_remove_certificates(tenant: Tenant) -> None:
    first = signing_identity(tenant.pk)
    assert f"{first.kid}  current" in command("--tenant", tenant.pk)
    assert fingerprint_of(first.certificate) in command("--tenant", tenant.pk)
    assert "is published" in command("--tenant", tenant.pk, "--prepare")
    assert "signs now" in command("--tenant", tenant.pk, "--rotate")
    assert "is removed" in command("--tenant", tenant.pk, "--remove", first.kid)
    assert states(tenant) == ["current"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tenant", "nowhere"), "no tenant"),
        (("--rotate",), "Publish one"),
        (("--remove", "x"), "no certificate x"),
        (("--prepare", "--rotate"), "one step at a time"),
    ],
)
def test_the_command_explains_errors(tenant: Tenant, arguments: tuple[str, ...], says: str) -> None:
    named = arguments if "--tenant" in arguments else ("--tenant", tenant.pk, *arguments)
    with pytest.raises(CommandError, match=says):
        command(*named)


def test_the_command_does_not_remove_the_signing_certificate(tenant: Tenant) -> None:
    with pytest.raises(CommandError, match="another certificate current"):
        command("--tenant", tenant.pk, "--remove", signing_identity(tenant.pk).kid)
