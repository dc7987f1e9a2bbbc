"""The factors of staff accounts: enroll, use, rename, remove. Every change of the set of factors ends the other sessions of the account.

A conditional update marks a code or counter as used. So exactly one of two concurrent uses succeeds, also in different processes.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass

import structlog
from django.db.models import F
from django.utils import timezone

from foundation.database.transactions import unit_of_work
from foundation.secrets import totp, vault
from identity.audit import entries
from identity.models import Staff, StaffFactor, StaffRecoveryCode
from identity.services.failures import AlreadyExists, Conflict, Invalid, NotFound

RECOVERY_CODES = 10
MOST_FACTORS = 20
LONGEST_NAME = 60
# 15 bytes are 120 random bits, 24 characters. With that much entropy a fast digest is as safe as a slow hash.
_RECOVERY_BYTES = 15
_GROUP = 6

_logger = structlog.get_logger(__name__)


class WrongCode(Conflict):
    """This code is wrong, or it was used before. Wait for the next code, and check the clock of your device."""


@dataclass(frozen=True)
class NewPasskey:
    """The verified result of a registration."""

    credential_id: str
    public_key: bytes
    sign_count: int
    transports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Enrolled:
    """A new factor. The first factor of an account comes with recovery codes, which cannot be shown again."""

    staff: Staff
    factor: StaffFactor
    recovery_codes: tuple[str, ...]


def has_factors(staff: Staff) -> bool:
    """Tell whether the account has a second factor. Recovery codes alone do not count."""
    return StaffFactor.objects.filter(staff_id=staff.pk).exists()


@unit_of_work
def add_totp(*, staff_id: int, name: str, secret: str, code: str, moment: float) -> Enrolled:
    """Enroll an authenticator app that shows `code` now; the code counts as used.

    Raises `WrongCode`, `Conflict` for too many factors, and `Invalid` for a name that is empty, too long or in use.
    """
    staff = _locked(staff_id)
    factor = StaffFactor(staff=staff, kind=StaffFactor.Kind.TOTP, name=_name(staff, name))
    step = totp.accepted_step(secret, code, moment=moment, last_step=0)
    if step is None:
        raise WrongCode
    factor.last_step = step
    factor.set_secret(secret)
    return _enrolled(staff, factor)


@unit_of_work
def add_passkey(*, staff_id: int, name: str, passkey: NewPasskey) -> Enrolled:
    """Enroll a passkey.

    Raises `AlreadyExists` if an account has this passkey, `Conflict` for too many factors, and `Invalid` for a name that is empty, too long
    or in use.
    """
    staff = _locked(staff_id)
    if StaffFactor.objects.filter(credential_id=passkey.credential_id).exists():
        raise AlreadyExists("This passkey is enrolled already.")
    factor = StaffFactor(
        staff=staff,
        kind=StaffFactor.Kind.PASSKEY,
        name=_name(staff, name),
        credential_id=passkey.credential_id,
        public_key=passkey.public_key,
        sign_count=passkey.sign_count,
        transports=list(passkey.transports),
    )
    return _enrolled(staff, factor)


@unit_of_work
def rename_factor(*, staff_id: int, factor_id: str, name: str) -> StaffFactor:
    """Rename a factor. Raises `NotFound` unless the account owns the factor, and `Invalid` for a name that is empty, too long or in use."""
    staff = _locked(staff_id)
    factor = _own(staff, factor_id)
    before = factor.name
    factor.name = _name(staff, name, renamed=factor)
    factor.save(update_fields=["name"])
    if before != factor.name:
        _note(staff, "Renamed a second factor", kind=factor.kind, name=factor.name, name_before=before)
    return factor


@unit_of_work
def remove_factor(*, staff_id: int, factor_id: str) -> Staff:
    """Remove a factor. Removing the last factor also removes the recovery codes. Raises `NotFound` unless the account owns the factor."""
    staff = _locked(staff_id)
    factor = _own(staff, factor_id)
    kind, name = factor.kind, factor.name
    factor.delete()
    if not has_factors(staff):
        StaffRecoveryCode.objects.filter(staff=staff).delete()
    _changed(staff)
    _note(staff, "Removed a second factor", kind=kind, name=name)
    return staff


@unit_of_work
def renew_recovery_codes(*, staff_id: int) -> tuple[Staff, tuple[str, ...]]:
    """Replace all recovery codes and return the new codes, which cannot be shown again.

    Raises `Conflict` for an account without a factor.
    """
    staff = _locked(staff_id)
    if not has_factors(staff):
        raise Conflict("A recovery code replaces a lost factor. Add a factor first.")
    codes = _new_codes(staff)
    _changed(staff)
    _note(staff, "Made new recovery codes")
    return staff, codes


@unit_of_work
def reset_factors(*, staff_id: int, reason: str = "") -> int:
    """Remove all factors and recovery codes of an account and end its sessions. Returns the number of factors."""
    staff = _locked(staff_id)
    count = staff.factors.count()
    staff.factors.all().delete()
    staff.recovery_codes.all().delete()
    _changed(staff)
    _note(staff, "Reset the second factors", factors=count, reason=reason)
    return count


def use_totp(staff: Staff, code: str, *, moment: float) -> bool:
    """Use a code of one of the account's authenticator apps. False for a wrong code and for a code that was used before."""
    for factor in staff.factors.filter(kind=StaffFactor.Kind.TOTP):
        step = totp.accepted_step(factor.secret(), code, moment=moment, last_step=factor.last_step)
        # A concurrent use, even in another process, finds that the step is used.
        if step is not None and _took(staff, factor, last_step__lt=step, becomes={"last_step": step}):
            return True
    return False


