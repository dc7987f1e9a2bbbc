"""Requests that wait for people, kept under a handle that the pages carry and bound to the browser that began them.

A request is not used up by its answer: going back to its page, or pressing a button twice, asks the same once more. What was
found out on its pages counts for one answer only.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from authapi.failures import Case, RequestRefused
from authapi.models import AuthorizationRequest, Client, Session
from authapi.protocols.oauth.parameters import Parameters
from foundation.secrets.random_secrets import digest_of, new_secret

# Under which name the progress of a request keeps the organization that was chosen.
CHOSEN = "organization"
_LONGEST_HANDLE = 64
_PRUNED_AT_ONCE = 10_000


def keep(*, client: Client, parameters: Parameters, browser: str) -> tuple[AuthorizationRequest, str]:
    """Keep a checked request; return its row and its handle."""
    handle = new_secret()
    row = AuthorizationRequest(
        tenant_id=client.tenant_id,
        digest=digest_of(handle),
        browser_digest=digest_of(browser),
        client=client,
        parameters=dict(parameters.values),
        expires_at=timezone.now() + timedelta(seconds=settings.AUTHORIZATION_REQUEST_SECONDS),
    )
    row.save(force_insert=True)
    return row, handle


def waiting_request(*, tenant_id: str, handle: str, browser: str) -> AuthorizationRequest:
    """Return the request of a handle. Raises `RequestRefused` when there is none any more, or it is another browser's."""
    if not handle or len(handle) > _LONGEST_HANDLE:
        raise RequestRefused(Case.REQUEST_EXPIRED)
    rows = AuthorizationRequest.objects.of(tenant_id).select_related("client", "session")
    row = rows.filter(digest=digest_of(handle), expires_at__gt=timezone.now()).first()
    if row is None:
        raise RequestRefused(Case.REQUEST_EXPIRED)
    if not browser or row.browser_digest != digest_of(browser):
        # Somebody was sent the address of a login that another person began (OpenID Connect Core 1.0, 3.1.2.1: CSRF).
        raise RequestRefused(Case.FOREIGN_BROWSER)
    return row


def new_handle(row: AuthorizationRequest) -> str:
    """Give a request another handle, for whoever comes back to it without knowing its own."""
    handle = new_secret()
    row.digest = digest_of(handle)
    row.save(update_fields=["digest"])
    return handle


def note_progress(row: AuthorizationRequest, **progress: bool | str) -> None:
    """Remember what a page has found out."""
    row.progress = {**row.progress, **progress}
    row.save(update_fields=["progress", "session"])


def bind(row: AuthorizationRequest, session: Session) -> None:
    """Let what the pages find out from now on count for this session; what another one's user did is forgotten. Saves nothing."""
    if row.session_id == session.pk:
        return
    # An organization may be named before anybody is known.
    kept = {CHOSEN: row.progress[CHOSEN]} if row.session_id is None and CHOSEN in row.progress else {}
    row.session, row.progress = session, kept


def begin_anew(row: AuthorizationRequest) -> None:
    """Forget what the pages have found out: it has led to an answer."""
    row.session = None
    row.progress = {}
    row.save(update_fields=["progress", "session"])


def prune_requests() -> int:
    """Drop the requests of every tenant that nobody can finish any more; return how many."""
    over = AuthorizationRequest.all_tenants.filter(expires_at__lte=timezone.now()).values("pk")[:_PRUNED_AT_ONCE]
    return AuthorizationRequest.all_tenants.filter(pk__in=over).delete()[0]
