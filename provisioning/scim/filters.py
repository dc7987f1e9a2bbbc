"""SCIM filters: one attribute equal to one string. Pure."""

from __future__ import annotations

import json
from urllib.parse import quote

REDACTED = "***"


def equals(attribute: str, value: str) -> str:
    """Return `attribute eq "value"`.

    The value is a JSON string (RFC 7644, 3.4.2.2), so quotes, backslashes and control characters are escaped. Without escapes, a
    user id could end the string and match other users. Raises `ValueError` for a lone surrogate.
    """
    value.encode()
    return f"{attribute} eq {json.dumps(value, ensure_ascii=False)}"


def query(filter_text: str) -> str:
    """Return the query string of a lookup, with every reserved character of the filter percent-encoded."""
    return "filter=" + quote(filter_text, safe="")
