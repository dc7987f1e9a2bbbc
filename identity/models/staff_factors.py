"""How staff authenticate besides their password: authenticator apps, passkeys, and recovery codes."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from foundation.ids import new_staff_factor_id
from foundation.secrets import vault


class StaffFactor(models.Model):
    """One enrolled factor of a staff account. Its secret is sealed. A passkey's row contains only the public key."""

    class Kind(models.TextChoices):
        TOTP = "totp", "Authenticator app"
        PASSKEY = "passkey", "Passkey"

    id = models.CharField(primary_key=True, max_length=32, default=new_staff_factor_id, editable=False)
    staff = models.ForeignKey("identity.Staff", on_delete=models.CASCADE, related_name="factors")
    kind = models.CharField(max_length=8, choices=Kind)
    name = models.CharField(max_length=60)
    sealed_secret = models.TextField(blank=True, editable=False)
    # The newest time step with a used code. Codes of this step and of older steps are refused.
    last_step = models.BigIntegerField(default=0, editable=False)
    # The id in base64url, as browsers send it.
    credential_id = models.CharField(max_length=1400, unique=True, null=True, editable=False)
    public_key = models.BinaryField(null=True)
    # The number of signatures that the authenticator reports; 0 if it does not count.
    sign_count = models.BigIntegerField(default=0, editable=False)
    transports = models.JSONField(default=list, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("created_at", "id")
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="totp", credential_id__isnull=True, public_key__isnull=True) & ~Q(sealed_secret="")  # nosec B106
                | Q(kind="passkey", credential_id__isnull=False, public_key__isnull=False, sealed_secret=""),  # nosec B106
                name="identity_stafffactor_of_its_kind",
            )
        ]

    def __str__(self) -> str:
        return self.name

    def set_secret(self, secret: str) -> None:
        """Store the secret of an authenticator app, encrypted for this row."""
        self.sealed_secret = vault.seal(secret, place=self._place)

    def secret(self) -> str:
        """Return the secret as clear text."""
        return vault.unseal(self.sealed_secret, place=self._place)

    @property
    def _place(self) -> str:
        return f"staff:{self.staff_id}:factor:{self.pk}"


class StaffRecoveryCode(models.Model):
    """A code that works once, for an account without access to its factors. Only its digest is stored."""

    staff = models.ForeignKey("identity.Staff", on_delete=models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=100, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"recovery code of account {self.staff_id}"
