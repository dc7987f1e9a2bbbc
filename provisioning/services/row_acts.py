"""Bulk acts on rows that staff select in a list; each act calls the service for a single row."""

from __future__ import annotations

from events.models import EventStream
from identity.services.bulk_acts import BulkAct, deletion_of_rows, register
from provisioning.engine import streams
from provisioning.models import AccountLink, Action
from provisioning.services import account_links, actions

deletion_of_rows(EventStream, lambda row: streams.delete_stream(tenant_id=row.tenant_id, stream_id=row.pk))
deletion_of_rows(Action, lambda row: actions.delete_action(tenant_id=row.tenant_id, action_id=row.pk))


def _confirm_link(row: AccountLink) -> None:
    account_links.confirm_links(tenant_id=row.tenant_id, link_ids=[row.pk])


CONFIRM_LINKS = register(
    BulkAct("confirm", AccountLink, "Confirm selected suspect links", "confirmed", "provisioning.change_accountlink", _confirm_link)
)
