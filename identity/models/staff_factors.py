"""What staff prove themselves with besides their password: authenticator apps, passkeys, and recovery codes."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from foundation.ids import new_staff_factor_id
from foundation.secrets import vault


class StaffFactor(models.Model):
    """One enrolled factor of a staff account. Its secret is sealed; of a passkey only the public half is here."""

    class Kind(models.TextChoices):
        TOTP = "totp", "Authenticator app"
        PASSKEY = "passkey", "Passkey"

    id = models.CharField(primary_key=True, max_length=32, default=new_staff_factor_id, editable=False)
    staff = models.ForeignKey("identity.Staff", on_delete=models.CASCADE, related_name="factors")
    kind = models.CharField(max_length=8, choices=Kind)
    name = models.CharField(max_length=60)
    sealed_secret = models.TextField(blank=True, editable=False)
    # The newest time step of which a code was taken: no code of it, or of an older one, counts again.
    last_step = models.BigIntegerField(default=0, editable=False)
    # Base64url, as browsers send it.
    credential_id = models.CharField(max_length=1400, unique=True, null=True, editable=False)
    public_key = models.BinaryField(null=True)
    # How often the authenticator says it has signed; 0 for those that do not count.
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
        """Keep the secret of an authenticator app, encrypted for this row."""
        self.sealed_secret = vault.seal(secret, place=self._place)

    def secret(self) -> str:
        """Return the secret in clear."""
        return vault.unseal(self.sealed_secret, place=self._place)

    @property
    def _place(self) -> str:
        return f"staff:{self.staff_id}:factor:{self.pk}"


class StaffRecoveryCode(models.Model):
    """A code that counts once, for whoever has lost their factors. Only its digest is kept."""

    staff = models.ForeignKey("identity.Staff", on_delete=models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=100, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"recovery code of account {self.staff_id}"
