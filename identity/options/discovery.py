"""Fetches the metadata that OpenID providers publish, when the options of a connection are written.

Logins do not use this copy. They fetch the metadata again (`authapi.upstream.metadata`), so a provider can change its addresses. The
request uses the checked session, which reaches no private address.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson
from django.conf import settings

from foundation.outbound.outcomes import OutboundError
from foundation.outbound.session import outbound_session
from foundation.outbound.turns import NoTurn, turn
from identity.options.schemas.shared import METADATA

logger = logging.getLogger(__name__)

STRATEGIES = ("oidc", "okta")
# Options whose default is the member of the same name in the provider's metadata.
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri", "end_session_endpoint")
METADATA_OPTION = "oidc_metadata"
WELL_KNOWN = "/.well-known/openid-configuration"
# The longest time in seconds for which a request to write a connection waits for the metadata.
_SECONDS = 3.0
_LARGEST_DOCUMENT = 256 * 1024
_LONGEST_TEXT = 2048
_MOST_ITEMS = 100
_MOST_KEPT_BYTES = 16 * 1024
_SWITCH_NAMES = """
authorization_response_iss_parameter_supported backchannel_logout_session_supported backchannel_logout_supported
backchannel_user_code_parameter_supported claims_parameter_supported frontchannel_logout_session_supported
frontchannel_logout_supported request_parameter_supported request_uri_parameter_supported
require_pushed_authorization_requests require_request_uri_registration require_signed_request_object
tls_client_certificate_bound_access_tokens
"""
_SWITCHES = frozenset(_SWITCH_NAMES.split())


def discovered_metadata(tenant_id: str, strategy: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known members of a provider's metadata. Returns an empty object if the request fails or the metadata is of another issuer.

    Waits at most three seconds. Sends no request while another request of the tenant waits for a server that a tenant chose, or while too
    many such requests of this process wait (`turn`). Must not be called inside a transaction.
    """
    address = discovery_address(strategy, options)
    if not address or strategy not in STRATEGIES:
        return {}
    try:
        deadline = time.monotonic() + _SECONDS
        with turn(tenant_id):
            answer = outbound_session().send("GET", address, headers={"Accept": "application/json"}, body=None, deadline=deadline)
        document = orjson.loads(answer.body) if answer.status == 200 and len(answer.body) <= _LARGEST_DOCUMENT else None
    except (NoTurn, OutboundError, ValueError) as error:
        # The address is not logged, because its query may contain a secret.
        logger.info("The metadata of a provider could not be fetched: %s", type(error).__name__)
        return {}
    if not isinstance(document, dict) or not is_expected_issuer(document.get("issuer"), named=_text(options, "issuer"), address=address):
        return {}
    return _kept(document)


def discovery_address(strategy: str, options: Mapping[str, Any]) -> str:
    """Return the URL of the provider's metadata, or an empty text."""
    issuer = _text(options, "issuer")
    domain = _text(options, "domain") if strategy == "okta" else ""
    base = issuer or (f"https://{domain}" if domain else "")
    return _text(options, "discovery_url") or (base.rstrip("/") + WELL_KNOWN if base else "")


def is_expected_issuer(issuer: Any, *, named: str, address: str) -> bool:
    """Tell whether metadata from `address` has the expected issuer of the connection.

    OpenID Connect Discovery 1.0, 4.3: the issuer must match exactly. If the connection has only the URL of the metadata, the issuer
    must be the issuer from which that URL is built.
    """
    if not isinstance(issuer, str):
        return False
    return issuer == named if named else address == issuer.rstrip("/") + WELL_KNOWN


def with_endpoints(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for a response. Endpoints that are missing in the options are added from the metadata."""
    metadata = options.get(METADATA_OPTION)
    if not isinstance(metadata, Mapping):
        return dict(options)
    found = {name: metadata[name] for name in ENDPOINTS if options.get(name) is None and isinstance(metadata.get(name), str)}
    return {**options, **found}


def without_endpoints(sent: Mapping[str, Any], *, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return sent options without the endpoints that `with_endpoints` added, because programs send back the options of a response."""
    shown = with_endpoints(stored)
    added = {name for name in ENDPOINTS if stored.get(name) is None and shown.get(name) is not None}
    return {name: value for name, value in sent.items() if name not in added or value != shown[name]}


def _text(options: Mapping[str, Any], name: str) -> str:
    value = options.get(name)
    return value if isinstance(value, str) else ""


def _kept(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members with a known name and the specified type. If the members are too large, return issuer and endpoints only."""
    known = {name: value for name, value in document.items() if name in METADATA.nodes and _fits(name, value)}
    if len(orjson.dumps(known)) <= _MOST_KEPT_BYTES:
        return known
    return {name: value for name, value in known.items() if name == "issuer" or name in ENDPOINTS}


def _fits(name: str, value: Any) -> bool:
    if name in _SWITCHES:
        return isinstance(value, bool)
    if name.endswith(("_supported", "_locales")):
        return isinstance(value, list) and len(value) <= _MOST_ITEMS and all(_is_short(item) for item in value)
    if not _is_short(value):
        return False
    return name == "service_documentation" or not name.endswith(("_endpoint", "_uri")) or _is_web_address(value)


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT and value.isprintable()


def _is_web_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    is_allowed = parts.scheme == "https" or (parts.scheme == "http" and settings.OUTBOUND_ALLOW_HTTP)
    return is_allowed and bool(parts.hostname) and "@" not in parts.netloc and "\\" not in value and " " not in value
