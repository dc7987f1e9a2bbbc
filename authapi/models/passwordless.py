"""Codes and links that log users in without a password, while they wait to be used."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned


class PasswordlessCode(UnrecordedOwned):
    """One message to an email address or phone number: a code to type or a link to open.

    Only digests of the code and the link are stored. The message is valid for one client, one connection and one address. If `bound_to`
    names a login of the hosted pages or an `auth_session`, the message is valid only for that login or session. Using the code also uses up
    the link, and using the link uses up the code.
    """

    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, related_name="+")
    address = models.CharField(max_length=254, help_text="Email address in lower case, or phone number.")
    bound_to = models.CharField(max_length=80, blank=True, editable=False)
    # A keyed digest, because an attacker could compute six digits from a plain digest at once.
    code_digest = models.CharField(max_length=160, blank=True, editable=False)
    link_digest = models.CharField(max_length=64, blank=True, editable=False)
    protocol = models.CharField(max_length=32, blank=True)
    sealed_request = models.TextField(
        blank=True, editable=False, help_text="The request that the link answers, in the terms of its protocol, encrypted."
    )
    language = models.CharField(
        max_length=12, blank=True, default="", db_default="", help_text="Language of the message and of the page that its link opens."
    )
    takes_sign_up = models.BooleanField(default=True)
    failures = models.PositiveSmallIntegerField(default=0, help_text="Wrong codes entered while this code was valid.")
    created_at = models.DateTimeField(auto_now_add=True)
    code_expires_at = models.DateTimeField()
    expires_at = models.DateTimeField(help_text="Time at which the code and the link expire.")
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["link_digest", "tenant"], condition=~models.Q(link_digest=""), name="authapi_passwordlesscode_link_unique"
            )
        ]
        indexes = [
            # Finds the newest codes of an address.
            models.Index(fields=["connection", "address", "-id"], name="authapi_passwordless_address"),
            models.Index(fields=["expires_at"], name="authapi_passwordless_expired"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"passwordless code {self.pk}"