def use_recovery_code(staff: Staff, code: str) -> bool:
    """Use a recovery code. False for a wrong or used code."""
    typed = _normalised(code)
    for row in StaffRecoveryCode.objects.filter(staff_id=staff.pk, used_at__isnull=True).select_related("staff"):
        if vault.digest_matches(typed, row.digest):
            if StaffRecoveryCode.objects.filter(pk=row.pk, used_at__isnull=True).update(used_at=timezone.now()) != 1:
                return False
            _note(row.staff, "Used a recovery code", left=recovery_codes_left(staff))
            return True
    return False


def use_passkey(factor: StaffFactor, *, sign_count: int) -> bool:
    """Store the sign count of a verified use. False if a concurrent use of the same count came first."""
    return _took(factor.staff, factor, sign_count=factor.sign_count, becomes={"sign_count": sign_count})


def recovery_codes_left(staff: Staff) -> int:
    """Return the number of unused recovery codes."""
    return StaffRecoveryCode.objects.filter(staff_id=staff.pk, used_at__isnull=True).count()


def _took(staff: Staff, factor: StaffFactor, *, becomes: dict[str, int], **expected: int) -> bool:
    taken = StaffFactor.objects.filter(pk=factor.pk, staff_id=staff.pk, **expected).update(**becomes, last_used_at=timezone.now())
    return taken == 1


def _locked(staff_id: int) -> Staff:
    staff = Staff.objects.select_for_update(no_key=True, of=("self",)).filter(pk=staff_id).first()
    if staff is None:
        raise NotFound("The account does not exist.")
    return staff


def _own(staff: Staff, factor_id: str) -> StaffFactor:
    factor = staff.factors.filter(pk=factor_id).first()
    if factor is None:
        raise NotFound("This account has no such factor.")
    return factor


def _name(staff: Staff, name: str, *, renamed: StaffFactor | None = None) -> str:
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME:
        raise Invalid({"name": [f"Enter a name of at most {LONGEST_NAME} characters."]})
    others = staff.factors.exclude(pk=renamed.pk) if renamed else staff.factors.all()
    if others.filter(name__iexact=name).exists():
        raise Invalid({"name": ["Another of your factors has this name."]})
    if renamed is None and others.count() >= MOST_FACTORS:
        raise Conflict(f"An account has at most {MOST_FACTORS} factors. Remove one that you do not use.")
    return name


def _enrolled(staff: Staff, factor: StaffFactor) -> Enrolled:
    is_first = not has_factors(staff)
    factor.save(force_insert=True)
    codes = _new_codes(staff) if is_first else ()
    _changed(staff)
    _note(staff, "Added a second factor", kind=factor.kind, name=factor.name)
    return Enrolled(staff, factor, codes)


def _new_codes(staff: Staff) -> tuple[str, ...]:
    plain = [base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode() for _ in range(RECOVERY_CODES)]
    staff.recovery_codes.all().delete()
    StaffRecoveryCode.objects.bulk_create(StaffRecoveryCode(staff=staff, digest=vault.digest(code)) for code in plain)
    return tuple(totp.in_groups(code, _GROUP).replace(" ", "-") for code in plain)


def _normalised(code: str) -> str:
    # The base32 alphabet has no 0, 1 or 8, so a typed 0, 1 or 8 means O, I or B.
    return "".join(code.upper().split()).replace("-", "").translate(str.maketrans("018", "OIB"))


def _changed(staff: Staff) -> None:
    """End the sessions of the account by raising `factors_version`: each session contains a hash of this number. The view renews the
    session of the caller."""
    Staff.objects.filter(pk=staff.pk).update(factors_version=F("factors_version") + 1)
    staff.refresh_from_db(fields=["factors_version"])


def _note(staff: Staff, act: str, **facts: str | int) -> None:
    _logger.info("staff factors", act=act, staff_id=staff.pk, **facts)
    entries.record(act, about=staff, **facts)  # type: ignore[arg-type]  # facts are any values by name
