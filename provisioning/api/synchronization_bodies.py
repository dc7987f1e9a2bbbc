"""Request body that starts a synchronization."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from foundation.api.fields import Closed, Switch, Text
from identity.api.job_bodies import WholeNumber
from provisioning.api.synchronization_schemas import MODES
from provisioning.synchronization.plan import DELETION_LIMIT, MOST_PER_SECOND


@extend_schema_field({"type": "string", "pattern": rf"^({DELETION_LIMIT})$", "maxLength": 12})
class DeletionLimit(Text):
    """A number of accounts, or a percentage of the managed accounts; the service layer validates this value with the whole plan."""


class SynchronizationToStart(Closed):
    mode = serializers.ChoiceField(
        MODES,
        required=False,
        help_text="`dry_run` (default) reports what `write` would do; `compare` only reports differences.",
    )
    match = Text(
        required=False,
        max_length=700,
        help_text="Rule that links an account without externalId: userName, emails.value, none, or <SCIM path>=<JMESPath of the user>.",
    )
    rate_per_second = WholeNumber(required=False, min_value=1, max_value=MOST_PER_SECOND)
    enable_stream = Switch(
        required=False,
        help_text="After the synchronization, enable the stream. It begins at the log position before the first user was read.",
    )
    delete_missing = Switch(required=False, help_text="Delete accounts with an externalId of this service whose user no longer exists.")
    deletion_limit = DeletionLimit(
        required=False,
        max_length=12,
        help_text="A number of accounts, or a percentage such as 5%. If more accounts would be deleted, all deletions wait for approval.",
    )
