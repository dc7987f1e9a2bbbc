"""Addresses of pictures and fonts: which may stand in a style sheet and in a content policy. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

# Where a tenant's own host serves the pictures that were uploaded. The name holds the digest, so an address never changes its picture.
PICTURES = "/u/pictures/"
LONGEST_ADDRESS = 2048
# No quotation mark, parenthesis, backslash, space or semicolon: such an address can end neither a `url("")` of a style sheet nor a
# directive of a content policy. A user name is no part of it, because browsers load nothing from such addresses.
ADDRESS = r"https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~%!$&*+,=:@/-]*)?(?:\?[A-Za-z0-9._~%!$&*+,=:@/?-]*)?"
_ADDRESS = re.compile(ADDRESS)
_PICTURE = re.compile(re.escape(PICTURES) + r"[0-9a-f]{64}\.(?:png|jpg)")
_FONT_ENDINGS = (".woff2", ".woff", ".ttf", ".otf")


def is_address(value: str) -> bool:
    """Tell whether `value` is an https address that is safe in a style sheet and in a content policy."""
    return len(value) <= LONGEST_ADDRESS and _ADDRESS.fullmatch(value) is not None


def is_own_picture(value: str) -> bool:
    """Tell whether `value` is the path of an uploaded picture."""
    return _PICTURE.fullmatch(value) is not None


def is_picture(value: str) -> bool:
    """Tell whether a page may show the picture at `value`."""
    return is_own_picture(value) or is_address(value)


def is_font(value: str) -> bool:
    """Tell whether `value` names a font file elsewhere; a style sheet of a font service is none."""
    return is_address(value) and urlsplit(value).path.lower().endswith(_FONT_ENDINGS)


def origin_of(value: str) -> str:
    """Return where a picture or a font is loaded from, for the content policy; empty for our own."""
    parts = urlsplit(value)
    return f"{parts.scheme}://{parts.netloc}" if is_address(value) else ""


def picture_path(digest: str, ending: str) -> str:
    """Return where the hosts of a tenant serve an uploaded picture."""
    return f"{PICTURES}{digest}.{ending}"


def digest_in(path: str) -> str:
    """Return the digest in the path of an uploaded picture; empty for every other value."""
    return path.removeprefix(PICTURES).partition(".")[0] if is_own_picture(path) else ""
