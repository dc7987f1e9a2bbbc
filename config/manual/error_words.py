"""What the codes of errors mean and what to do about them, in words. Pure."""

from __future__ import annotations

# `errorCode` of the management interface and of `/events`.
MANAGEMENT: dict[str, str] = {
    "connection_limit": "As many streams of the tenant are open as it may have. Close one, or wait until a vanished one is given up.",
    "cursor_expired": "What follows the cursor is no longer kept. Read the resources again and go on from `X-Events-Cursor`.",
    "inexistent_client": "There is no such client.",
    "inexistent_connection": "There is no such connection.",
    "inexistent_custom_domain": "There is no such custom domain.",
    "inexistent_email_provider": "The tenant has no mail server of its own.",
    "inexistent_email_template": "The tenant has no text of its own for this mail, or the service does not send it.",
    "inexistent_invitation": "There is no such invitation.",
    "inexistent_resource_server": "There is no such API.",
    "inexistent_theme": "There is no such theme, or the tenant has none yet.",
    "inexistent_user": "There is no such user.",
    "insecure_transport": "The service answers over HTTPS only.",
    "insufficient_scope": "The token lacks the scope that the message names.",
    "invalid_body": "A member of the body does not fit, or the body is too large; the message names it.",
    "invalid_cursor": "The cursor was not made for this tenant, or was changed.",
    "invalid_paging": "The list pages by number only so far. Use `take` and `from`.",
    "invalid_query_string": "A query parameter does not fit; the message names it.",
    "invalid_uri": "An id in the path cannot be one.",
    "operation_not_supported": "The request is right in form, but nothing that this service does for this object; with 404 the "
    "service does not have the operation, and the message says why.",
    "tenant_suspended": "The tenant is suspended.",
    "theme_already_exists": "The tenant has its theme already. Change that one.",
    "{database strategy}_idp_error": "A user with this identifier is there already.",
    "unavailable": "The service cannot open a stream now. Wait as long as `Retry-After` says.",
}

# Codes of `error` messages inside an open stream.
STREAM: dict[str, str] = {
    "invalid_cursor": "Reserved; a bad cursor is refused before the stream opens.",
    "cursor_expired": "Read the resources again and go on from `X-Events-Cursor`.",
    "timeout": "Reconnect with the last offset.",
    "payload_too_large": "Reserved; a change that is too large is refused when it is written.",
    "processing_error": "Reconnect with the last offset; tell the operator if it comes again at the same place.",
    "connection_timeout": "Nothing is wrong unless the message says so: reconnect with the last offset.",
}

# Why an action skipped an event.
SKIPS: dict[str, str] = {
    "already gone": "The destination had deleted the user before.",
    "connection not allowed": "The user is of a connection that the action does not provision.",
    "duplicate delivery": "The destination has the user already when the creation comes.",
    "malformed event": "The event has no type or no object.",
    "missing externalId": "The mapping gives the user no `externalId`, so no account can be told to be this user's.",
    "missing userName": "The mapping gives the user no `userName`, which SCIM demands.",
    "no user to delete": "The destination does not know the user.",
    "older than the account": "The event is older than the account that is linked to the user, or no newer than its deletion: writing it "
    "would bring back an old state.",
    "no user to update": "The destination does not know the user, and the action may not create one on an update (*upsert* is off).",
    "outside the scope": "The expression that says which users the action is about leaves this one out.",
    "test event": "A test event is never sent to a SCIM server.",
    "unsupported type": "The action has nothing to do for this type.",
}

# What a delivery does next, by the kind of its failure.
FAILURES: dict[str, str] = {
    "action": "Tried again after the delays of `DELIVERY_RETRY_DELAYS`, then a dead letter.",
    "transient": "Tried again; many in a row hold the stream until the destination answers.",
    "configuration": "Tried again; many in a row hold the stream until somebody mends address, credentials or rights.",
    "data": "Tried again, then a dead letter; it is redelivered once the user or the mapping has changed.",
    "shape": "Tried again, then a dead letter: what the answer means is not known.",
    "misconfigured": "The stream is held until the action is complete, and loses nothing.",
}
