"""Public keys and certificates with which clients authenticate, and assertions that were used."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from authapi.models.base import UnrecordedOwned
from foundation.ids import new_credential_id


class ClientCredential(UnrecordedOwned):
    """A public key for signed assertions (RFC 7523), a certificate, or the subject of a certificate (RFC 8705).

    A credential is used only if a setting of its client names it: `client_authentication_methods` or `signed_request_object`.
    """

    class Type(models.TextChoices):
        PUBLIC_KEY = "public_key"
        X509_CERT = "x509_cert"
        CERT_SUBJECT_DN = "cert_subject_dn"

    id = models.CharField(primary_key=True, max_length=32, default=new_credential_id, editable=False)
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="credentials")
    type = models.CharField(max_length=16, choices=Type)
    name = models.CharField(max_length=128, blank=True)
    kid = models.CharField(
        max_length=64,
        blank=True,
        help_text="The id that the client gave to the key. Without such an id, the thumbprint of the key (RFC 7638).",
    )
    algorithm = models.CharField(max_length=16, blank=True)
    public_jwk = models.JSONField(null=True, blank=True)
    thumbprint = models.CharField(max_length=64, blank=True, help_text="base64url(SHA-256) of the certificate (RFC 8705, 3.1).")
    subject_dn = models.CharField(max_length=2048, blank=True, help_text="The subject of the certificate, one component per line.")
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        # Serves the start page, which shows the credentials that expire next.
        indexes = [models.Index(fields=["expires_at"], condition=models.Q(expires_at__isnull=False), name="authapi_credential_expiry")]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name or self.id

    @property
    def is_active(self) -> bool:
        return self.expires_at is None or self.expires_at > timezone.now()


class UsedAssertion(UnrecordedOwned):
    """The `jti` of an accepted client assertion. Until it expires, every process refuses a second use."""

    digest = models.CharField(max_length=64, help_text="Digest of the client and `jti`.")
    expires_at = models.DateTimeField()

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_usedassertion_unique")]
        indexes = [models.Index(fields=["expires_at"], name="authapi_usedassertion_expired")]

    def __str__(self) -> str:
        return f"assertion {self.pk}"


class EdgeKey(UnrecordedOwned):
    """The secret that the TLS edge of a custom domain sends with the certificates of its clients."""

    domain = models.OneToOneField("identity.CustomDomain", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=80, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        ordering = ("id",)
        verbose_name = "secret of a TLS proxy"
        verbose_name_plural = "secrets of TLS proxies"

    def __str__(self) -> str:
        return f"secret of the TLS proxy of {self.domain_id}"
