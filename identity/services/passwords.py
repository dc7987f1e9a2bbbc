"""Checking the password of an end user."""

from __future__ import annotations

from functools import partial

from django.contrib.auth.hashers import check_password, make_password

from identity.models import PasswordCredential, User


def password_fits(user: User, password: str) -> bool:
    """Tell whether this is the user's password; without one none is.

    A hash of an older kind, or one that an import brought along, is renewed at the first password that fits. That is no profile
    change, so it makes no event. An unknown user costs as much time as a wrong password only if the caller sees to it.
    """
    credential = PasswordCredential.objects.filter(user=user).first()
    if credential is None:
        return False
    return check_password(password, credential.password_hash, setter=partial(_renew, credential))


def _renew(credential: PasswordCredential, password: str) -> None:
    # Of two logins at once one may find the hash renewed already; a password changed meanwhile stays.
    stored = PasswordCredential.objects.filter(pk=credential.pk, password_hash=credential.password_hash)
    stored.update(password_hash=make_password(password))
