"""Rows of the endpoints for old clients: tickets between an application's login form and `/authorize`, and keys of devices."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned
from foundation.ids import new_device_credential_id


class LoginTicket(UnrecordedOwned):
    """A login with a correct password or code, kept until the browser arrives with its ticket. The row is deleted at its first use.

    The row stores digests of the ticket, of the browser's cookie, and of the verifier that the requesting page keeps.
    """

    digest = models.CharField(max_length=64, editable=False)
    browser_digest = models.CharField(max_length=64, editable=False)
    verifier_digest = models.CharField(max_length=64, blank=True, editable=False)
    co_id = models.CharField(max_length=64, blank=True, editable=False, help_text="Name under which the page stores the verifier.")
    origin = models.CharField(max_length=300, blank=True, help_text="Origin of the requesting page; empty for a page of this host.")
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, related_name="+")
    methods = models.JSONField(default=list, help_text="Authentication methods of the login.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_loginticket_digest_unique")]
        indexes = [models.Index(fields=["expires_at"], name="authapi_loginticket_expired")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"login ticket {self.pk}"


class DeviceKey(UnrecordedOwned):
    """The public key of a device on which a user stays logged in. The device signs a token, which `/oauth/ro` accepts."""

    wire_id = models.CharField(max_length=24, unique=True, default=new_device_credential_id, editable=False)
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    device_name = models.CharField(max_length=255)
    device_id = models.CharField(max_length=255)
    public_key = models.TextField(help_text="PEM of an RSA key.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        # A device that registers again replaces its key.
        constraints = [models.UniqueConstraint(fields=["client", "user", "device_id"], name="authapi_devicekey_unique")]
        indexes = [
            models.Index(fields=["tenant", "id"], name="authapi_devicekey_list"),
            # Finds the keys of a user, which are listed for the user and deleted with the user.
            models.Index(fields=["user"], name="authapi_devicekey_by_user"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return self.wire_id
