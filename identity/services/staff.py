"""Create and change staff accounts. Accounts are disabled, never deleted, so that the audit log can attribute their acts."""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from foundation.database.transactions import unit_of_work
from identity.models import Staff
from identity.models.staff import canonical_email
from identity.services.failures import AlreadyExists, Invalid, NotFound, NotSupported
from identity.staff_roles import ADMINISTRATOR, ROLES


@unit_of_work
def create_staff(*, tenant_id: str | None, email: str, password: str, role: str = ADMINISTRATOR) -> Staff:
    """Create an account of the tenant, or of the platform if `tenant_id` is None.

    Raises `Invalid` for an invalid email address, password or role, and `AlreadyExists` for a taken email address.
    """
    staff = Staff(email=canonical_email(email), tenant_id=tenant_id, role=role)
    if Staff.objects.filter(email=staff.email).exists():
        raise AlreadyExists("An account with this email address already exists.")
    _set_password(staff, password)
    try:
        staff.clean_fields()
    except ValidationError as error:
        raise Invalid(error.message_dict) from error
    staff.save()
    return staff


@unit_of_work
def update_staff(*, staff_id: int, by: Staff, is_active: bool | None = None, password: str | None = None, role: str | None = None) -> Staff:
    """Enable or disable an account, change its role, or set its password, which ends its other sessions.

    Raises `NotFound`, and `Invalid` for a weak password or an unknown role. Raises `NotSupported` if an account disables
    itself or changes its own role, so that an account that can assign roles always remains.
    """
    staff = Staff.objects.select_for_update(no_key=True, of=("self",)).filter(pk=staff_id).first()
    if staff is None:
        raise NotFound("The account does not exist.")
    if is_active is False and staff.pk == by.pk:
        raise NotSupported("You cannot switch off your own account.")
    if role is not None and role != staff.role:
        if staff.pk == by.pk:
            raise NotSupported("You cannot change your own role.")
        if role not in ROLES:
            raise Invalid({"role": ["There is no such role."]})
        staff.role = role
    if is_active is not None:
        staff.is_active = is_active
    if password is not None:
        _set_password(staff, password)
    staff.save(update_fields=["is_active", "password", "role"])
    return staff


def _set_password(staff: Staff, password: str) -> None:
    try:
        validate_password(password, staff)
    except ValidationError as error:
        raise Invalid({"password": error.messages}) from error
    staff.set_password(password)
