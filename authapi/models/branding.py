"""The looks of a tenant: its theme, and the pictures that were uploaded for it."""

from __future__ import annotations

import secrets
from typing import Any

from django.db import models

from authapi.models.base import UnrecordedOwned


def new_theme_id() -> str:
    """Return 32 hexadecimal digits."""
    return secrets.token_hex(16)


class BrandingTheme(UnrecordedOwned):
    """The theme of a tenant, by the names on the wire. `authapi.looks.theme` defines its members."""

    id = models.CharField(max_length=32, primary_key=True, default=new_theme_id, editable=False)
    display_name = models.CharField(max_length=2048, blank=True)
    values = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        # A tenant has one theme, the default theme, because clients expect no other.
        constraints = [models.UniqueConstraint(fields=["tenant"], name="authapi_brandingtheme_unique")]

    def __str__(self) -> str:
        return self.display_name or f"theme of {self.tenant_id}"


class BrandingPicture(UnrecordedOwned):
    """A picture that was checked and encoded again. The picture is kept while its path is in a setting."""

    kind = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, editable=False)
    ending = models.CharField(max_length=4)
    media_type = models.CharField(max_length=32)
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()
    data = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        # This constraint also serves the lookup of a picture by its URL.
        constraints = [models.UniqueConstraint(fields=["tenant", "digest"], name="authapi_brandingpicture_unique")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.kind} {self.width}x{self.height}"

    @staticmethod
    def shown_image(image: dict[str, Any]) -> dict[str, Any]:
        """Return the columns for the audit log: all except the bytes, which the digest identifies."""
        return {name: value for name, value in image.items() if name != "data"}
