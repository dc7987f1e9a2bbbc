"""Second factors at work: what was asked of a person, which browsers are spared, and what an organization demands."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned


class SecondFactorPolicy(models.TextChoices):
    """When a login asks for a second factor, the laxest policy first."""

    NEVER = "never", "Never"
    ON_REQUEST = "on-request", "When the application asks, or the user has turned it on"
    NEW_DEVICE = "new-device", "In browsers that the user has not used before"
    ALWAYS = "always", "Always"


class FactorChallenge(UnrecordedOwned):
    """A code that was sent, or a challenge that a key has to sign, for one user. Only digests of codes are kept.

    It counts for what `bound_to` names alone: one login of the hosted pages, one transaction of an application, or one session.
    """

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    # None where any key of the user may answer.
    factor = models.ForeignKey("identity.EnrolledFactor", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    bound_to = models.CharField(max_length=80, editable=False)
    purpose = models.CharField(max_length=16, help_text="`use`, or `enroll` for a factor that the answer confirms.")
    # Keyed, since six digits are guessed at once from a plain digest.
    code_digest = models.CharField(max_length=160, blank=True, editable=False)
    # What an application shows to say which message it means: `oob_code` on the wire.
    handle_digest = models.CharField(max_length=64, blank=True, editable=False)
    challenge = models.BinaryField(blank=True, default=b"", editable=False)
    failures = models.PositiveSmallIntegerField(default=0, help_text="Wrong codes tried while this one counted.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta(UnrecordedOwned.Meta):
        indexes = [
            # The newest challenges of one login.
            models.Index(fields=["tenant", "bound_to", "-id"], name="authapi_factorchallenge_bound"),
            models.Index(fields=["expires_at"], name="authapi_factorchallenge_over"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"challenge {self.pk} of user {self.user_id}"


class FactorTransaction(UnrecordedOwned):
    """A user whose first proof an application has handed over, and who still has to prove a second factor. The token's digest is kept.

    It belongs to the client, and to the key that the first request has proven. What was asked for first is issued at the end, once.
    """

    digest = models.CharField(max_length=64, editable=False)
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, related_name="+")
    organization = models.ForeignKey("identity.Organization", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    methods = models.JSONField(default=list, help_text="How the user has proven who they are so far.")
    grant = models.CharField(max_length=64, help_text="What tokens say of the grant.")
    audience = models.CharField(max_length=600, blank=True)
    # None for every scope of the API.
    scope = models.TextField(null=True, blank=True)
    key = models.CharField(max_length=64, blank=True, editable=False, help_text="Thumbprint of the key of the first request (RFC 9449).")
    may_enroll = models.BooleanField(help_text="Whether the user had no factor when it began.")
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
    """A browser in which a user has passed the second factor, and is spared it for a while. The row holds the digest of its cookie."""

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
    """What an organization demands of its members beyond the policy of the tenant and of the application."""

    organization = models.OneToOneField("identity.Organization", on_delete=models.CASCADE, related_name="+")
    policy = models.CharField(max_length=16, choices=SecondFactorPolicy)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        ordering = ("id",)

    def __str__(self) -> str:
        return f"second factors of {self.organization_id}"
