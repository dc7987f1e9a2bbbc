"""`GET /user/geoloc/country`: the country of the browser, for forms that offer the calling code of the country.

A proxy in front of the service may set the country in a header. The answer is about the caller only, so a forged header does no harm.
"""

from __future__ import annotations

from authapi.edge.countries import country_in
from authapi.protocols.legacy.requests import LegacyRequest, Reply
from authapi.protocols.legacy.token_replies import NO_STORE


def country(request: LegacyRequest) -> Reply:
    """Return the country that the proxy reports, if known, and the IP address."""
    return Reply({"ip": request.address, "country_code": country_in(request.headers)}, headers=NO_STORE)
