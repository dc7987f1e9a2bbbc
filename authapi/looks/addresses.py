"""Checks which URLs of pictures and fonts are safe in a style sheet and in a content policy. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

# The path of uploaded pictures on the tenant's host. The name contains the digest, so the picture at a URL never changes.
PICTURES = "/u/pictures/"
LONGEST_ADDRESS = 2048
# The URL has no quotation marks, parentheses, backslashes, spaces or semicolons. So it cannot end a `url("")` in a style sheet, and cannot
# end a directive of a content policy. The URL has no user name, because browsers load no pictures or fonts from URLs with a user name.
ADDRESS = r"https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~%!$&*+,=:@/-]*)?(?:\?[A-Za-z0-9._~%!$&*+,=:@/?-]*)?"
_ADDRESS = re.compile(ADDRESS)
_PICTURE = re.compile(re.escape(PICTURES) + r"[0-9a-f]{64}\.(?:png|jpg)")
_FONT_ENDINGS = (".woff2", ".woff", ".ttf", ".otf")


def is_address(value: str) -> bool:
    """Tell whether `value` is an https URL that is safe in a style sheet and in a content policy."""
    return len(value) <= LONGEST_ADDRESS and _ADDRESS.fullmatch(value) is not None


def is_own_picture(value: str) -> bool:
    """Tell whether `value` is the path of an uploaded picture."""
    return _PICTURE.fullmatch(value) is not None


def is_picture(value: str) -> bool:
    """Tell whether a page may show the picture at `value`."""
    return is_own_picture(value) or is_address(value)


def is_font(value: str) -> bool:
    """Tell whether `value` is the URL of a font file. Return False for the style sheet of a font service."""
    return is_address(value) and urlsplit(value).path.lower().endswith(_FONT_ENDINGS)


def origin_of(value: str) -> str:
    """Return the origin of a picture or a font for the content policy; empty for a file of this service."""
    parts = urlsplit(value)
    return f"{parts.scheme}://{parts.netloc}" if is_address(value) else ""


def picture_path(digest: str, ending: str) -> str:
    """Return the path of an uploaded picture on the tenant's hosts."""
    return f"{PICTURES}{digest}.{ending}"


def digest_in(path: str) -> str:
    """Return the digest in the path of an uploaded picture; empty for any other value."""
    return path.removeprefix(PICTURES).partition(".")[0] if is_own_picture(path) else ""
