"""Reads for which API a token is requested: `audience`, or `resource` (RFC 8707) if the tenant accepts this parameter (contract, 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.grants.entitlements import resource_of
from authapi.tenant_settings import sign_in_settings
from authapi.token_request import TokenRequest
from authapi.tokens.audiences import is_userinfo_audience
from authapi.tokens.keys import trust

RESOURCE = "resource"
_LONGEST = 600


def audience_of(request: TokenRequest) -> str | None:
    """Return the audience in a token request: the value of `audience`, or the API in `resource`. Raises `RequestRefused`."""
    audience = request.text("audience")
    if audience is not None or RESOURCE not in request.form or not sign_in_settings(request.host.tenant_id).reads_resource:
        return audience
    sent = request.form[RESOURCE]
    return named_target(request.host.tenant_id, sent if isinstance(sent, list) else [sent])


def named_target(tenant_id: str, resources: Sequence[object]) -> str:
    """Return the one API that the values of `resource` name.

    Raises `RequestRefused` for several values, and for a value that names no API of the tenant.
    """
    if len(set(map(str, resources))) != 1:
        raise target_refused("A token is for one API: send one resource.")
    target = str(resources[0])
    if not _is_address(target):
        raise target_refused("The resource must be an absolute address without a fragment.")
    if is_userinfo_audience(target, trust.get(tenant_id).hosts):
        return target
    try:
        resource_of(tenant_id, target)
    except RequestRefused as error:
        raise target_refused("The resource is not an API of this tenant.") from error
    return target


def target_refused(reason: str) -> RequestRefused:
    return RequestRefused(OAuthCase.INVALID_TARGET, reason=reason)


def _is_address(target: str) -> bool:
    """Tell whether a text may be a resource (RFC 8707, 2): an absolute URI, including `urn:`."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return False
    return len(target) <= _LONGEST and bool(parts.scheme) and "#" not in target and target.isprintable() and " " not in target
