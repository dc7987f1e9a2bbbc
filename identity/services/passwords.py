"""The stored passwords of end users: check, rehash, set."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from foundation.hooks import password_changed
from foundation.secrets.hashing import hashed, verified
from identity.models import FormerPassword, PasswordCredential, User
from identity.passwords import history_size
from identity.services.failures import Invalid


def check_credential(credential: PasswordCredential, password: str) -> bool:
    """Tell whether the password is correct.

    An older or imported hash is replaced after the first correct password. This change is not a profile change, so no event is recorded.
    """
    fits, must_renew = verified(password, credential.password_hash)
    if fits and must_renew:
        # The filter on the hash skips the update after a concurrent rehash or a concurrent change of the password.
        stored = PasswordCredential.objects.filter(pk=credential.pk, password_hash=credential.password_hash)
        stored.update(password_hash=hashed(password))
    return fits


def set_password(user: User, password: str) -> None:
    """Store the hash of `password`. Raises `Invalid` for a user of a connection that is not a database.

    If the connection refuses reuse, the former hash is kept; the connection sets how many former hashes are kept. In the
    same transaction, receivers of the signal `password_changed` end the sessions and tokens that were created with the old password.
    """
    if not user.connection.is_database:
        raise Invalid({"password": ["Only users of a database connection have a password."]})
    stored = hashed(password)
    before = PasswordCredential.objects.filter(user=user).first()
    if before is not None:
        _remember(user, before)
        # Bypasses the recorded save: no event shows passwords, and `updated_at` of the user must stay unchanged.
        models.QuerySet(User).filter(pk=user.pk).update(last_password_reset=timezone.now())
    PasswordCredential.objects.update_or_create(user=user, defaults={"password_hash": stored, "leak_told_at": None})
    password_changed.send(sender=User, user=user, is_first=before is None)


def note_leak(credential: PasswordCredential) -> bool:
    """Store that the user is notified of the breach of this password.

    Returns False if this is already stored, or if the password has changed.
    """
    same = PasswordCredential.objects.filter(pk=credential.pk, leak_told_at=None, changed_at=credential.changed_at)
    return bool(same.update(leak_told_at=timezone.now()))


def was_used_before(user: User, password: str) -> bool:
    """Tell whether this is the present password of the user, or a former password that the history contains."""
    kept = history_size(user.connection.options)
    if not kept:
        return False
    stored = [*PasswordCredential.objects.filter(user=user).values_list("password_hash", flat=True)]
    stored += _history(user).values_list("password_hash", flat=True)[:kept]
    return any(verified(password, encoded)[0] for encoded in stored)


def _history(user: User) -> models.QuerySet[FormerPassword]:
    return FormerPassword.objects.filter(user=user).order_by("-pk")


def _remember(user: User, credential: PasswordCredential) -> None:
    kept = history_size(user.connection.options)
    if kept:
        FormerPassword.objects.create(user=user, password_hash=credential.password_hash)
    FormerPassword.objects.filter(pk__in=list(_history(user)[kept:].values_list("pk", flat=True))).delete()
