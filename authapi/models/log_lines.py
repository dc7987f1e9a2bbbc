"""The two tables that `GET /logs` reads: attempts of users, and changes by clients and staff. Their columns have the same names."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned
from foundation.ids import new_sign_in_id


class LogLine(UnrecordedOwned):
    """The columns of both tables. `type` is a short code that `GET /logs` returns, such as `fp`; each code occurs in one table only."""

    id = models.CharField(primary_key=True, max_length=32, default=new_sign_in_id, editable=False)
    type = models.CharField(max_length=32)
    is_success = models.BooleanField()
    description = models.CharField(max_length=500, blank=True, help_text="Details, such as the reason of a failure.")
    # These columns are texts instead of relations, because a line outlives its user, client and connection.
    user_id = models.CharField(max_length=300, blank=True)
    user_name = models.CharField(max_length=300, blank=True)
    client_id = models.CharField(max_length=64, blank=True)
    client_name = models.CharField(max_length=255, blank=True)
    connection = models.CharField(max_length=128, blank=True)
    ip = models.GenericIPAddressField(null=True, blank=True)
    user_agent = models.CharField(max_length=500, blank=True)
    details = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        abstract = True

    def __str__(self) -> str:
        return self.id


class SignIn(LogLine):
    """One line of the sign-in log: an attempt of a user, and its result."""

    class Meta(LogLine.Meta):
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="authapi_signin_list"),
            models.Index(fields=["tenant", "user_id", "-created_at"], name="authapi_signin_by_user"),
            models.Index(fields=["created_at"], name="authapi_signin_expired"),
            # Finds the failures of the last day, which the start pages of a tenant and of the platform count.
            models.Index(fields=["tenant", "-created_at"], condition=models.Q(is_success=False), name="authapi_signin_failed"),
            models.Index(fields=["-created_at"], condition=models.Q(is_success=False), name="authapi_signin_failed_all"),
        ]
        ordering = ("-created_at", "-id")


class AdministrativeLine(LogLine):
    """One line of the administrative log: a write through the management interface, or a change by staff in the admin.

    The line contains only facts that a client of the tenant may read. The audit log has the full record of staff.
    """

    # The scopes of the token that allowed the operation, separated by spaces.
    scope = models.CharField(max_length=500, blank=True)

    class Meta(LogLine.Meta):
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="authapi_adminline_list"),
            # Each of these indexes finds lines, newest first: about one user, of one client, of one type, or of one member of staff.
            models.Index(fields=["tenant", "user_id", "-created_at", "-id"], name="authapi_adminline_by_user"),
            models.Index(fields=["tenant", "client_id", "-created_at", "-id"], name="authapi_adminline_by_client"),
            models.Index(fields=["tenant", "type", "-created_at", "-id"], name="authapi_adminline_by_type"),
            models.Index(
                fields=["tenant", "user_name", "-created_at", "-id"],
                condition=models.Q(user_name__gt=""),
                name="authapi_adminline_by_staff",
            ),
            models.Index(fields=["created_at"], name="authapi_adminline_expired"),
        ]
        ordering = ("-created_at", "-id")
