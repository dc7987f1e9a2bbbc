"""Rows of the OAuth toolkit for logins: codes, opaque tokens, refresh tokens, id tokens, device grants.

These models replace the models of the toolkit, which would reference staff instead of end users.
"""

from __future__ import annotations

import uuid

from django.db import models
from oauth2_provider.models import (
    AbstractAccessToken,
    AbstractDeviceGrant,
    AbstractGrant,
    AbstractIDToken,
    AbstractRefreshToken,
)

from authapi.models.base import UnrecordedOwned
from foundation.ids import new_refresh_token_id

ASKED = "Granted request parameters other than scopes; null if there are none."


class Issued(UnrecordedOwned):
    """The columns that the exchange of a code or refresh token copies to the new rows.

    Only digests of codes and tokens are stored. `lineage` is the same for all rows of one login at one client. All these rows are revoked
    when a code or a rotated token is replayed.
    """

    audience = models.CharField(max_length=600, blank=True, help_text="Empty: an opaque token for the profile.")
    session = models.ForeignKey("authapi.Session", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    organization = models.ForeignKey("identity.Organization", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    lineage = models.UUIDField(default=uuid.uuid4, editable=False)
    auth_time = models.DateTimeField(null=True, blank=True)
    methods = models.JSONField(default=list, blank=True, help_text="Authentication methods of the login.")
    confirmation = models.JSONField(null=True, blank=True, help_text="`cnf`: the key or certificate to which the tokens are bound.")
    asked = models.JSONField(null=True, blank=True, editable=False, help_text=ASKED)
    issued_jti = models.CharField(max_length=64, blank=True, help_text="The access token that was issued with this code or token.")
    issued_until = models.DateTimeField(null=True, blank=True)

    class Meta(UnrecordedOwned.Meta):
        abstract = True


class AuthorizationCode(Issued, AbstractGrant):  # type: ignore[misc]
    """A code; `code` contains its digest. A used code is kept for a day after it expires, so that a replay is detected."""

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    sid = models.CharField(max_length=32, blank=True)
    is_redirect_uri_given = models.BooleanField(
        default=True,
        help_text="Whether the authorization request contained redirect_uri. If so, the exchange of the code must contain it, too.",
    )
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta(Issued.Meta):
        swappable = "OAUTH2_PROVIDER_GRANT_MODEL"
        indexes = [models.Index(fields=["lineage"], name="authapi_code_lineage")]

    def __str__(self) -> str:
        return f"authorization code {self.pk}"


class AccessToken(UnrecordedOwned, AbstractAccessToken):  # type: ignore[misc]
    """An opaque access token. JWT access tokens are not stored."""

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    lineage = models.UUIDField(null=True, blank=True, editable=False)
    confirmation = models.JSONField(null=True, blank=True)
    asked = models.JSONField(null=True, blank=True, editable=False, help_text=ASKED)

    class Meta(UnrecordedOwned.Meta):
        swappable = "OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL"
        indexes = [models.Index(fields=["lineage"], name="authapi_accesstoken_lineage")]

    def __str__(self) -> str:
        return f"access token {self.pk}"


class RefreshToken(Issued, AbstractRefreshToken):  # type: ignore[misc]
    """A refresh token; `token` contains its digest. `revoked` is the time when it was rotated, replayed or revoked."""

    wire_id = models.CharField(max_length=30, unique=True, default=new_refresh_token_id, editable=False)
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    scope = models.TextField(blank=True)
    sid = models.CharField(max_length=32, blank=True)
    is_rotating = models.BooleanField(default=True)
    is_rotated = models.BooleanField(
        default=False, help_text="A newer token has replaced this token. If this token is used again, the newer token is revoked, too."
    )
    sealed_successor = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The token that replaced this token, encrypted. Stored during the leeway only.",
    )
    sealed_until = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="A rotation does not change this time. Empty: no expiry.")
    idle_expires_at = models.DateTimeField(null=True, blank=True)
    last_exchanged_at = models.DateTimeField(null=True, blank=True)
    initial_ip = models.GenericIPAddressField(null=True, blank=True)
    initial_user_agent = models.CharField(max_length=500, blank=True)
    last_ip = models.GenericIPAddressField(null=True, blank=True)
    last_user_agent = models.CharField(max_length=500, blank=True)
    metadata = models.JSONField(default=dict, blank=True)

    class Meta(Issued.Meta):
        swappable = "OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL"
        constraints = [models.UniqueConstraint(fields=["token_checksum", "revoked"], name="authapi_refreshtoken_checksum_unique")]
        indexes = [
            # Serves the list in the admin: each page starts after the last row of the page before.
            models.Index(fields=["tenant", "id"], name="authapi_refreshtoken_listed"),
            # These two indexes find all tokens of one login at one client. These tokens are revoked after the reuse of a rotated token.
            models.Index(fields=["token_family"], name="authapi_refreshtoken_family"),
            models.Index(fields=["lineage"], name="authapi_refreshtoken_lineage"),
            models.Index(fields=["user", "created"], name="authapi_refreshtoken_by_user"),
            # Serves the deletion of expired successors. Few rows have a successor.
            models.Index(fields=["sealed_until"], condition=models.Q(sealed_until__isnull=False), name="authapi_refreshtoken_sealed"),
        ]

    def __str__(self) -> str:
        return f"refresh token {self.pk}"


class IDToken(UnrecordedOwned, AbstractIDToken):  # type: ignore[misc]
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, null=True, blank=True, related_name="+")

    class Meta(UnrecordedOwned.Meta):
        swappable = "OAUTH2_PROVIDER_ID_TOKEN_MODEL"

    def __str__(self) -> str:
        return f"id token {self.pk}"


class DeviceGrant(Issued, AbstractDeviceGrant):  # type: ignore[misc]
    """A device that waits for a user to allow it. `device_code` and `user_code` contain digests; `client_id` contains the id on the wire.

    `last_checked` is the time of the device's last poll. A row is kept after its end, so that late polls get a clear answer.
    """

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    application = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    last_checked = models.DateTimeField(null=True, blank=True)
    created = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True, blank=True, help_text="When the device got its tokens.")
    initial_ip = models.GenericIPAddressField(null=True, blank=True)
    initial_country = models.CharField(max_length=2, blank=True, help_text="Country of the device, as reported by the proxy; ISO 3166-1.")
    initial_user_agent = models.CharField(max_length=500, blank=True)
    approved_ip = models.GenericIPAddressField(null=True, blank=True, help_text="IP address of the browser in which the user answered.")

    class Meta(Issued.Meta):
        swappable = "OAUTH2_PROVIDER_DEVICE_GRANT_MODEL"
        constraints = [
            models.UniqueConstraint(fields=["device_code"], name="authapi_devicegrant_device_code_unique"),
            models.UniqueConstraint(fields=["user_code", "tenant"], name="authapi_devicegrant_user_code_unique"),
        ]
        indexes = [
            models.Index(fields=["lineage"], name="authapi_devicegrant_lineage"),
            models.Index(fields=["expires"], name="authapi_devicegrant_expired"),
        ]

    def __str__(self) -> str:
        return f"device grant {self.pk}"
