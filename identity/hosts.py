"""Maps the Host of a request to its tenant. Issuers and links come only from this module."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from django.conf import settings

from foundation.memory.ttl_cache import Remembered
from identity.models import CustomDomain, Tenant
from identity.models.tenants import STOPPED

# Room for a name of 253 characters (RFC 1035, 3.1), a final dot, and a port.
LONGEST_AUTHORITY = 260
_REMEMBERED_SECONDS = 1.0
# This prefix and a registered host form an alias. Clients send their certificates to the alias.
_EDGE_ALIAS = "mtls."


@dataclass(frozen=True)
class HostMatch:
    """A registered host and its tenant. `authority` is the host with its port, as the client sent it."""

    tenant_id: str
    status: str
    host: str
    canonical_host: str
    authority: str

    @property
    def is_active(self) -> bool:
        return self.status == "active"

    @property
    def is_stopped(self) -> bool:
        """Whether a move to another installation has stopped the tenant."""
        return self.status in STOPPED

    @property
    def issuer(self) -> str:
        """The issuer of tokens that this host issues, with the trailing slash (OpenID Connect Discovery 1.0, 3)."""
        return f"{scheme()}://{self.authority}/"

    @property
    def base_url(self) -> str:
        """The base URL of the management interface. The description of the interface calls it `{base_url}`."""
        return f"{self.issuer}api/v2"


@dataclass(frozen=True)
class _Registered:
    tenant_id: str
    status: str
    host: str
    canonical_host: str


def scheme() -> str:
    """Return the scheme of all addresses of the service."""
    return "http" if settings.INSECURE_HTTP else "https"


def split_authority(authority: str) -> tuple[str, str]:
    """Split `host[:port]` into the lower-case host without a final dot, and the port. Either may be empty."""
    if authority.startswith("["):
        host, _, rest = authority[1:].partition("]")
        return host.lower(), rest.removeprefix(":")
    host, _, port = authority.partition(":")
    return host.lower().removesuffix("."), port


def is_loopback(host: str) -> bool:
    """Tell whether `host` is `localhost` or a bare loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_platform_host(authority: str) -> bool:
    """Tell whether the admin, the API browser and the metrics answer on this host."""
    host, _ = split_authority(authority)
    return host == settings.PLATFORM_HOST or (is_loopback(settings.PLATFORM_HOST) and is_loopback(host))


def resolve_host(authority: str) -> HostMatch | None:
    """Return the tenant of `authority` (a Host header), or None if no tenant has that host.

    Only verified domains match, with or without the prefix `mtls.`. `localhost` and loopback addresses belong to the tenant that
    `LOCALHOST_TENANT` names. Results are cached for one second per process, so a change takes effect after at most one second. Reads the
    database on a miss.
    """
    # No registered host is longer than this limit. The check keeps long names out of the cache.
    return None if len(authority) > LONGEST_AUTHORITY else matches.get(authority)


def _resolved(authority: str) -> HostMatch | None:
    host, port = split_authority(authority)
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5):
        return None
    if len(host) > 253 or not (host.isascii() and host.isprintable()):
        return None
    found = _registered(host)
    if found is None and host.startswith(_EDGE_ALIAS):
        # RFC 8705, 5: the TLS proxy of the host (its edge) requests client certificates only at this alias. Tokens have the same issuer as
        # at the registered host.
        host = host.removeprefix(_EDGE_ALIAS)
        found = None if is_loopback(host) else _registered(host)
    if found is None:
        return None
    named = f"[{host}]" if ":" in host else host
    return HostMatch(found.tenant_id, found.status, found.host, found.canonical_host, f"{named}:{port}" if port else named)


matches: Remembered[str, HostMatch | None] = Remembered(_resolved, seconds=_REMEMBERED_SECONDS)


def default_address(tenant_id: str) -> str:
    """Return `https://<default domain>` of a tenant, for links in mails: the chosen custom domain, or the canonical domain."""
    chosen = CustomDomain.objects.of(tenant_id).filter(is_default=True, verified_at__isnull=False).values_list("host", flat=True).first()
    return f"{scheme()}://{chosen}" if chosen else canonical_address(tenant_id)


def canonical_address(tenant_id: str) -> str:
    """Return `https://<canonical domain>` of a tenant; empty if it has no domain."""
    host = canonical_host(tenant_id)
    return f"{scheme()}://{host}" if host else ""


def address_beside(authority: str, tenant_id: str) -> str:
    """Return the base URL of a tenant for the reader of a page at `authority`, the checked Host of the request.

    If the host belongs to the tenant, as `localhost` does on a developer's machine, the URL has this host: name servers may not know the
    domain of the tenant. Otherwise the URL has the canonical domain and, if there is one, the port of the page: without a
    proxy, the hosts of all tenants share this port.
    """
    match = resolve_host(authority) if authority else None
    if match is not None and match.tenant_id == tenant_id:
        return match.issuer.removesuffix("/")
    address, (_, port) = canonical_address(tenant_id), split_authority(authority)
    return f"{address}:{port}" if address and port else address


def hosts_of(tenant_id: str) -> frozenset[str]:
    """Return every host whose tokens are valid for this tenant, without ports."""
    hosts = set(CustomDomain.objects.of(tenant_id).filter(verified_at__isnull=False).values_list("host", flat=True))
    if tenant_id == settings.LOCALHOST_TENANT:
        hosts |= {"localhost", "127.0.0.1", "::1"}
    return frozenset(hosts)


def forget_hosts() -> None:
    """Clear the cache of this process, for a change that must take effect at once."""
    matches.clear()


def _registered(host: str) -> _Registered | None:
    if is_loopback(host):
        tenant = Tenant.objects.filter(pk=settings.LOCALHOST_TENANT).first() if settings.LOCALHOST_TENANT else None
        return _Registered(tenant.pk, tenant.status, host, canonical_host(tenant.pk) or host) if tenant else None
    domain = CustomDomain.all_tenants.select_related("tenant").filter(host=host, verified_at__isnull=False).first()
    if domain is None:
        return None
    return _Registered(domain.tenant_id, domain.tenant.status, host, canonical_host(domain.tenant_id) or host)


def canonical_host(tenant_id: str) -> str:
    """Return the tenant's canonical domain, or an empty text."""
    return CustomDomain.objects.of(tenant_id).filter(is_canonical=True).values_list("host", flat=True).first() or ""
