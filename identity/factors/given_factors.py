"""Sets the factors of a user through the management interface. The caller has verified that the factors belong to the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foundation.database.transactions import unit_of_work
from identity.factors.user_factors import Kind, factors_of, give_factor, remove_factor
from identity.models import EnrolledFactor
from identity.services.users import locked_user

# Kinds of factors that the management interface can set. Keys are excluded, because only an authenticator can create a key.
KINDS = (Kind.PHONE, Kind.EMAIL, Kind.TOTP)


@dataclass(frozen=True)
class GivenFactor:
    """A factor that a request describes by a phone number, an email address, or the secret of an authenticator app."""

    kind: str
    address: str = ""
    secret: str = field(default="", repr=False)
    name: str = ""

    def is_same(self, factor: EnrolledFactor) -> bool:
        """Tell whether `factor` matches this description."""
        if self.kind != factor.kind:
            return False
        return self.secret == factor.secret() if self.secret else self.address.casefold() == factor.address.casefold()


@unit_of_work
def replace_factors(*, tenant_id: str, user_id: str, wanted: Sequence[GivenFactor]) -> list[EnrolledFactor]:
    """Replace the phone numbers, email addresses and apps of a user by `wanted`. Return the factors in the order of `wanted`. Keys and
    passkeys are kept.

    A factor that exists already keeps its id. Raises the errors of `give_factor`; after an error, nothing has changed.
    """
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    present, found = factors_of(user, KINDS), []
    for one in wanted:
        same = next((factor for factor in present if one.is_same(factor)), None)
        found.append(same or _given(tenant_id, user_id, one))
    kept = {factor.pk for factor in found}
    # Remove factors only after the new factors are added: a user without any factor would lose the recovery code.
    for factor in present:
        if factor.pk not in kept:
            remove_factor(tenant_id=tenant_id, user_id=user_id, device=factor.device)
    return found


def _given(tenant_id: str, user_id: str, one: GivenFactor) -> EnrolledFactor:
    return give_factor(tenant_id=tenant_id, user_id=user_id, kind=one.kind, address=one.address, secret=one.secret, name=one.name)
