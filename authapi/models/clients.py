"""Clients: the applications that request tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from oauth2_provider.models import AbstractApplication

from authapi.models.base import UnrecordedOwned
from foundation.ids import new_client_id
from foundation.secrets import vault

if TYPE_CHECKING:
    from authapi.models.client_credentials import ClientCredential

# The grant types whose names in the toolkit differ from their names on the wire. All other grant types have the same name in both.
TOOLKIT_GRANTS = {
    "authorization-code": "authorization_code",
    "client-credentials": "client_credentials",
    "openid-hybrid": "authorization_code",
}


# The toolkit supports only two of these algorithms: HS256 and RS256.
SIGNING_ALGORITHMS = [(name, name) for name in ("HS256", "RS256", "RS512", "PS256")]


def default_grant_types() -> list[str]:
    return ["client_credentials"]


class Client(UnrecordedOwned, AbstractApplication):  # type: ignore[misc]  # the toolkit has no types
    """An application of one tenant.

    A client may have several grant types. It has one registered method to authenticate at the token endpoint.
    """

    class AuthMethod(models.TextChoices):
        NONE = "none"
        POST = "client_secret_post"
        BASIC = "client_secret_basic"

    client_id = models.CharField(
        max_length=64,
        unique=True,
        default=new_client_id,
        validators=[RegexValidator(r"^[A-Za-z0-9]{1,64}$", "Letters and digits.")],
        help_text="The public identifier. Never changes.",
    )
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, null=True, blank=True, editable=False, related_name="+")
    is_global = models.BooleanField(
        default=False, help_text="Whether the client may use the whole management interface without a client grant."
    )
    algorithm = models.CharField(
        max_length=5, choices=SIGNING_ALGORITHMS, blank=True, default="", help_text="Signing algorithm of ID tokens. Empty: RS256."
    )
    token_endpoint_auth_method = models.CharField(max_length=32, choices=AuthMethod, default=AuthMethod.POST)
    grant_types = models.JSONField(default=default_grant_types, blank=True)
    secret_digest = models.CharField(max_length=80, blank=True, default="", editable=False)
    sealed_secret = models.TextField(blank=True, default="", editable=False, help_text="Set only if HS256 needs the plain secret.")
    auth_version = models.PositiveIntegerField(
        default=1,
        editable=False,
        help_text="Increases if, for example, the secret changes. JWT access tokens with an older version are refused, and open "
        "streams are closed.",
    )
    registration_digest = models.CharField(max_length=64, blank=True, default="", db_default="", editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    is_account_page = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="The client of the tenant's account page: created by the service and hidden.",
    )
    metadata = models.JSONField(default=dict, blank=True)
    app_type = models.CharField(max_length=32, blank=True)
    is_first_party = models.BooleanField(default=True)
    settings = models.JSONField(default=dict, blank=True, help_text="Further settings, by their names in the management API.")

    # This constant and the properties below replace columns of the toolkit, so that no value is stored twice.
    hash_client_secret: ClassVar[bool] = False

    # The registered keys and certificates. Set when the client authenticates.
    proofs: tuple[ClientCredential, ...] = ()
    # The keys that verify the client's signed requests. Also set when the client authenticates.
    request_keys: tuple[ClientCredential, ...] = ()

    class Meta(UnrecordedOwned.Meta):
        swappable = "OAUTH2_PROVIDER_APPLICATION_MODEL"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="authapi_client_tenant_id_unique"),
            models.UniqueConstraint(fields=["tenant"], condition=models.Q(is_account_page=True), name="authapi_client_account_page_unique"),
        ]
        indexes = [models.Index(fields=["tenant", "created", "id"], name="authapi_client_list")]
        ordering = ("created", "id")

    def __str__(self) -> str:
        return self.name or self.client_id

    @property
    def active_credentials(self) -> tuple[ClientCredential, ...]:
        """The credentials that are valid now. In a cached client, a credential may have expired since the client was loaded."""
        return tuple(proof for proof in self.proofs if proof.is_active)

    @property
    def active_request_keys(self) -> tuple[ClientCredential, ...]:
        """The keys for signed requests of the client. Expired keys are left out."""
        return tuple(key for key in self.request_keys if key.is_active)

    @property
    def client_type(self) -> str:
        return str(AbstractApplication.CLIENT_PUBLIC if self.is_public else AbstractApplication.CLIENT_CONFIDENTIAL)

    @property
    def authorization_grant_type(self) -> str:
        return next((toolkit for toolkit, wire in TOOLKIT_GRANTS.items() if wire in self.grant_types), "")

    @property
    def id_token_algorithm(self) -> str:
        """The algorithm that signs the client's id tokens and logout tokens."""
        return str(self.algorithm or "RS256")

    @property
    def client_secret(self) -> str:
        """The secret in plain text if HS256 needs it, otherwise empty."""
        return vault.unseal(self.sealed_secret, place=self._secret_place) if self.sealed_secret else ""

    @property
    def is_self_registered(self) -> bool:
        """Whether the application registered itself (RFC 7591), so that no administrator has checked its metadata."""
        return bool(self.registration_source == self.RegistrationSource.DCR)

    @property
    def is_public(self) -> bool:
        return self.auth_method == self.AuthMethod.NONE

    @property
    def auth_method(self) -> str:
        """The only method by which this client authenticates.

        If this method uses a key or a certificate, the client's secret does not work.
        """
        return self.proof_method or self.token_endpoint_auth_method

    @property
    def proof_method(self) -> str:
        """The authentication method if the client uses a key or a certificate, otherwise empty."""
        return next(iter(self._proofs), "")

    @property
    def proof_ids(self) -> tuple[str, ...]:
        """The ids of the credentials with which the client authenticates."""
        return tuple(credential["id"] for method in self._proofs.values() for credential in method["credentials"])

    @property
    def request_key_ids(self) -> tuple[str, ...]:
        """The ids of the credentials that verify the client's signed requests."""
        signed = self.settings.get("signed_request_object") or {}
        return tuple(credential["id"] for credential in signed.get("credentials") or ())

    @property
    def used_credential_ids(self) -> frozenset[str]:
        """The ids of the credentials for authentication or for signed requests."""
        return frozenset({*self.proof_ids, *self.request_key_ids})

    @property
    def _proofs(self) -> dict[str, Any]:
        return self.settings.get("client_authentication_methods") or {}

    @property
    def _secret_place(self) -> str:
        return f"{self.tenant_id}:client:{self.client_id}:secret"

    def set_secret(self, secret: str) -> None:
        """Store the digest of `secret`. If id tokens of the client are signed with the secret, store the encrypted secret, too."""
        self.secret_digest = vault.digest(secret)
        is_needed = self.algorithm == AbstractApplication.HS256_ALGORITHM
        self.sealed_secret = vault.seal(secret, place=self._secret_place) if is_needed else ""

    def secret_matches(self, secret: str) -> bool:
        """Compare a secret with the stored secret, in constant time. Return False if the client has no secret."""
        return vault.digest_matches(secret, self.secret_digest)

    def allows_grant_type(self, *grant_types: str) -> bool:
        """Tell whether one of the grant types is enabled. Accepts names on the wire and names in the toolkit."""
        return any(TOOLKIT_GRANTS.get(grant, grant) in self.grant_types for grant in grant_types)

    def is_usable(self, request: Any) -> bool:
        return self.revoked_at is None

    def clean(self) -> None:
        if not isinstance(self.grant_types, list) or not all(isinstance(grant, str) for grant in self.grant_types):
            raise ValidationError({"grant_types": "A list of grant types is expected."})
        if self.is_public and "client_credentials" in self.grant_types:
            # RFC 6749, 4.4: the client credentials grant is for confidential clients only.
            raise ValidationError({"grant_types": "A client without authentication cannot use client_credentials."})
        if self.is_public and self.is_global:
            raise ValidationError({"is_global": "A global client must authenticate."})
