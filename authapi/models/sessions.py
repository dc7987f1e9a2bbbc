"""Sessions of end users: the login of a browser at one tenant, and the clients that got a response in the session."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned
from foundation.ids import new_session_id


class Initiator(models.TextChoices):
    """The reasons for the end of a session, by their names in back-channel logouts. The contract (2.8) allows no other names."""

    RP_LOGOUT = "rp-logout"
    IDP_LOGOUT = "idp-logout"
    PASSWORD_CHANGED = "password-changed"  # noqa: S105  (the name of a reason)
    SESSION_EXPIRED = "session-expired"
    SESSION_REVOKED = "session-revoked"
    ACCOUNT_DELETED = "account-deleted"
    EMAIL_IDENTIFIER_CHANGED = "email-identifier-changed"
    MFA_PHONE_UNENROLLED = "mfa-phone-unenrolled"
    ACCOUNT_DEACTIVATED = "account-deactivated"
    PROFILE_CHANGED = "profile-changed"


class Session(UnrecordedOwned):
    """A login of one user in one browser. The cookie contains a random secret, of which the row stores the digest.

    A session is found by digest and tenant, so a session of one tenant is unknown at another tenant. The row is deleted when the session
    ends.
    """

    id = models.CharField(
        primary_key=True, max_length=32, default=new_session_id, editable=False, help_text="The session id that tokens contain (sid)."
    )
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, editable=False)
    is_persistent = models.BooleanField(default=True, help_text="The session stays open after the browser is closed.")
    authenticated_at = models.DateTimeField(help_text="When the user last entered a password or another proof (auth_time in tokens).")
    methods = models.JSONField(default=list, help_text='A list of {"name", "timestamp"}: the authentication methods.')
    organization = models.ForeignKey("identity.Organization", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    last_interacted_at = models.DateTimeField()
    idle_expires_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    initial_ip = models.GenericIPAddressField(null=True, blank=True)
    initial_user_agent = models.CharField(max_length=500, blank=True)
    last_ip = models.GenericIPAddressField(null=True, blank=True)
    last_user_agent = models.CharField(max_length=500, blank=True)
    last_country = models.CharField(
        max_length=2,
        blank=True,
        default="",
        db_default="",
        help_text="Country of the browser at the last login, as reported by the proxy; ISO 3166-1.",
    )
    metadata = models.JSONField(default=dict, blank=True)
    sealed_upstream = models.TextField(blank=True, editable=False, help_text="Data for the logout at the upstream provider, encrypted.")
    issuer = models.CharField(max_length=300, blank=True, help_text="The issuer that clients of this session expect.")

    class Meta(UnrecordedOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_session_digest_unique"),
            models.UniqueConstraint(fields=["tenant", "id"], name="authapi_session_tenant_id_unique"),
        ]
        indexes = [
            # Finds the sessions of a user, newest first.
            models.Index(fields=["user", "-created_at"], name="authapi_session_by_user"),
            models.Index(fields=["tenant", "-created_at", "id"], name="authapi_session_list"),
            # Finds expired sessions.
            models.Index(fields=["idle_expires_at"], name="authapi_session_expired"),
        ]
        ordering = ("-created_at", "id")

    def __str__(self) -> str:
        return self.id


class SessionClient(UnrecordedOwned):
    """A client that got a response in a session. When the session ends, the protocol notifies the client."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="session_clients")
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    protocol = models.CharField(max_length=32, default="oauth", db_default="oauth", editable=False)
    sealed_state = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Data that the protocol needs to notify the client of a logout, encrypted.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["session", "client", "protocol"], name="authapi_sessionclient_protocol")]
        # Serves the list in the admin: each page starts after the last row of the page before.
        indexes = [models.Index(fields=["tenant", "id"], name="authapi_sessionclient_listed")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.client_id} in {self.session_id}"


class LogoutNotice(UnrecordedOwned):
    """A notice to one URL of a client that a session has ended. The notice is deleted after its delivery, or when the service gives up.

    Its columns are texts instead of relations, because the user and the session may be deleted before the notice is sent.
    """

    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+")
    url = models.CharField(max_length=2048)
    initiator = models.CharField(max_length=64)
    sid = models.CharField(max_length=32)
    subject = models.CharField(max_length=300)
    issuer = models.CharField(max_length=300)
    attempts = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        # Finds the due notices of all tenants.
        indexes = [models.Index(fields=["due_at"], name="authapi_logoutnotice_due")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"notice of {self.sid} to {self.client_id}"
