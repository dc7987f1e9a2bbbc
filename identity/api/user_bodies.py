"""Request bodies for users."""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator, URLValidator
from rest_framework import serializers

from foundation.api.fields import Closed, Email, JsonObject, Switch, Text
from foundation.json_values import RESERVED_APP_METADATA

CONNECTION_ID = RegexValidator(r"^con_[A-Za-z0-9]{16}\Z", "String does not match pattern ^con_[A-Za-z0-9]{16}$")
_PHONE_NUMBER = RegexValidator(r"^\+[0-9]{1,15}\Z", r"String does not match pattern ^\+[0-9]{1,15}$")
_NO_SPACE = RegexValidator(r"^\S+\Z", "String must not hold white space")
_PICTURE = URLValidator(schemes=["http", "https"], message="Object didn't pass validation for format strict-uri")
# Members with which a caller requests a message or selects its texts. They are not stored.
UNSTORED = ("verify_email", "verify_phone_number", "client_id")


class AppMetadata(JsonObject):
    """Metadata that users cannot change themselves. Some names are reserved."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value = super().to_internal_value(data)
        taken = sorted(RESERVED_APP_METADATA & value.keys())
        if taken:
            raise serializers.ValidationError(f"Property names are reserved: {', '.join(taken)}")
        return value


class Profile(Closed):
    """Members of both request bodies: to create and to change a user. Null clears a member."""

    email = Email(required=False, allow_null=True)
    email_verified = Switch(required=False)
    phone_number = Text(required=False, allow_null=True, validators=[_PHONE_NUMBER])
    phone_verified = Switch(required=False)
    username = Text(required=False, allow_null=True, max_length=128)
    password = Text(required=False, allow_null=True, max_length=4096)
    given_name = Text(required=False, allow_null=True, max_length=150)
    family_name = Text(required=False, allow_null=True, max_length=150)
    name = Text(required=False, allow_null=True, max_length=300)
    nickname = Text(required=False, allow_null=True, max_length=300)
    picture = Text(required=False, allow_null=True, max_length=2048, validators=[_PICTURE])
    blocked = Switch(required=False)
    user_metadata = JsonObject(required=False, allow_null=True)
    app_metadata = AppMetadata(required=False, allow_null=True)
    verify_email = Switch(required=False)


class UserToCreate(Profile):
    connection = Text(max_length=128, help_text="Name of the connection.")
    user_id = Text(required=False, max_length=255, validators=[_NO_SPACE], help_text="The id part, without the provider.")


class UserToChange(Profile):
    connection = Text(required=False, max_length=128, help_text="Name of the connection whose identity changes.")
    verify_phone_number = Switch(required=False)
    client_id = Text(required=False, max_length=64)


class UserId(Text):
    """The id of an identity: a text, or a number as some providers send it."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return super().run_validation(str(data) if type(data) is int else data)


class IdentityToLink(Closed):
    """Names the secondary user, by provider and id or by an ID token of the secondary user."""

    provider = Text(required=False, max_length=40)
    user_id = UserId(required=False, max_length=300, help_text="The id of the secondary user, with or without the provider.")
    connection_id = Text(required=False, validators=[CONNECTION_ID])
    link_with = Text(required=False, max_length=16_384, help_text="Refused: name the secondary user by `provider` and `user_id`.")

    def validate(self, members: dict[str, Any]) -> dict[str, Any]:
        missing = {name: "Missing required property" for name in ("provider", "user_id") if name not in members}
        if missing and "link_with" not in members:
            raise serializers.ValidationError(missing)
        return members
