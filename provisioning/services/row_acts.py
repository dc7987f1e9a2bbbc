"""What staff may do to event streams and actions that they chose in a list: each act calls the service of a single row."""

from __future__ import annotations

from events.models import EventStream
from identity.services.bulk_acts import deletion_of_rows
from provisioning import streams
from provisioning.models import Action
from provisioning.services import actions

deletion_of_rows(EventStream, lambda row: streams.delete_stream(tenant_id=row.tenant_id, stream_id=row.pk))
deletion_of_rows(Action, lambda row: actions.delete_action(tenant_id=row.tenant_id, action_id=row.pk))
