"""`GET /user/geoloc/country`: where the browser is, for forms that offer the calling code of a country.

An edge in front may say so in a header. It tells a caller about that caller only, so it does not matter who has set it.
"""

from __future__ import annotations

from authapi.edge.countries import country_in
from authapi.protocols.legacy.requests import LegacyRequest, Reply
from authapi.protocols.legacy.token_replies import NO_STORE


def country(request: LegacyRequest) -> Reply:
    """Return the country as far as the edge has told it, and the address."""
    return Reply({"ip": request.address, "country_code": country_in(request.headers)}, headers=NO_STORE)
