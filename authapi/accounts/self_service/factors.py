"""Lets users rename and remove their second factors and passkeys, and renew their recovery code."""

from __future__ import annotations

from collections.abc import Collection

from authapi.accounts.self_service.own_act import OwnAct, own_act
from authapi.factors.kinds import PASSKEY
from identity.factors import user_factors
from identity.models import EnrolledFactor, User
from identity.services.failures import NotFound

SECOND_FACTORS, PASSKEYS = tuple(EnrolledFactor.SECOND_FACTORS), (PASSKEY,)
_REMOVED = "gd_unenroll"


def has_recovery_code(user: User) -> bool:
    """Tell whether the user has a recovery code. The code itself is never shown again."""
    return bool(user_factors.factors_of(user, (EnrolledFactor.Kind.RECOVERY_CODE,)))


@own_act("Renamed a factor")
def rename(own: OwnAct, user: User, *, device: str, kinds: Collection[str], name: str) -> None:
    """Rename a factor of one of these kinds. Raises `NotFound` if the user has no such factor, and `Invalid` if the name is invalid."""
    _require_kind(user, device, kinds)
    user_factors.rename_factor(tenant_id=user.tenant_id, user_id=user.user_id, device=device, name=name)


@own_act("Removed a factor")
def remove(own: OwnAct, user: User, *, device: str, kinds: Collection[str]) -> None:
    """Remove a factor of one of these kinds. Removing the last second factor also removes the recovery code. Raises `NotFound`."""
    _require_kind(user, device, kinds)
    factor = user_factors.remove_factor(tenant_id=user.tenant_id, user_id=user.user_id, device=device, is_by_user=True)
    own.note(_REMOVED, kind=factor.kind)


@own_act("Made a new recovery code")
def renew_recovery_code(own: OwnAct, user: User) -> str:
    """Replace the recovery code; return the new code, which is shown only once. Raises `Conflict` if the user has no second factor."""
    return user_factors.renew_recovery_code(tenant_id=user.tenant_id, user_id=user.user_id)


def _require_kind(user: User, device: str, kinds: Collection[str]) -> None:
    factor = user_factors.factor_named(user, device)
    if factor.kind not in kinds or not factor.is_confirmed:
        raise NotFound("The user has no such factor.")
