"""Requests to a provider, to log a user in or to end a login (SAML Core 2.0, 3.4.1 and 3.7). Pure: ids and the clock are arguments."""

from __future__ import annotations

from datetime import datetime

from authapi.upstream.saml.claims import NameId
from authapi.upstream.saml.facts import wire_instant
from authapi.upstream.saml.options import POST
from authapi.upstream.saml.provider import SamlProvider
from authapi.upstream.saml.reading import saml, samlp
from authapi.upstream.saml.statuses import PREFIX, SUCCESS
from authapi.xml.building import element
from authapi.xml.parsing import Element


def login_request(
    provider: SamlProvider, *, request_id: str, acs: str, now: datetime, is_forced: bool = False, contexts: tuple[str, ...] = ()
) -> Element:
    """Return an `AuthnRequest`. `is_forced` requests a new login; `contexts` are the requested classes of authentication, best first.

    The request names no format of the NameID, so the provider sends the format that is configured there. A provider would refuse a request
    for a format that it does not support.
    """
    wanted = [element(saml("AuthnContextClassRef"), None, context) for context in contexts]
    return element(
        samlp("AuthnRequest"),
        {
            "ID": request_id,
            "Version": "2.0",
            "IssueInstant": wire_instant(now),
            "Destination": provider.sign_in.address,
            "ProtocolBinding": POST,
            "AssertionConsumerServiceURL": acs,
            "ForceAuthn": "true" if is_forced else None,
        },
        element(saml("Issuer"), None, provider.own_entity_id),
        element(samlp("RequestedAuthnContext"), {"Comparison": "exact"}, *wanted) if wanted else None,
    )


def logout_request(
    provider: SamlProvider, *, destination: str, request_id: str, name_id: NameId, session_index: str, now: datetime
) -> Element:
    """Return a `LogoutRequest` for the login that `name_id` and `session_index` name."""
    return element(
        samlp("LogoutRequest"),
        {"ID": request_id, "Version": "2.0", "IssueInstant": wire_instant(now), "Destination": destination},
        element(saml("Issuer"), None, provider.own_entity_id),
        element(
            saml("NameID"),
            {
                "Format": name_id.format or None,
                "NameQualifier": name_id.name_qualifier or None,
                "SPNameQualifier": name_id.sp_name_qualifier or None,
            },
            name_id.value,
        ),
        element(samlp("SessionIndex"), None, session_index) if session_index else None,
    )


def logout_response(
    provider: SamlProvider, *, destination: str, response_id: str, in_response_to: str, now: datetime, is_complete: bool = True
) -> Element:
    """Return a `LogoutResponse`. If `is_complete` is false, its status reports a partial logout."""
    partial = None if is_complete else element(samlp("StatusCode"), {"Value": f"{PREFIX}PartialLogout"})
    return element(
        samlp("LogoutResponse"),
        {
            "ID": response_id,
            "Version": "2.0",
            "IssueInstant": wire_instant(now),
            "Destination": destination,
            "InResponseTo": in_response_to,
        },
        element(saml("Issuer"), None, provider.own_entity_id),
        element(samlp("Status"), None, element(samlp("StatusCode"), {"Value": SUCCESS}, partial)),
    )
