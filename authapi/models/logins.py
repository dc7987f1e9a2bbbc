"""Logins that wait for users, logouts that wait for a browser, and the consents of users."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned


class LoginTransaction(UnrecordedOwned):
    """A client's request while the hosted pages process it. The pages pass on its handle as `state`; the row stores the digest.

    A transaction belongs to the browser that began it: `browser_digest` is the digest of a cookie, so that another browser cannot finish
    the login.
    """

    digest = models.CharField(max_length=64, editable=False)
    browser_digest = models.CharField(max_length=64, editable=False)
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    protocol = models.CharField(max_length=32, default="oauth", db_default="oauth", editable=False)
    sealed_request = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The client's request in the terms of its protocol, encrypted.",
    )
    # Rows that the previous version of the service wrote have the request in this column. The next version drops this column.
    parameters = models.JSONField(default=dict, editable=False)
    language = models.CharField(
        max_length=12, blank=True, default="", db_default="", help_text="Language of the pages and mails of the login."
    )
    progress = models.JSONField(default=dict, help_text="Results of the pages so far.")
    sealed_upstream = models.TextField(
        blank=True, editable=False, help_text="Nonce and code verifier of a login at an upstream provider, encrypted."
    )
    session = models.ForeignKey("authapi.Session", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta(UnrecordedOwned.Meta):
        # The table keeps its former name, because processes of the previous version still use the table during an upgrade.
        db_table = "authapi_authorizationrequest"
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_authorizationrequest_unique")]
        indexes = [models.Index(fields=["expires_at"], name="authapi_authreq_expired")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"login transaction {self.pk}"


class LogoutTransaction(UnrecordedOwned):
    """A logout whose browser visits the participants of the session one after the other. The row stores the digest of its handle."""

    digest = models.CharField(max_length=64, editable=False)
    sealed_route = models.TextField(editable=False, help_text="Current and remaining steps of the logout, encrypted.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_logouttransaction_unique")]
        indexes = [models.Index(fields=["expires_at"], name="authapi_logouttx_expired")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"logout transaction {self.pk}"


class Consent(UnrecordedOwned):
    """What a user has allowed a client to do at one API. An empty audience means the profile alone."""

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    audience = models.CharField(max_length=600, blank=True)
    scopes = models.JSONField(default=list)
    asked = models.JSONField(
        null=True, blank=True, editable=False, help_text="Authorization details and single claims allowed by the user."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["user", "client", "audience"], name="authapi_consent_unique")]
        indexes = [models.Index(fields=["tenant", "id"], name="authapi_consent_list")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"consent {self.pk}"


class PushedRequest(UnrecordedOwned):
    """An authorization request that its client has pushed (RFC 9126).

    The browser gets the handle of the request; the row stores the digest of the handle. The row is deleted when the request is answered. If
    a login began before the expiry of the row, the request can still be answered for a while after the expiry.
    """

    digest = models.CharField(max_length=64, editable=False)
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    sealed_parameters = models.TextField(editable=False, help_text="Parameters of the request, encrypted.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_pushedrequest_unique")]
        indexes = [models.Index(fields=["expires_at"], name="authapi_pushedrequest_expired")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"pushed request {self.pk}"
