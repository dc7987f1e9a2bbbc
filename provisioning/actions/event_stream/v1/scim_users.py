"""The template `scim-user-provisioning`: user events become SCIM requests against one server."""

from __future__ import annotations

import time
from typing import Any

from provisioning.actions.event_stream.v1.objects import Api, Event, Message
from provisioning.actions.scope import OUTSIDE, is_in_scope
from provisioning.mapping.table import MappingRefused, MappingRow, parse_table
from provisioning.runs.failures import Misconfigured
from provisioning.runs.results import Result, skipped
from provisioning.scim.client import ScimClient
from provisioning.scim.links import server_of
from provisioning.scim.options import OptionsRefused, ScimOptions, parse_options
from provisioning.scim.settings import ScimSettings, parse_settings
from provisioning.scim.transport import ScimTransport
from provisioning.scim.user_sync import Circumstances, UserSync

# The lock expires this many seconds after the deadline of the run, because the last request of the run may end after the deadline.
_LOCK_MARGIN_SECONDS = 5.0


class ScimUserProvisioning:
    """Creates, updates and deletes users on a SCIM 2.0 server."""

    def on_execute_event_stream(self, event: Event, api: Api) -> Result:
        """Process one event. Raise a subclass of `ActionError` if the event must be delivered again.

        1. Read the secrets. A missing required secret holds the stream; the event stays in its lane.
        2. Skip an event that has no type or no object. Log a warning with the names of its top-level members.
        3. Skip a test event, which must never cause a request.
        4. Skip an event of a connection outside `SCIM_CONNECTION_ALLOWLIST`.
        5. Ignore an event type that is not about users.
        6. Skip every event of a user outside the scope, even a deletion. No request is sent.
        7. Otherwise create, update or delete the account on the server, and write one log line with the result.
        """
        settings = parse_settings(event.secrets, allow_http=api.run.allow_http)
        if (skip := self._not_processed(event.message, settings, api)) is not None:
            return skip
        options, table = _set_up(api.run.options, api.run.mapping)
        if not is_in_scope(event.message.data.object or {}, options.scope):
            return _outside(event.message, api)
        result = self._synchronized(event.message, settings, options, table, api)
        api.log("info", "sync ok", **_about(event.message), action=result.reason, scim_id=result.detail.get("scim_id"))
        return result

    # The name of the entry point in the spec.
    onExecuteEventStream = on_execute_event_stream  # noqa: N815

    def _not_processed(self, message: Message, settings: ScimSettings, api: Api) -> Result | None:
        if not message.type or message.data.object is None:
            api.log("warning", "malformed event", keys=", ".join(message.keys))
            return skipped("malformed event")
        about = _about(message)
        if message.purpose == "test":
            api.log("info", "test event skipped", **about)
            return skipped("test event")
        connection = message.data.connection_name
        if not settings.allows(connection):
            api.log("info", "connection not allowed", **about, connection=connection)
            return skipped("connection not allowed", connection=connection)
        if message.type not in ("user.created", "user.updated", "user.deleted"):
            api.log("info", "unsupported type ignored", type=message.type, event_id=message.id)
            return skipped("unsupported type")
        return None

    def _synchronized(
        self, message: Message, settings: ScimSettings, options: ScimOptions, table: tuple[MappingRow, ...], api: Api
    ) -> Result:
        """Apply the event to the server; a lock lets only one stream of the tenant at a time write to the account of the user."""
        run, document = api.run, message.data.object or {}
        user_id, server = str(document.get("user_id", "")), server_of(settings.base_url)
        with run.links.lock(server, user_id, seconds=max(run.deadline - time.monotonic(), 0.0) + _LOCK_MARGIN_SECONDS):
            return self._written(message, settings, options, table, api)

    def _written(self, message: Message, settings: ScimSettings, options: ScimOptions, table: tuple[MappingRow, ...], api: Api) -> Result:
        run, document = api.run, message.data.object or {}
        transport = ScimTransport(
            run.sender,
            settings,
            run.recorder,
            mask=run.mask,
            deadline=run.deadline,
            correlation_id=run.correlation_id,
            pace=run.pace,
        )
        links = run.links.book(server_of(settings.base_url), str(document.get("user_id", "")))
        client = ScimClient(transport, run.recorder, run.capabilities, api.log, links)
        circumstances = Circumstances(
            event_id=message.id,
            is_repetition=run.attempt > 1,
            strategy=message.data.connection_strategy,
            trusted_strategies=run.trusted_strategies,
            allow_named_deletion=run.allow_named_deletion,
        )
        sync = UserSync(client, table, options, api.log, circumstances)
        if message.type == "user.created":
            return sync.created(document)
        return sync.updated(document) if message.type == "user.updated" else sync.deleted(document)


def _set_up(options: Any, mapping: Any) -> tuple[ScimOptions, tuple[MappingRow, ...]]:
    """Parse options and mapping, which were checked on saving. Raises `Misconfigured`, which holds the stream, if they are invalid."""
    try:
        parsed = parse_options(options)
        return parsed, parse_table(mapping, enterprise=parsed.enterprise)
    except (OptionsRefused, MappingRefused) as error:
        raise Misconfigured(str(error)) from error


def _outside(message: Message, api: Api) -> Result:
    """Skip the event. For an update or a deletion, log a warning: the user may have been in the scope earlier, and may have an account on
    the server."""
    api.log("info" if message.type == "user.created" else "warning", OUTSIDE, **_about(message))
    return skipped(OUTSIDE, user_id=(message.data.object or {}).get("user_id"))


def _about(message: Message) -> dict[str, Any]:
    return {"type": message.type, "event_id": message.id, "user_id": (message.data.object or {}).get("user_id")}
