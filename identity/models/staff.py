"""Staff: the accounts that log in to the admin."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.utils.crypto import salted_hmac

from foundation.secrets.hashing import hashed, verified
from identity.staff_roles import ADMINISTRATOR, ROLES, is_allowed


def canonical_email(email: str) -> str:
    """Return the canonical spelling of an address. Accounts are stored and looked up, and failed logins are counted, by this spelling."""
    return email.strip().lower()


class StaffManager(BaseUserManager["Staff"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> Staff:
        """Create a staff account; `tenant` None makes a platform operator."""
        staff = self.model(email=canonical_email(email), **fields)
        staff.set_password(password)
        staff.save(using=self._db)
        return staff

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> Staff:
        return self.create_user(email, password, is_superuser=True, tenant=None, **fields)

    def get_by_natural_key(self, username: str | None) -> Staff:
        # `iexact` is not used: it compares in upper case, and a dotless i also has the upper case `I`, so a different address would match.
        return self.get(email=canonical_email(username or ""))


class Staff(AbstractBaseUser, PermissionsMixin):
    """An account of the admin: of one tenant, or of the platform if `tenant` is empty. Its role determines its permissions."""

    email = models.EmailField(unique=True)
    tenant = models.ForeignKey("identity.Tenant", on_delete=models.CASCADE, null=True, blank=True, related_name="staff")
    role = models.CharField(max_length=32, choices=[(name, rule.label) for name, rule in ROLES.items()], default=ADMINISTRATOR)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # Every change of the account's factors increments this number, and so ends the account's sessions.
    factors_version = models.PositiveIntegerField(default=0, editable=False)

    objects: ClassVar[StaffManager] = StaffManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        verbose_name_plural = "staff"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(is_superuser=False) | models.Q(tenant__isnull=True), name="identity_staff_superuser_has_no_tenant"
            ),
            models.CheckConstraint(condition=models.Q(role__in=list(ROLES)), name="identity_staff_role_known"),
        ]

    def __str__(self) -> str:
        return self.email

    @property
    def is_staff(self) -> bool:
        return True

    @property
    def is_platform_operator(self) -> bool:
        """Whether the account can access every tenant. Its role determines its permissions there."""
        return self.tenant_id is None

    @property
    def standing(self) -> str:
        """The role as text, with the tenant of the account."""
        if self.role == ADMINISTRATOR:
            return "Platform operator" if self.tenant_id is None else f"{ROLES[self.role].label} of {self.tenant_id}"
        return f"{ROLES[self.role].label} of {self.tenant_id or 'the platform'}"

    def set_password(self, raw_password: str | None) -> None:
        """Store a password, hashed in the common hashing threads. None stores an unusable password."""
        super().set_password(None)
        if raw_password is not None:
            self.password = hashed(raw_password)
            # Django applies its password validators to this value after the save.
            self._password = raw_password

    def check_password(self, raw_password: str | None) -> bool:
        """Tell whether the password is correct, and rehash it if needed. Hashes in the common hashing threads, a few at a time."""
        if raw_password is None:
            return False
        fits, must_renew = verified(raw_password, self.password)
        if fits and must_renew:
            self.set_password(raw_password)
            # Clear the value, as Django does, so that validators do not treat the rehash as a new password.
            self._password = None  # type: ignore[assignment]  # the stubs leave it out
            self.save(update_fields=["password"])
        return fits

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Return the hash that a session must contain. It changes with the password and with the factors."""
        by_password: str = super()._get_session_auth_hash(secret)  # type: ignore[misc]  # the stubs leave it out
        if not self.factors_version:
            return by_password
        return salted_hmac("identity.Staff.factors", f"{by_password}:{self.factors_version}", secret=secret, algorithm="sha256").hexdigest()

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """Tell whether the role has the permission. Each page limits its rows to the tenant."""
        return self.is_active and (self.is_superuser or is_allowed(self.role, perm))

    def has_module_perms(self, app_label: str) -> bool:
        """Allow every active account: each model of an app checks its own permission."""
        return self.is_active
