"""Reports whether a password matches the stored hash of a user."""

from __future__ import annotations

from identity.models import PasswordCredential, User
from identity.services.passwords import check_credential


def password_fits(user: User, password: str) -> bool:
    return check_credential(PasswordCredential.objects.get(user=user), password)
