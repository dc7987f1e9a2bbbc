"""The country of a caller, where an edge in front names it in a header (`COUNTRY_HEADER`). This service knows no places itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.conf import settings

# ISO 3166-1 alpha-2. Edges say XX for what they do not know.
_COUNTRY = re.compile(r"[A-Z]{2}")
_UNKNOWN = "XX"


def country_in(headers: Mapping[str, str]) -> str | None:
    """Return the code of the country, None where the edge has not told it. The names of the headers are in small letters."""
    name: str = settings.COUNTRY_HEADER
    said = headers.get(name.lower(), "").strip().upper() if name else ""
    return said if _COUNTRY.fullmatch(said) and said != _UNKNOWN else None
