"""Second factors in use: challenges, waiting logins, remembered browsers, and the rules of organizations."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned


class SecondFactorPolicy(models.TextChoices):
    """The policies that decide whether a login requires a second factor, least strict first."""

    NEVER = "never", "Never"
    ON_REQUEST = "on-request", "When the application requests a second factor, or the user has set one up"
    NEW_DEVICE = "new-device", "In browsers that the user has not used before"
    ALWAYS = "always", "Always"


class FactorChallenge(UnrecordedOwned):
    """A code that was sent to one user, or a challenge that a key of the user must sign. Only digests of codes are stored.

    A challenge is valid only for its owner, which is in `bound_to`: one login of the hosted pages, one transaction of an application, or
    one session.
    """

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    # The factor that must answer. None if any key of the user may answer.
    factor = models.ForeignKey("identity.EnrolledFactor", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    bound_to = models.CharField(max_length=80, editable=False)
    purpose = models.CharField(max_length=16, help_text="“use” at a login, or “enroll” to confirm a new second factor.")
    # A keyed digest, because an attacker could compute six digits from a plain digest at once.
    code_digest = models.CharField(max_length=160, blank=True, editable=False)
    # The value with which an application refers to the message: `oob_code` on the wire.
    handle_digest = models.CharField(max_length=64, blank=True, editable=False)
    challenge = models.BinaryField(blank=True, default=b"", editable=False)
    failures = models.PositiveSmallIntegerField(default=0, help_text="Wrong codes entered while this code was valid.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta(UnrecordedOwned.Meta):
        indexes = [
            # Finds the newest challenges of one login.
            models.Index(fields=["tenant", "bound_to", "-id"], name="authapi_factorchallenge_bound"),
            models.Index(fields=["expires_at"], name="authapi_factorchallenge_over"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"challenge {self.pk} of user {self.user_id}"


class FactorTransaction(UnrecordedOwned):
    """A login in an application that waits for its second factor. Only the digest of its token is stored.

    A transaction is valid only for its client, and only with the DPoP key of the first request. At the end, the requested tokens are issued
    once.
    """

    digest = models.CharField(max_length=64, editable=False)
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, related_name="+")
    organization = models.ForeignKey("identity.Organization", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    methods = models.JSONField(default=list, help_text="Authentication methods completed so far.")
    grant = models.CharField(max_length=64, help_text="The grant type that tokens name.")
    audience = models.CharField(max_length=600, blank=True)
    # None means every scope of the API.
    scope = models.TextField(null=True, blank=True)
    key = models.CharField(
        max_length=64, blank=True, editable=False, help_text="Thumbprint of the DPoP key of the first request (RFC 9449)."
    )
    may_enroll = models.BooleanField(help_text="The user had no factor at the start. The login may then enroll one.")
    ip = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_factortransaction_unique")]
        indexes = [models.Index(fields=["expires_at"], name="authapi_factortransaction_over")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"factor transaction {self.pk}"


class RememberedBrowser(UnrecordedOwned):
    """A browser in which a user has proven a second factor.

    Until the row expires, a login in this browser requires a factor only if the client requests one. Stores the cookie's digest.
    """

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, editable=False)
    ip = models.GenericIPAddressField(null=True, blank=True)
    user_agent = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_rememberedbrowser_unique")]
        indexes = [
            models.Index(fields=["user", "-id"], name="authapi_rememberedbrowser_user"),
            models.Index(fields=["expires_at"], name="authapi_rememberedbrowser_over"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"remembered browser {self.pk}"


class OrganizationSecondFactors(UnrecordedOwned):
    """The second factors that an organization requires of its members, in addition to the policies of tenant and application."""

    organization = models.OneToOneField("identity.Organization", on_delete=models.CASCADE, related_name="+")
    policy = models.CharField(max_length=16, choices=SecondFactorPolicy)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        ordering = ("id",)

    def __str__(self) -> str:
        return f"second factors of {self.organization_id}"
