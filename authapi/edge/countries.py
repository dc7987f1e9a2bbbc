"""The country of a caller, if a proxy sends it in a header (`COUNTRY_HEADER`). This service has no location data of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.conf import settings

# ISO 3166-1 alpha-2. Proxies send XX for an unknown country.
_COUNTRY = re.compile(r"[A-Z]{2}")
_UNKNOWN = "XX"


def country_in(headers: Mapping[str, str]) -> str | None:
    """Return the country code. None if the proxy has sent no country. The names in `headers` must be in lower case."""
    name: str = settings.COUNTRY_HEADER
    said = headers.get(name.lower(), "").strip().upper() if name else ""
    return said if _COUNTRY.fullmatch(said) and said != _UNKNOWN else None
