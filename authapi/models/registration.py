"""The tokens with which applications register themselves."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from authapi.models.base import UnrecordedOwned


class InitialAccessToken(UnrecordedOwned):
    """A token of an administrator with which applications register themselves (RFC 7591, 1.2). The row stores its digest."""

    name = models.CharField(max_length=128, help_text="Purpose or owner of the token, for administrators.")
    digest = models.CharField(max_length=64, editable=False)
    most_uses = models.PositiveIntegerField(
        null=True, blank=True, help_text="Maximum number of registrations with the token. Empty: unlimited."
    )
    use_count = models.PositiveIntegerField(default=0, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_initialaccesstoken_unique")]
        indexes = [
            models.Index(fields=["tenant", "id"], name="authapi_initialtoken_listed"),
            models.Index(fields=["expires_at"], name="authapi_initialtoken_expired"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return self.name

    @property
    def is_usable(self) -> bool:
        """Whether another application may register with the token."""
        is_left = self.most_uses is None or self.use_count < self.most_uses
        return self.revoked_at is None and self.expires_at > timezone.now() and is_left
