"""End users, their linked identities, and their passwords. End users are never staff."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.postgres.indexes import OpClass
from django.core.validators import MinLengthValidator, RegexValidator
from django.db import models
from django.db.models import F
from django.db.models.fields.json import KT
from django.db.models.functions import Lower, Reverse

from identity.models.base import RecordedModel


class User(RecordedModel):
    """A user of one tenant. The row is the primary identity; further identities are `LinkedIdentity` rows.

    The primary identity is part of this row, so the creation of a user is one insert and records exactly one event.
    """

    user_id = models.CharField(max_length=300, help_text="<provider>|<id>.")
    connection = models.ForeignKey("identity.Connection", on_delete=models.PROTECT, related_name="users")
    email = models.EmailField(max_length=254, null=True, blank=True)
    email_verified = models.BooleanField(default=False)
    username = models.CharField(
        max_length=128,
        null=True,
        blank=True,
        validators=[RegexValidator(r"^[A-Za-z0-9_+\-.!#$^~@`']+$", "Letters, digits and _+-.!#$^~@`'")],
    )
    phone_number = models.CharField(
        max_length=16, null=True, blank=True, validators=[RegexValidator(r"^\+[0-9]{1,15}$", "A plus sign and 1 to 15 digits.")]
    )
    phone_verified = models.BooleanField(default=False)
    name = models.CharField(max_length=300, null=True, blank=True, validators=[MinLengthValidator(1)])
    nickname = models.CharField(max_length=300, null=True, blank=True, validators=[MinLengthValidator(1)])
    given_name = models.CharField(max_length=150, null=True, blank=True, validators=[MinLengthValidator(1)])
    family_name = models.CharField(max_length=150, null=True, blank=True, validators=[MinLengthValidator(1)])
    picture = models.URLField(max_length=2048, null=True, blank=True)
    blocked = models.BooleanField(
        null=True, blank=True, help_text="Whether an administrator blocked the user. Null until it is set for the first time."
    )
    user_metadata = models.JSONField(default=dict, blank=True)
    app_metadata = models.JSONField(default=dict, blank=True)
    multifactor = models.JSONField(default=list, blank=True)
    last_ip = models.GenericIPAddressField(null=True, blank=True)
    last_login = models.DateTimeField(null=True, blank=True)
    logins_count = models.PositiveIntegerField(default=0)
    last_password_reset = models.DateTimeField(null=True, blank=True)
    first_key = models.BigIntegerField(
        null=True, editable=False, help_text="The primary key of the user before its tenant moved here; empty for users created here."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(RecordedModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user_id"], name="identity_user_user_id_unique"),
            models.UniqueConstraint("connection", Lower("email"), name="identity_user_email_unique"),
            models.UniqueConstraint("connection", Lower("username"), name="identity_user_username_unique"),
            models.UniqueConstraint("connection", "phone_number", name="identity_user_phone_number_unique"),
            models.UniqueConstraint(fields=["tenant", "id"], name="identity_user_tenant_id_unique"),
        ]
        indexes = [
            # Lists of a tenant's users, oldest first, page by page.
            models.Index(fields=["tenant", "created_at", "id"], name="identity_user_list"),
            models.Index("tenant", Lower("email"), name="identity_user_by_email"),
            # Users of one connection, for its list and for its deletion in chunks.
            models.Index(fields=["connection", "created_at", "id"], name="identity_user_by_connection"),
            # Searches by the end of an address, such as its domain: the reversed address in lower case.
            models.Index(F("tenant"), OpClass(Reverse(Lower("email")), name="text_pattern_ops"), name="identity_user_by_email_end"),
            # Searches by the last login, and the list of the latest logins. A login changes an indexed column, so PostgreSQL adds an
            # entry to every index that contains the row.
            models.Index(F("tenant"), F("last_login").desc(nulls_last=True), F("id").desc(), name="identity_user_by_last_login"),
            # Searches by a phone number, or for users who have a phone number. Most users have none and are not in the index.
            models.Index(fields=["tenant", "phone_number"], name="identity_user_by_phone", condition=models.Q(phone_number__gt="")),
        ]
        ordering = ("created_at", "id")

    # Django's authentication middleware and the OAuth toolkit read these attributes. An end user is never staff.
    is_active: ClassVar[bool] = True
    is_anonymous: ClassVar[bool] = False
    is_authenticated: ClassVar[bool] = True
    is_staff: ClassVar[bool] = False
    is_superuser: ClassVar[bool] = False
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    USERNAME_FIELD: ClassVar[str] = "user_id"

    def __str__(self) -> str:
        return self.user_id

    @property
    def lasting_key(self) -> int:
        """The primary key at the creation of the user. Unlike `pk`, it survives a move, so digests that identify a user contain it."""
        return self.pk if self.first_key is None else self.first_key

    @property
    def provider(self) -> str:
        return self.user_id.partition("|")[0]

    @property
    def identifier(self) -> str:
        """The id part of `user_id`, without the provider."""
        return self.user_id.partition("|")[2]


class LinkedIdentity(RecordedModel):
    """The identity of a former user, linked to a primary user."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="linked_identities")
    connection = models.ForeignKey("identity.Connection", on_delete=models.PROTECT, related_name="linked_identities")
    provider = models.CharField(max_length=40)
    identifier = models.CharField(max_length=255)
    profile_data = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(RecordedModel.Meta):
        verbose_name_plural = "linked identities"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "provider", "identifier"], name="identity_linkedidentity_identifier_unique"),
        ]
        # Passwordless logins find the identity by the verified address.
        indexes = [
            models.Index("connection", Lower(KT("profile_data__email")), name="identity_linkedidentity_email"),
            models.Index("connection", KT("profile_data__phone_number"), name="identity_linkedidentity_phone"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.provider}|{self.identifier}"

    def root(self) -> tuple[type[models.Model], Any]:
        return User, self.user_id


class PasswordCredential(models.Model):
    """The password hash of a database user. It is in its own row, because a login may store a new hash: in the row of the user, this would
    be recorded as a change of the profile."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="password_credential", primary_key=True)
    # In the format of Django's hashers. Imported hashes are longer.
    password_hash = models.TextField()
    changed_at = models.DateTimeField(auto_now=True)
    # The time is about the present password only, so a new password clears it.
    leak_told_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When the user was notified that the password is in a breach."
    )

    def __str__(self) -> str:
        return f"password of user {self.pk}"


class FormerPassword(models.Model):
    """A former password of a user, stored if the connection refuses reuse."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    password_hash = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"former password of user {self.user_id}"
