"""Refreshes stored metadata of providers: finds the documents that must be fetched again, and fetches one document for each call."""

from __future__ import annotations

from django.utils import timezone

from authapi.models import ProviderMetadata
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.provider_metadata import Reader, fetch, put_off
from authapi.upstream.saml import connections as saml_connections
from authapi.upstream.saml.metadata import ProviderMetadata as Document
from authapi.upstream.saml.metadata import read_metadata
from authapi.upstream.saml.options import STRATEGIES
from authapi.upstream.wsfed import login as wsfed_login
from authapi.upstream.wsfed.metadata import read_federation_metadata
from authapi.upstream.wsfed.options import is_wsfed
from identity.models import Connection
from identity.stopped_tenants import of_running_tenants

REFRESH = "authapi.refresh_provider_metadata"
_AT_ONCE = 500


def source_of(connection: Connection) -> tuple[str, Reader] | None:
    """Return the metadata address of a connection's provider, and the parser of the document; None if the service fetches no metadata.

    Raises `UpstreamFailed` for invalid options.
    """
    if connection.strategy in STRATEGIES:
        options = saml_connections.options_of(connection)
        is_fetched = options.metadata_url and not options.metadata_xml
        return (options.metadata_url, read_metadata) if is_fetched else None
    if is_wsfed(connection.strategy, connection.options):
        named = wsfed_login.options_of(connection)
        return (named.metadata_url, read_federation_metadata) if named.metadata_url and not named.metadata_xml else None
    return None


def due_metadata() -> list[int]:
    """Return the row ids of at most `_AT_ONCE` documents of all tenants that must be fetched again, longest overdue first."""
    due = of_running_tenants(ProviderMetadata.all_tenants.filter(due_at__lte=timezone.now())).order_by("due_at")
    return list(due.values_list("pk", flat=True)[:_AT_ONCE])


def refresh(row_id: int) -> bool:
    """Fetch one document if it is still due; tell whether this call fetched it. If calls run concurrently, only one of them fetches the
    document."""
    # The worker knows only the id of the row, and not its tenant. So this query is not limited to one tenant.
    due = of_running_tenants(ProviderMetadata.all_tenants.filter(pk=row_id, due_at__lte=timezone.now()))
    row = due.select_related("connection").first()
    if row is None:
        return False
    try:
        source = source_of(row.connection)
    except UpstreamFailed as failed:
        # An older version of the service has accepted these options.
        put_off(row, failed.detail or failed.failure.description)
        return False
    if source is None:
        row.delete()
        return False
    try:
        return fetch(row.connection, *source) is not None
    except UpstreamFailed:
        # If the error is from `fetch`, it is stored in the row, and the admin shows it.
        return False


def fetch_now(connection: Connection) -> Document | None:
    """Fetch the metadata at once, because an administrator has changed the provider.

    Raises `UpstreamFailed`. Return None if there is no metadata address, or if another process is fetching the document.
    """
    source = source_of(connection)
    return fetch(connection, *source, is_urgent=True) if source is not None else None
