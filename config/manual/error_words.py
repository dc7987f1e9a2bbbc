"""The meaning of error codes and what to do about them, as text. Pure."""

from __future__ import annotations

# `errorCode` of the management interface and of `/events`.
MANAGEMENT: dict[str, str] = {
    "connection_limit": "The tenant has its maximum of open streams. Close a stream, or wait until the lease of a broken stream expires.",
    "cursor_expired": "The events after the cursor were pruned. Read the resources again and resume from `X-Events-Cursor`.",
    "inexistent_authentication_method": "The user does not have the requested factor, passkey or password.",
    "inexistent_client": "The client does not exist.",
    "inexistent_connection": "The connection does not exist.",
    "inexistent_custom_domain": "The custom domain does not exist.",
    "inexistent_email_provider": "The tenant has not configured a mail server.",
    "inexistent_email_template": "The tenant has not customized this mail, or the service does not send it.",
    "inexistent_enrollment": "No user of the tenant has this second factor.",
    "inexistent_invitation": "The invitation does not exist.",
    "inexistent_resource_server": "The API does not exist.",
    "inexistent_token_exchange_profile": "The token exchange profile does not exist.",
    "inexistent_theme": "The theme does not exist, or the tenant has no theme yet.",
    "inexistent_user": "The user does not exist.",
    "insecure_transport": "The service answers over HTTPS only.",
    "insufficient_scope": "The token lacks the scope that the message names.",
    "invalid_body": "A member of the body is invalid (the message names the member), or the body is too large.",
    "invalid_cursor": "The cursor was not issued to this tenant, or was altered.",
    "invalid_paging": "The page is beyond the limit of page numbers. Use `take` and `from`.",
    "invalid_query_string": "A query parameter is invalid; the message names the parameter.",
    "invalid_uri": "An id in the path has an invalid form.",
    "operation_not_supported": "The service does not support this request; the message gives the reason. With the status 404, the service "
    "does not have the operation at all.",
    "tenant_suspended": "The tenant is suspended.",
    "theme_already_exists": "The tenant already has a theme. Change the existing theme.",
    "{database strategy}_idp_error": "A user with this identifier already exists.",
    "unavailable": "The service cannot open a stream now. Retry after the time in `Retry-After`.",
}

# Codes of `error` messages inside an open stream.
STREAM: dict[str, str] = {
    "invalid_cursor": "Reserved; no stream sends it, because an invalid cursor is refused before the stream opens.",
    "cursor_expired": "Read the resources again and resume from `X-Events-Cursor`.",
    "timeout": "Reconnect with the last offset.",
    "payload_too_large": "Reserved; no stream sends it, because a change that is too large is refused when it is written.",
    "processing_error": "Reconnect with the last offset; report it to the operator if it recurs at the same offset.",
    "connection_timeout": "Reconnect with the last offset, unless the message names another cause than a planned end.",
}

# Why an action skipped an event.
SKIPS: dict[str, str] = {
    "already gone": "The destination had already deleted the user.",
    "connection not allowed": "The action does not provision the user's connection.",
    "duplicate delivery": "The destination already has the created user.",
    "malformed event": "The event has no type or no object.",
    "missing externalId": "The mapping yields no `externalId` for the user, so the account of the user cannot be identified.",
    "missing userName": "The mapping yields no `userName` for the user, which SCIM requires.",
    "no user to delete": "The destination has no account of the user.",
    "older than the account": "The event is older than the linked account, or not newer than the deletion of the account: "
    "writing the event would restore an old state.",
    "no user to update": "The destination has no account of the user, and *upsert*, which creates an account on an update, is off.",
    "outside the scope": "The scope expression of the action excludes the user.",
    "test event": "A test event is never sent to a SCIM server.",
    "unsupported type": "The action has nothing to do for this type.",
}

# The next step of a delivery, by the kind of its failure.
FAILURES: dict[str, str] = {
    "action": "The delivery is attempted again after the delays of `DELIVERY_RETRY_DELAYS`, and then becomes a dead letter.",
    "transient": "The delivery is attempted again; many consecutive failures hold the stream until the destination answers.",
    "configuration": "The delivery is attempted again; many consecutive failures hold the stream until an administrator corrects the "
    "URL, credentials or permissions.",
    "data": "The delivery is attempted again, and then becomes a dead letter. Redeliver it after the user or the mapping has changed.",
    "shape": "The delivery is attempted again, and then becomes a dead letter.",
    "misconfigured": "The stream is held until the action is fully configured; no event is lost.",
}
