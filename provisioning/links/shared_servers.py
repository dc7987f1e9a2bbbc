"""Finds servers to which several enabled streams of a tenant write."""

from __future__ import annotations

from events.models import EventStream
from foundation.secrets import vault
from provisioning.actions.secrets import open_sealed_secret
from provisioning.actions.setups import version_setup
from provisioning.models.actions import SCIM_USER_PROVISIONING, ActionVersion
from provisioning.scim.links import server_of
from provisioning.scim.settings import BASE_URL


def servers_of_other_streams(*, tenant_id: str, stream_id: str) -> frozenset[str]:
    """Return the digests of the SCIM servers to which other enabled streams of the tenant deliver."""
    others = EventStream.objects.of(tenant_id).filter(destination_type="action", status=EventStream.Status.ENABLED).exclude(pk=stream_id)
    action_ids = {destination["action_id"] for destination in others.values_list("destination", flat=True)}
    if not action_ids:
        return frozenset()
    versions = ActionVersion.objects.filter(action_id__in=action_ids, action__tenant_id=tenant_id, is_deployed=True)
    found = set()
    for version in versions.filter(template=SCIM_USER_PROVISIONING).select_related("action"):
        try:
            found.add(server_of(open_sealed_secret(version_setup(version), BASE_URL)))
        except (KeyError, ValueError, vault.SecretUnreadable):
            # An action whose URL cannot be decrypted cannot run, so it writes to no server.
            continue
    return frozenset(found)
