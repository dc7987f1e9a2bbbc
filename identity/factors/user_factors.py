"""The factors and passkeys of end users: enroll, use, rename, remove. Every change of the set of factors locks the user's row.

A conditional update marks a code or counter as used. So exactly one of two concurrent uses succeeds, also in different processes.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from foundation.acting import Actor, current_act
from foundation.database.transactions import unit_of_work
from foundation.hooks import factors_changed
from foundation.secrets import totp, vault
from identity.audit import entries
from identity.factors.ceremonies import Credential, NewCredential
from identity.models import EnrolledFactor, User
from identity.services.failures import AlreadyExists, Conflict, Invalid, NotFound
from identity.services.saving import validated_save
from identity.services.users import locked_user

Kind = EnrolledFactor.Kind
MOST_FACTORS = 20
LONGEST_NAME = 60
# An enrollment expires if it is not confirmed within this time.
OPEN_FOR = timedelta(hours=1)
# 15 bytes are 120 random bits, 24 characters. With that much entropy a fast digest is as safe as a slow hash.
_RECOVERY_BYTES = 15
_GROUP = 6


@dataclass(frozen=True)
class Confirmed:
    """A confirmed factor. The first factor of a user comes with a recovery code, which cannot be shown again."""

    factor: EnrolledFactor
    recovery_code: str = ""


def user_handle(user: User) -> bytes:
    """Return the handle of the user for authenticators: the same for all keys, and without personal data (WebAuthn, 14.6.1)."""
    return handle_of(user.tenant_id, user.user_id)


def handle_of(tenant_id: str, user_id: str) -> bytes:
    """Return the handle of a user that may not exist yet: a sign-up with a passkey creates the passkey first, then the user."""
    return hashlib.sha256(f"user:{tenant_id}:{user_id}".encode()).digest()


def factors_of(user: User, kinds: Collection[str] = EnrolledFactor.SECOND_FACTORS) -> list[EnrolledFactor]:
    """Return the confirmed factors of these kinds, oldest first."""
    rows = EnrolledFactor.objects.of(user.tenant_id).filter(user=user, kind__in=list(kinds), is_confirmed=True)
    factors = list(rows.order_by("pk"))
    for factor in factors:
        factor.user = user
    return factors


def credentials_of(user: User, kinds: Collection[str], *, relying_party: str) -> list[Credential]:
    """Return the keys of these kinds that belong to a domain."""
    keys = (factor for factor in factors_of(user, kinds) if factor.relying_party == relying_party)
    return [Credential(key.credential_id or "", tuple(key.transports)) for key in keys]


def factor_named(user: User, device: str) -> EnrolledFactor:
    """Return a factor of the user by its device id, confirmed or not. Raises `NotFound`."""
    factor = EnrolledFactor.objects.of(user.tenant_id).filter(user=user, device=device).first() if device else None
    if factor is None:
        raise NotFound("The user has no such factor.")
    factor.user = user
    return factor


@unit_of_work
def begin_enrolment(*, tenant_id: str, user_id: str, kind: str, address: str = "", secret: str = "", name: str = "") -> EnrolledFactor:
    """Return a new, unconfirmed factor: an authenticator app with its `secret`, or an `address` (an email address or phone number) that
    receives codes.

    Replaces an older unconfirmed factor of the same kind. Raises `NotFound`, `Conflict` for too many factors, `Invalid` for an invalid
    name, and `AlreadyExists` for an address that is enrolled already.
    """
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    rows = EnrolledFactor.objects.of(tenant_id).filter(user=user)
    rows.filter(kind=kind, is_confirmed=False).delete()
    _require_room(user)
    if address and rows.filter(kind=kind, address__iexact=address).exists():
        raise AlreadyExists("This address is enrolled already.")
    factor = EnrolledFactor(tenant_id=tenant_id, user=user, kind=kind, address=address, name=_checked_name(name), is_confirmed=False)
    if secret:
        factor.set_secret(secret)
    factor.save(force_insert=True)
    return factor


@unit_of_work
def confirm_enrolment(*, tenant_id: str, user_id: str, device: str, step: int = 0) -> Confirmed:
    """Confirm a factor after the user has proven to own the factor. `step` is the time step of the code of an app.

    Raises `NotFound` if the enrollment has expired, and `Conflict` if the factor was confirmed before.
    """
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    factor = factor_named(user, device)
    if factor.is_confirmed:
        raise Conflict("This factor is enrolled already.")
    if timezone.now() - factor.created_at > OPEN_FOR:
        raise NotFound("The enrollment has expired. Begin again.")
    factor.is_confirmed, factor.last_step, factor.last_used_at = True, step, timezone.now()
    factor.save(update_fields=["is_confirmed", "last_step", "last_used_at"])
    return _enrolled(user, factor)


@unit_of_work
def add_key(
    *,
    tenant_id: str,
    user_id: str,
    kind: str,
    made: NewCredential,
    relying_party: str,
    name: str = "",
    is_shown_to_user: bool = True,
) -> Confirmed:
    """Enroll a key of an authenticator: a passkey or a second factor.

    If `is_shown_to_user` is false, the caller does not show the result to the user, so no recovery code is created.

    Raises `NotFound`, `AlreadyExists` if a user of the tenant has this key, `Conflict` for too many factors, and `Invalid` for an invalid
    name.
    """
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    _require_room(user)
    if EnrolledFactor.objects.of(tenant_id).filter(credential_id=made.id).exists():
        raise AlreadyExists("This key is enrolled already.")
    factor = EnrolledFactor(
        tenant_id=tenant_id,
        user=user,
        kind=kind,
        name=_checked_name(name),
        credential_id=made.id,
        relying_party=relying_party,
        public_key=made.public_key,
        sign_count=made.sign_count,
        transports=list(made.transports),
        aaguid=made.aaguid,
        is_backed_up=made.is_backed_up,
        last_used_at=timezone.now() if is_shown_to_user else None,
    )
    factor.save(force_insert=True)
    if not is_shown_to_user:
        _tell(user, factor)
        return Confirmed(factor)
    return _enrolled(user, factor)


@unit_of_work
def give_factor(*, tenant_id: str, user_id: str, kind: str, address: str = "", secret: str = "", name: str = "") -> EnrolledFactor:
    """Enroll an authenticator app by its `secret`, or an `address`, for a user.

    The caller has verified that the user owns the app or address. Creates no recovery code, because the caller cannot show a code to the
    user. Raises `NotFound`, `AlreadyExists` for an address that is enrolled already, `Conflict` for too many factors, and `Invalid` for an
    invalid name.
    """
    factor = begin_enrolment(tenant_id=tenant_id, user_id=user_id, kind=kind, address=address, secret=secret, name=name)
    factor.is_confirmed = True
    factor.save(update_fields=["is_confirmed"])
    _tell(factor.user, factor)
    return factor


@unit_of_work
def give_key(*, tenant_id: str, user_id: str, kind: str, made: NewCredential, relying_party: str, name: str = "") -> EnrolledFactor:
    """Enroll a key that was created elsewhere, without a recovery code. Raises the errors of `add_key`."""
    return add_key(
        tenant_id=tenant_id, user_id=user_id, kind=kind, made=made, relying_party=relying_party, name=name, is_shown_to_user=False
    ).factor


@unit_of_work
def rename_factor(*, tenant_id: str, user_id: str, device: str, name: str) -> EnrolledFactor:
    """Rename a factor. Raises `NotFound` unless the user owns the factor, and `Invalid` for an invalid name."""
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    factor = factor_named(user, device)
    before, factor.name = factor.name, _checked_name(name)
    if before != factor.name:
        factor.save(update_fields=["name"])
        note(user, "Renamed a second factor", kind=factor.kind, name=factor.name, name_before=before)
    return factor


@unit_of_work
def remove_factor(*, tenant_id: str, user_id: str, device: str, reason: str = "", is_by_user: bool = False) -> EnrolledFactor:
    """Remove a factor or a passkey. Removing the last second factor also removes the recovery code.

    Raises `NotFound` unless the user owns the factor.
    """
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    factor = factor_named(user, device)
    EnrolledFactor.objects.of(tenant_id).filter(pk=factor.pk).delete()
    if not factor.is_confirmed:
        return factor
    if not factors_of(user):
        EnrolledFactor.objects.of(tenant_id).filter(user=user, kind=Kind.RECOVERY_CODE).delete()
    _say_whether(user)
    act = "Removed a passkey" if factor.kind == Kind.PASSKEY else "Removed a second factor"
    note(user, act, reason=reason, kind=factor.kind, name=factor.name)
    factors_changed.send(sender=User, user=user, removed=frozenset({factor.kind}), is_by_user=is_by_user)
    return factor


@unit_of_work
def remove_factors_of_kind(*, tenant_id: str, user_id: str, kind: str) -> int:
    """Remove every factor of one kind and return their number. Raises `NotFound` for an unknown user."""
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    found = factors_of(user, (kind,))
    for factor in found:
        remove_factor(tenant_id=tenant_id, user_id=user_id, device=factor.device)
    return len(found)


@unit_of_work
def remove_all_factors(*, tenant_id: str, user_id: str, reason: str = "", keeps_passkeys: bool = True) -> int:
    """Remove every second factor and the recovery code. Unless `keeps_passkeys` is True, also remove the passkeys. Returns the number of
    removed factors."""
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    rows = EnrolledFactor.objects.of(tenant_id).filter(user=user)
    rows = rows.exclude(kind=Kind.PASSKEY) if keeps_passkeys else rows
    kinds = frozenset(rows.filter(is_confirmed=True).values_list("kind", flat=True))
    count = rows.filter(is_confirmed=True).exclude(kind=Kind.RECOVERY_CODE).count()
    rows.delete()
    if kinds:
        _say_whether(user)
        note(user, "Reset the second factors", reason=reason, factors=count)
        factors_changed.send(sender=User, user=user, removed=kinds, is_by_user=False)
    return count


@unit_of_work
def renew_recovery_code(*, tenant_id: str, user_id: str) -> str:
    """Replace the recovery code and return the new code, which cannot be shown again.

    Raises `Conflict` for a user without a second factor.
    """
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    if not factors_of(user):
        raise Conflict("A recovery code replaces a second factor. Enroll a factor first.")
    code = _new_recovery_code(user)
    note(user, "Made a new recovery code")
    return code


@unit_of_work
def use_recovery_code(*, tenant_id: str, user_id: str, code: str) -> str | None:
    """Use the recovery code and return the code that replaces it, or None for a wrong code.

    A code works once, also under concurrent use.
    """
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    row = EnrolledFactor.objects.of(tenant_id).filter(user=user, kind=Kind.RECOVERY_CODE, is_confirmed=True).first()
    if not vault.digest_matches(_said(user, code), row.code_digest if row is not None else "") or row is None:
        return None
    renewed = _new_recovery_code(user)
    note(user, "Used the recovery code")
    return renewed


def take_totp(user: User, code: str, *, moment: float) -> EnrolledFactor | None:
    """Use a code of an authenticator app of the user, and return this factor; None for a wrong code, or a code that was used before."""
    for factor in factors_of(user, (Kind.TOTP,)):
        step = totp.accepted_step(factor.secret(), code, moment=moment, last_step=factor.last_step)
        if step is not None:
            taken = EnrolledFactor.objects.of(user.tenant_id).filter(pk=factor.pk, last_step__lt=step)
            # A concurrent use, even in another process, finds that the step is used.
            return factor if taken.update(last_step=step, last_used_at=timezone.now()) == 1 else None
    return None


def take_key(factor: EnrolledFactor, *, sign_count: int, is_backed_up: bool) -> bool:
    """Store the sign count of a verified use. False if a concurrent use of the same count came first."""
    rows = EnrolledFactor.objects.of(factor.tenant_id).filter(pk=factor.pk, sign_count=factor.sign_count)
    return rows.update(sign_count=sign_count, is_backed_up=is_backed_up, last_used_at=timezone.now()) == 1


def note_use(factor: EnrolledFactor) -> None:
    """Store the time of a use of the factor."""
    EnrolledFactor.objects.of(factor.tenant_id).filter(pk=factor.pk).update(last_used_at=timezone.now())


def note(user: User, act: str, *, reason: str = "", **facts: str | int) -> None:
    """Write an entry of the audit log. The actor is the user, unless there is a present act of staff or of a client."""
    actor = Actor("user", user.user_id, user.email or user.name or user.user_id)
    entries.record(act, about=user, reason=reason, actor=None if current_act() else actor, **facts)  # type: ignore[arg-type]  # facts are any values by name


@unit_of_work
def promise_recovery_code(*, tenant_id: str, user_id: str, device: str) -> str:
    """Return the recovery code that becomes valid when an enrollment is confirmed. Empty for a user who has a recovery code.

    The code cannot be shown again. The row of the enrollment stores the digest of the code, so each of several parallel enrollments has its
    own code.
    """
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    factor = factor_named(user, device)
    if factor.is_confirmed or EnrolledFactor.objects.of(tenant_id).filter(user=user, kind=Kind.RECOVERY_CODE).exists():
        return ""
    plain = _recovery_code()
    factor.code_digest = vault.digest(_said(user, plain))
    factor.save(update_fields=["code_digest"])
    return _shown(plain)


def _enrolled(user: User, factor: EnrolledFactor) -> Confirmed:
    is_second = factor.kind in EnrolledFactor.SECOND_FACTORS
    has_code = EnrolledFactor.objects.of(user.tenant_id).filter(user=user, kind=Kind.RECOVERY_CODE).exists()
    code = _first_recovery_code(user, factor) if is_second and not has_code else ""
    _tell(user, factor)
    return Confirmed(factor, code)


def _tell(user: User, factor: EnrolledFactor) -> None:
    _say_whether(user)
    note(user, "Added a passkey" if factor.kind == Kind.PASSKEY else "Added a second factor", kind=factor.kind, name=factor.name)
    factors_changed.send(sender=User, user=user, removed=frozenset(), is_by_user=False)


def _say_whether(user: User) -> None:
    """Update the profile member that says whether the user has a second factor.

    Saves the user, and so records an event, only if the member changes.
    """
    others = [name for name in user.multifactor if name != EnrolledFactor.PROVIDER]
    said = [*others, EnrolledFactor.PROVIDER] if factors_of(user) else others
    if said != user.multifactor:
        user.multifactor = said
        validated_save(user, fields=["multifactor"])


def _require_room(user: User) -> None:
    if EnrolledFactor.objects.of(user.tenant_id).filter(user=user).count() >= MOST_FACTORS:
        raise Conflict(f"A user has at most {MOST_FACTORS} factors and passkeys. Remove one that is not used.")


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise Invalid({"name": [f"At most {LONGEST_NAME} characters, all of them visible."]})
    return name


def _first_recovery_code(user: User, factor: EnrolledFactor) -> str:
    """Store the recovery code that the enrollment has shown already. If the enrollment has shown no code, return a new code."""
    if not factor.code_digest:
        return _new_recovery_code(user)
    _keep_recovery_code(user, factor.code_digest)
    factor.code_digest = ""
    factor.save(update_fields=["code_digest"])
    return ""


def _new_recovery_code(user: User) -> str:
    plain = _recovery_code()
    _keep_recovery_code(user, vault.digest(_said(user, plain)))
    return _shown(plain)


def _recovery_code() -> str:
    return base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode()


def _shown(plain: str) -> str:
    return totp.in_groups(plain, _GROUP).replace(" ", "-")


def _keep_recovery_code(user: User, digest: str) -> None:
    rows = EnrolledFactor.objects.of(user.tenant_id).filter(user=user, kind=Kind.RECOVERY_CODE)
    if not rows.update(code_digest=digest, created_at=timezone.now(), last_used_at=None):
        EnrolledFactor(tenant_id=user.tenant_id, user=user, kind=Kind.RECOVERY_CODE, code_digest=digest).save(force_insert=True)


def _said(user: User, code: str) -> str:
    """Return the text to hash for a code. It contains the user's `lasting_key`: a digest that is copied to another user matches no code."""
    # The base32 alphabet has no 0, 1 or 8, so a typed 0, 1 or 8 means O, I or B.
    typed = "".join(code[:64].upper().split()).replace("-", "").translate(str.maketrans("018", "OIB"))
    return f"recovery\x00{user.tenant_id}\x00{user.lasting_key}\x00{typed}"
