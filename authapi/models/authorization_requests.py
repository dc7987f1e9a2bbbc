"""Requests to `/authorize` that wait for people: for a login, a consent, or an answer of an upstream provider."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned


class AuthorizationRequest(UnrecordedOwned):
    """One checked request on its way through the hosted pages. The pages carry its handle as `state`; the digest is kept.

    It belongs to the browser that began it: `browser_digest` is that of a cookie, so that nobody finishes the login of another.
    """

    digest = models.CharField(max_length=64, editable=False)
    browser_digest = models.CharField(max_length=64, editable=False)
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    parameters = models.JSONField(default=dict, help_text="What `/authorize` was asked, checked.")
    progress = models.JSONField(default=dict, help_text="What the pages have found out so far.")
    sealed_upstream = models.TextField(blank=True, editable=False, help_text="Nonce and verifier of a login elsewhere, encrypted.")
    session = models.ForeignKey("authapi.Session", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_authorizationrequest_unique")]
        indexes = [models.Index(fields=["expires_at"], name="authapi_authreq_expired")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"authorization request {self.pk}"


class Consent(UnrecordedOwned):
    """What a user allowed a client to do at one API. An empty audience stands for the profile alone."""

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    audience = models.CharField(max_length=600, blank=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["user", "client", "audience"], name="authapi_consent_unique")]
        indexes = [models.Index(fields=["tenant", "id"], name="authapi_consent_list")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"consent {self.pk}"
