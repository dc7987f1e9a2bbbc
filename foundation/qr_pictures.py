"""QR codes for pages."""

from __future__ import annotations

import segno
from django.utils.safestring import SafeString, mark_safe


def qr_picture(text: str) -> SafeString:
    """Return the QR code of a text as SVG without script and style: dark on white in every color scheme, as cameras require."""
    drawn = segno.make(text, error="m", micro=False).svg_inline(border=4, dark="#000", light="#fff", omitsize=True)
    # No escaping is needed: the SVG contains only numbers of the drawing, not the text.
    return mark_safe(drawn)  # noqa: S308  # nosec B308 B703
