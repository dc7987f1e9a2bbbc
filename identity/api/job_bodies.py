"""Request bodies that start jobs."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from foundation.api.bodies import FormMembers
from foundation.api.fields import Closed, ListOf, Switch, Text
from foundation.api.multipart import Upload
from identity.api.relation_bodies import connection_id, organization_id
from identity.api.user_bodies import UserId
from identity.exports.export_fields import LONGEST_PATH, MOST_FIELDS
from identity.exports.exports import CSV, JSON


class WholeNumber(serializers.IntegerField):
    """An integer; in a form, the digits of an integer as text. Refuses `true` and `5.0`."""

    default_error_messages = {"invalid": "Expected type integer"}

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int and not isinstance(getattr(self.root, "initial_data", None), FormMembers):
            self.fail("invalid")
        return super().to_internal_value(data)


class UsersToImport(Closed):
    users = Upload(help_text="A JSON array of users, or one JSON object per line.")
    connection_id = connection_id()
    upsert = Switch(required=False, help_text="Overwrite users that exist. If false, the rows of these users count as failed.")
    external_id = Text(required=False, allow_blank=True, max_length=500)
    send_completion_email = Switch(required=False, help_text="Mail a summary to the administrators of the tenant.")


class ExportedField(Closed):
    name = Text(max_length=LONGEST_PATH, help_text="A path such as identities[0].connection or app_metadata.plan.")
    export_as = Text(required=False, max_length=LONGEST_PATH)


class UsersToExport(Closed):
    connection_id = connection_id(required=False, allow_null=True)
    format = serializers.ChoiceField((JSON, CSV), required=False, allow_null=True)
    limit = WholeNumber(required=False, allow_null=True, min_value=1, max_value=2**31 - 1)
    fields = ListOf(child=ExportedField(), required=False, allow_null=True, max_length=MOST_FIELDS)  # type: ignore[assignment]


class VerifiedIdentity(Closed):
    user_id = UserId(max_length=300, help_text="The id of the identity, with or without the provider.")
    provider = Text(max_length=40)


class MailToVerify(Closed):
    user_id = Text(max_length=300)
    client_id = Text(required=False, max_length=64)
    identity = VerifiedIdentity(required=False)
    organization_id = organization_id(required=False)
