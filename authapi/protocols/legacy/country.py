"""`GET /user/geoloc/country`: where the browser is, for forms that offer the calling code of a country.

This service knows no places. An edge in front may say so in a header (`COUNTRY_HEADER`). It tells a caller about that caller only, so
it does not matter who has set it.
"""

from __future__ import annotations

import re

from django.conf import settings

from authapi.protocols.legacy.requests import LegacyRequest, Reply
from authapi.protocols.legacy.token_replies import NO_STORE

# ISO 3166-1 alpha-2. Edges say XX for what they do not know.
_COUNTRY = re.compile(r"[A-Z]{2}")
_UNKNOWN = "XX"


def country(request: LegacyRequest) -> Reply:
    """Return the country as far as the edge has told it, and the address."""
    name: str = settings.COUNTRY_HEADER
    said = request.headers.get(name.lower(), "").strip().upper() if name else ""
    code = said if _COUNTRY.fullmatch(said) and said != _UNKNOWN else None
    return Reply({"ip": request.address, "country_code": code}, headers=NO_STORE)
