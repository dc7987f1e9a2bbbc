"""Ceremonies of passkeys for a user who is not known yet: a login without a name, and a sign-up."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned


class PasskeyCeremony(UnrecordedOwned):
    """A challenge for a passkey whose user is not known yet. The challenge is valid once.

    On the hosted pages, the challenge is for one login, which `bound_to` identifies. Otherwise the challenge is for one client. The client
    gets an `auth_session`, and `digest` is the digest of this `auth_session`.
    """

    digest = models.CharField(max_length=64, editable=False)
    bound_to = models.CharField(max_length=80, blank=True, editable=False)
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    # None for a login on the hosted pages, because the user may belong to any connection of the login.
    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    organization = models.ForeignKey("identity.Organization", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    relying_party = models.CharField(max_length=253, help_text="Domain of the passkey (relying party ID).")
    is_registration = models.BooleanField(default=False, help_text="Whether the answer creates an account.")
    sealed = models.TextField(editable=False, help_text="The challenge and the profile of a sign-up, encrypted.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_passkeyceremony_unique")]
        indexes = [
            models.Index(fields=["tenant", "bound_to", "-id"], name="authapi_passkeyceremony_bound"),
            models.Index(fields=["expires_at"], name="authapi_passkeyceremony_over"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"passkey ceremony {self.pk}"
