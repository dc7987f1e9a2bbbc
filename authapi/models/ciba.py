"""Requests of clients that users answer in another browser (CIBA). A request waits for the answer, and then for the client's next poll."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned
from authapi.models.credentials import Issued

LONGEST_MESSAGE = 64


class CibaRequest(Issued):
    """One request of a client to one user (OpenID CIBA Core 1.0). `auth_req_id` and `link_digest` contain digests.

    `audience` and `scope` are the requested values, and after the approval the granted values. `last_checked` is the time of the client's
    last poll. A row is kept after its request has ended, so that late polls get a clear answer.
    """

    class Status(models.TextChoices):
        PENDING = "pending", "Waits for the user"
        APPROVED = "approved", "Approved"
        DENIED = "denied", "Denied"

    application = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    auth_req_id = models.CharField(max_length=64, editable=False)
    link_digest = models.CharField(max_length=64, editable=False)
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    scope = models.TextField(blank=True)
    acr_values = models.CharField(max_length=1024, blank=True)
    binding_message = models.CharField(max_length=LONGEST_MESSAGE)
    channel = models.CharField(max_length=16, blank=True, help_text="How the user is notified.")
    interval = models.PositiveSmallIntegerField(default=5)
    last_checked = models.DateTimeField(null=True, blank=True)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True, help_text="When the client got its tokens.")
    initial_ip = models.GenericIPAddressField(null=True, blank=True)
    initial_country = models.CharField(max_length=2, blank=True, help_text="Country of the sender, as reported by the proxy; ISO 3166-1.")
    approved_ip = models.GenericIPAddressField(null=True, blank=True, help_text="IP address of the browser in which the user answered.")

    class Meta(UnrecordedOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["auth_req_id"], name="authapi_cibarequest_id_unique"),
            models.UniqueConstraint(fields=["link_digest"], name="authapi_cibarequest_link_unique"),
        ]
        indexes = [
            # These indexes find the waiting requests of one user, and of one client.
            models.Index(fields=["user", "expires"], name="authapi_cibarequest_user"),
            models.Index(fields=["application", "expires"], name="authapi_cibarequest_client"),
            models.Index(fields=["lineage"], name="authapi_cibarequest_lineage"),
            models.Index(fields=["expires"], name="authapi_cibarequest_expired"),
        ]

    def __str__(self) -> str:
        return f"approval {self.pk}"
