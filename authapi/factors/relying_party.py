"""The domain for which WebAuthn keys are created: the host of the request."""

from __future__ import annotations

from urllib.parse import urlsplit

from authapi.tenant_settings import sign_in_settings
from identity.factors.ceremonies import RelyingParty
from identity.hosts import HostMatch


def party_of(host: HostMatch, *, apps: tuple[str, ...] = ()) -> RelyingParty:
    """Return the relying party of a host, which accepts the origin of the host and the origins in `apps`."""
    origin = host.issuer.rstrip("/")
    return RelyingParty(urlsplit(origin).hostname or "", sign_in_settings(host.tenant_id).friendly_name or host.tenant_id, origin, apps)
