"""Signing keys of tenants, and revoked access tokens."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from authapi.models.base import UnrecordedOwned
from foundation.secrets import vault


class KeyPair(UnrecordedOwned):
    """A key pair of a tenant. The private key is sealed for the tenant, the kind of the key pair and the `kid`."""

    kid = models.CharField(max_length=64)
    sealed_private_key = models.TextField(editable=False)

    class Meta(UnrecordedOwned.Meta):
        abstract = True

    def __str__(self) -> str:
        return self.kid

    def set_private_key(self, pem: str) -> None:
        """Seal and store the private key, which is given in PEM."""
        self.sealed_private_key = vault.seal(pem, place=self._place)

    def private_key(self) -> str:
        """Return the private key in PEM."""
        return vault.unseal(self.sealed_private_key, place=self._place)

    @property
    def _place(self) -> str:
        return f"{self.tenant_id}:{self._meta.model_name}:{self.kid}:private"


class SigningKey(KeyPair):
    """An RSA key pair that signs tokens. `next` is published before it signs. `previous` verifies its tokens until the last one expires."""

    class State(models.TextChoices):
        NEXT = "next"
        CURRENT = "current"
        PREVIOUS = "previous"
        REVOKED = "revoked"

    public_jwk = models.JSONField(help_text="The published JWK, with its certificate.")
    state = models.CharField(max_length=16, choices=State)
    created_at = models.DateTimeField(auto_now_add=True)
    current_since = models.DateTimeField(null=True, blank=True)
    rotated_at = models.DateTimeField(null=True, blank=True, help_text="When the key stopped signing.")
    verifies_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="After this time, tokens that this key signed are refused. Not set while the key signs, or while it is the next key.",
    )

    class Meta(KeyPair.Meta):
        abstract = False
        constraints = [
            models.UniqueConstraint(fields=["tenant", "kid"], name="authapi_signingkey_kid_unique"),
            models.UniqueConstraint(fields=["tenant"], condition=Q(state="current"), name="authapi_signingkey_one_current"),
            models.UniqueConstraint(fields=["tenant"], condition=Q(state="next"), name="authapi_signingkey_one_next"),
        ]
        ordering = ("id",)


class RevokedToken(UnrecordedOwned):
    """The `jti` of a revoked access token. The row is deleted when the token would have expired."""

    jti = models.CharField(max_length=64)
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["jti", "tenant"], name="authapi_revokedtoken_jti_unique")]
        # The index serves the deletion by age.
        indexes = [models.Index(fields=["expires_at"], name="authapi_revokedtoken_expiry")]

    def __str__(self) -> str:
        return self.jti


class SamlKey(KeyPair):
    """An RSA key pair with a self-signed certificate, for SAML and WS-Federation. The keys of tokens are separate.

    Partners keep certificates for years, and many copy them by hand. So `next` is created on demand, and first only published in metadata.
    When every partner has its certificate, an administrator makes it the key that signs. `previous` stays published until it is removed,
    and decrypts messages of partners.
    """

    class State(models.TextChoices):
        NEXT = "next"
        CURRENT = "current"
        PREVIOUS = "previous"

    kid = models.CharField(max_length=64, help_text="The first characters of the certificate's SHA-256 fingerprint.")
    certificate = models.TextField(help_text="The certificate in PEM format.")
    state = models.CharField(max_length=16, choices=State)
    created_at = models.DateTimeField(auto_now_add=True)
    current_since = models.DateTimeField(null=True, blank=True)
    rotated_at = models.DateTimeField(null=True, blank=True, help_text="When the key stopped signing.")
    expires_at = models.DateTimeField(help_text="When the certificate expires.")

    class Meta(KeyPair.Meta):
        abstract = False
        constraints = [
            models.UniqueConstraint(fields=["tenant", "kid"], name="authapi_samlkey_kid_unique"),
            models.UniqueConstraint(fields=["tenant"], condition=Q(state="current"), name="authapi_samlkey_one_current"),
            models.UniqueConstraint(fields=["tenant"], condition=Q(state="next"), name="authapi_samlkey_one_next"),
        ]
        ordering = ("id",)
