"""Creates links from recorded deliveries. Links for accounts that this service did not create are suspects.

An account is proven only if the server answered 201 to a create request of this service. Earlier versions of this service also wrote to
accounts found by a lookup, which may belong to another user with the same name. Links to such accounts authorize no writes until the key of
the account is seen or an administrator confirms the link.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from foundation.database.statements import execute
from foundation.secrets import vault
from provisioning.actions.secrets import open_sealed_secret
from provisioning.actions.setups import Setup
from provisioning.models.actions import SCIM_USER_PROVISIONING
from provisioning.scim.links import server_of
from provisioning.scim.settings import BASE_URL

logger = logging.getLogger(__name__)

# Selects, for each user, the newest write that one version of the action made. The user name is known only if the mapping takes `userName`
# from the e-mail address, and if the log still contains the event. Deliveries that were settled after the next version was deployed are
# excluded, because they may have gone to another server.
_LEARN = """
WITH written AS (
    SELECT DISTINCT ON (d.key) substr(d.key, 6) AS user_id, d.position, d.tenant_id, d.event_type, d.detail ->> 'scim_id' AS remote_id,
        d.detail ->> 'user_id' AS key, d.stream_id, d.key AS lane,
        CASE WHEN %(by_email)s AND e.body IS NOT NULL
            THEN convert_from(e.body, 'UTF8')::jsonb #>> '{data,object,email}' END AS user_name
    FROM provisioning_delivery d JOIN events_eventstream s ON s.id = d.stream_id LEFT JOIN events_event e ON e.id = d.event
    WHERE s.destination_type = 'action' AND s.destination ->> 'action_id' = %(action)s AND d.tenant_id = %(tenant)s
        AND d.state = 'delivered' AND d.key LIKE 'user:%%' AND d.settled_at >= %(since)s AND (%(until)s::timestamptz IS NULL
        OR d.settled_at < %(until)s) AND coalesce(d.detail ->> 'scim_id', '') <> '' AND length(d.detail ->> 'scim_id') <= 512
        AND d.detail ->> 'scim_id' NOT LIKE '%%***%%'
    ORDER BY d.key, d.position DESC
), made AS MATERIALIZED (
    SELECT w.*, (SELECT max(c.position) FROM provisioning_delivery c WHERE c.stream_id = w.stream_id AND c.key = w.lane
        AND c.is_written AND c.state = 'delivered'
        AND c.reason IN ('created', 'created-from-update') AND c.detail ->> 'scim_id' = w.remote_id) AS birth
    FROM written w
)
INSERT INTO provisioning_accountlink (tenant_id, action_id, server, user_id, remote_id, birth, ended, position, user_names, user_name, keys,
    is_keyed, created_there, is_missing, doubt, origin, is_suspect)
SELECT tenant_id, %(action)s, %(server)s, user_id, remote_id, coalesce(birth, 0), CASE WHEN event_type = 'user.deleted' THEN position END,
    position, CASE WHEN user_name IS NULL OR event_type = 'user.deleted' THEN '[]'::jsonb ELSE jsonb_build_array(user_name) END,
    CASE WHEN event_type = 'user.deleted' THEN '' ELSE coalesce(user_name, '') END,
    CASE WHEN key IS NULL OR event_type = 'user.deleted' THEN '[]'::jsonb ELSE jsonb_build_array(key) END, false, '', false, NULL,
    CASE WHEN birth IS NULL THEN 'by name' ELSE 'created' END, birth IS NULL AND event_type <> 'user.deleted'
FROM made WHERE length(user_id) <= 400
ON CONFLICT (action_id, server, user_id) DO NOTHING
"""


def learn_links_of_the_past(actions: Any, versions_of_all: Any) -> int:
    """Insert a link or a suspect for every account that a recorded delivery wrote; return their number. Idempotent.

    Both arguments are querysets of the historical models `Action` and `ActionVersion`.
    """
    learned = 0
    for action in actions.filter(template=SCIM_USER_PROVISIONING).order_by("pk"):
        versions = list(versions_of_all.filter(action_id=action.pk).order_by("number"))
        ends: list[datetime | None] = [version.created_at for version in versions[1:]]
        for version, until in reversed(list(zip(versions, [*ends, None], strict=True))):
            learned += _learned_from(action, version, until)
    return learned


def _learned_from(action: Any, version: Any, until: datetime | None) -> int:
    sealed = {secret["name"]: secret["sealed"] for secret in version.secrets}
    setup = Setup(action.tenant_id, action.pk, action.name, version.template, "", version.options, version.mapping, sealed)
    try:
        server = server_of(open_sealed_secret(setup, BASE_URL))
    except (KeyError, ValueError, vault.SecretUnreadable):
        logger.warning("no links created for version %s of action %s: the server of this version is unknown", version.number, action.pk)
        return 0
    values: dict[str, Any] = {
        "action": str(action.pk),
        "tenant": action.tenant_id,
        "server": server,
        "since": version.created_at if version.number > 1 else datetime(1970, 1, 1, tzinfo=UTC),
        "until": until,
        "by_email": _names_by_email(version.mapping),
    }
    return execute(_LEARN, values)


def _names_by_email(mapping: Any) -> bool:
    """Tell whether the mapping table sets `userName` from the e-mail address."""
    if mapping is None:
        return True
    return any(isinstance(row, dict) and row.get("path") == "userName" and row.get("source") == "email" for row in mapping)
