"""How users authenticate besides a password: enrolled factors and passkeys. Also the tickets of mailed verification links."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import MD5, Cast, Concat, Random

from foundation.ids import new_factor_id, new_ticket_id
from foundation.secrets import vault
from identity.models.base import TenantOwned


class EnrolledFactor(TenantOwned):
    """A second factor of a user, a passkey, or the recovery code. Secrets are sealed or stored as digests.

    A passkey's row contains only the public key. An unconfirmed row is an open enrollment: it proves nothing, and is deleted within the
    hour.
    """

    class Kind(models.TextChoices):
        PHONE = "phone", "Text message"
        EMAIL = "email", "Email"
        TOTP = "totp", "Authenticator app"
        WEBAUTHN_ROAMING = "webauthn-roaming", "Security key"
        WEBAUTHN_PLATFORM = "webauthn-platform", "This device"
        PASSKEY = "passkey", "Passkey"
        RECOVERY_CODE = "recovery-code", "Recovery code"

    # Factors that a login can request in addition to the first proof. A recovery code replaces one of them; a passkey is a first proof.
    SECOND_FACTORS = (Kind.TOTP, Kind.PHONE, Kind.EMAIL, Kind.WEBAUTHN_ROAMING, Kind.WEBAUTHN_PLATFORM)

    _AUDITED = ("id", "tenant_id", "user_id", "device", "kind", "name", "is_confirmed", "created_at", "last_used_at")
    # Provider name in the profile of a user with a second factor. Clients expect this name (contract, events 5, `multifactor`).
    PROVIDER = "guardian"

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="enrolled_factors")
    device = models.CharField(
        "id",
        max_length=40,
        default=new_factor_id,
        # Default for rows that a process of the previous version inserts.
        db_default=Concat(Value("dev_"), MD5(Cast(Random(), models.TextField()))),
        editable=False,
        help_text="The id in the API, without the prefix for its kind.",
    )
    kind = models.CharField(max_length=24, choices=Kind)
    name = models.CharField(max_length=60, blank=True, default="", db_default="")
    address = models.CharField(max_length=254, blank=True, help_text="Phone number or email address.")
    sealed_secret = models.TextField(blank=True, editable=False)
    is_confirmed = models.BooleanField(default=True, db_default=True)
    # The newest time step with a used code. Codes of this step and of older steps are refused.
    last_step = models.BigIntegerField(default=0, db_default=0, editable=False)
    code_digest = models.CharField(max_length=160, blank=True, default="", db_default="", editable=False)
    # The id in base64url, as browsers send it, and the domain of the key.
    credential_id = models.CharField(max_length=1400, null=True, blank=True, editable=False)
    relying_party = models.CharField(max_length=253, blank=True, default="", db_default="", editable=False)
    public_key = models.BinaryField(null=True)
    # The number of signatures that the authenticator reports; 0 if it does not count.
    sign_count = models.BigIntegerField(default=0, db_default=0, editable=False)
    transports = models.JSONField(default=list, db_default=[], editable=False)
    aaguid = models.CharField(max_length=36, blank=True, default="", db_default="", editable=False)
    is_backed_up = models.BooleanField(default=False, db_default=False, editable=False, help_text="Whether the passkey is synchronized.")
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "device"], name="identity_enrolledfactor_device"),
            models.UniqueConstraint(fields=["tenant", "credential_id"], name="identity_enrolledfactor_credential"),
            models.UniqueConstraint(fields=["user"], condition=Q(kind="recovery-code"), name="identity_enrolledfactor_recovery"),
        ]
        # An index of the open enrollments.
        indexes = [models.Index(fields=["created_at"], condition=Q(is_confirmed=False), name="identity_enrolledfactor_open")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.kind} of user {self.user_id}"

    @property
    def is_key(self) -> bool:
        """Whether the factor signs with a key (WebAuthn), as a second factor or as a passkey."""
        return self.kind in {self.Kind.WEBAUTHN_ROAMING, self.Kind.WEBAUTHN_PLATFORM, self.Kind.PASSKEY}

    @classmethod
    def shown_image(cls, image: dict[str, Any]) -> dict[str, Any]:
        """Return the columns for the audit log: no address, secret, digest or key."""
        return {name: image[name] for name in cls._AUDITED if name in image}

    def set_secret(self, secret: str) -> None:
        """Store the shared secret of an authenticator app, encrypted for this user."""
        self.sealed_secret = vault.seal(secret, place=self._place)

    def secret(self) -> str:
        """Return the shared secret as clear text."""
        return vault.unseal(self.sealed_secret, place=self._place)

    @property
    def _place(self) -> str:
        return f"{self.tenant_id}:factor:{self.user_id}:{self.kind}"


class EmailTicket(TenantOwned):
    """A link that proves that an email address belongs to a user. It works once. The link itself is signed and not stored."""

    id = models.CharField(primary_key=True, max_length=32, default=new_ticket_id, editable=False)
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="email_tickets")
    job = models.OneToOneField("identity.Job", on_delete=models.SET_NULL, null=True, blank=True, related_name="email_ticket")
    email = models.EmailField(max_length=254)
    former_email = models.EmailField(
        max_length=254, null=True, blank=True, help_text="The address that the new address replaces; null if no address changes."
    )
    # Empty for the primary identity.
    provider = models.CharField(max_length=40, blank=True)
    identifier = models.CharField(max_length=255, blank=True)
    language = models.CharField(
        max_length=12, blank=True, default="", db_default="", help_text="Language of the mail and of the page that its link opens."
    )
    parameters = models.JSONField(default=dict, db_default={}, blank=True, help_text="Where the user continues after the link was used.")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantOwned.Meta):
        # An index for the deletion of tickets after their retention.
        indexes = [models.Index(fields=["expires_at"], name="identity_emailticket_expired")]
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"verification of {self.email}"
