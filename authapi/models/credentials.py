"""What the toolkit stores about a sign-in: codes, opaque tokens, refresh tokens, id tokens, device grants.

All are swapped, and all point at end users: the toolkit's own would point at staff.
"""

from __future__ import annotations

from django.db import models
from oauth2_provider.models import (
    AbstractAccessToken,
    AbstractDeviceGrant,
    AbstractGrant,
    AbstractIDToken,
    AbstractRefreshToken,
)

from authapi.models.base import UnrecordedOwned


class AuthorizationCode(UnrecordedOwned, AbstractGrant):  # type: ignore[misc]
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")

    class Meta(UnrecordedOwned.Meta):
        swappable = "OAUTH2_PROVIDER_GRANT_MODEL"

    def __str__(self) -> str:
        return f"authorization code {self.pk}"


class AccessToken(UnrecordedOwned, AbstractAccessToken):  # type: ignore[misc]
    """An opaque access token. JWT access tokens are not stored."""

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, null=True, blank=True, related_name="+")

    class Meta(UnrecordedOwned.Meta):
        swappable = "OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL"

    def __str__(self) -> str:
        return f"access token {self.pk}"


class RefreshToken(UnrecordedOwned, AbstractRefreshToken):  # type: ignore[misc]
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")

    class Meta(UnrecordedOwned.Meta):
        swappable = "OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL"
        constraints = [models.UniqueConstraint(fields=["token_checksum", "revoked"], name="authapi_refreshtoken_checksum_unique")]
        # Reuse of a rotated token revokes its whole family.
        indexes = [models.Index(fields=["token_family"], name="authapi_refreshtoken_family")]

    def __str__(self) -> str:
        return f"refresh token {self.pk}"


class IDToken(UnrecordedOwned, AbstractIDToken):  # type: ignore[misc]
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, null=True, blank=True, related_name="+")

    class Meta(UnrecordedOwned.Meta):
        swappable = "OAUTH2_PROVIDER_ID_TOKEN_MODEL"

    def __str__(self) -> str:
        return f"id token {self.pk}"


class DeviceGrant(UnrecordedOwned, AbstractDeviceGrant):  # type: ignore[misc]
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, null=True, blank=True, related_name="+")

    class Meta(UnrecordedOwned.Meta):
        swappable = "OAUTH2_PROVIDER_DEVICE_GRANT_MODEL"
        constraints = [models.UniqueConstraint(fields=["device_code"], name="authapi_devicegrant_device_code_unique")]

    def __str__(self) -> str:
        return f"device grant {self.pk}"
