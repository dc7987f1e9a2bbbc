"""Checks and re-encodes pictures that staff upload, so that no byte of the uploaded file is served. Pure.

A picture is decoded and encoded again. The new encoding omits other content of the file, such as a script, a page or the location of a
photo.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from PIL import Image, ImageOps, UnidentifiedImageError

# Maximum size of an uploaded file. A request body is limited to 1 MiB and also contains the other fields of the form.
MOST_BYTES = 900 * 1024
# Maximum number of pixels. A decoded pixel takes four bytes, so with this limit a decoded picture takes at most 64 MB. The header of the
# file contains the size, so the size is checked before decoding.
MOST_PIXELS = 16_000_000
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
_QUALITY = 82
_TOO_LARGE = f"The picture has more than {MOST_PIXELS // 1_000_000} million pixels. Make it smaller."


@dataclass(frozen=True)
class Kind:
    """The purpose of a picture, and its maximum size in pixels."""

    name: str
    width: int
    height: int
    is_photo: bool = False


# Logos are shown up to 100 px high. High-resolution screens need twice as many pixels.
KINDS: Mapping[str, Kind] = {
    "logo": Kind("logo", 800, 200),
    "favicon": Kind("favicon", 192, 192),
    "background": Kind("background", 1920, 1200, is_photo=True),
}


@dataclass(frozen=True)
class Picture:
    """A re-encoded picture."""

    data: bytes
    media_type: str
    ending: str
    width: int
    height: int

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class PictureRefused(Exception):
    """This service does not accept the file as a picture."""


def picture_of(sent: bytes, kind: Kind) -> Picture:
    """Return the picture in a file, re-encoded and not larger than its kind allows. Raises `PictureRefused` with a text for the user."""
    if not sent:
        raise PictureRefused("The file is empty. Choose another file.")
    if len(sent) > MOST_BYTES:
        raise PictureRefused(f"The file has more than {MOST_BYTES // 1024} KB. Make the picture smaller.")
    if _is_svg(sent):
        raise PictureRefused("SVG files are not accepted, because they can contain scripts. Export the picture as PNG.")
    image = _decoded(sent)
    image.thumbnail((kind.width, kind.height), Image.Resampling.LANCZOS)
    return _encoded(image, kind)


def _decoded(sent: bytes) -> Image.Image:
    """Decode the first frame. Only the decoders of the accepted formats read the file."""
    try:
        with warnings.catch_warnings():
            # For a large picture, Pillow only gives a warning. This function turns the warning into a refusal.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(sent), formats=_FORMATS)
        if image.width * image.height > MOST_PIXELS:
            raise PictureRefused(_TOO_LARGE)
        image.load()
        upright = ImageOps.exif_transpose(image)
    except UnidentifiedImageError as error:
        raise PictureRefused("The file is not a readable picture. Use PNG, JPEG, WebP or GIF.") from error
    except Image.DecompressionBombError as error:
        raise PictureRefused(_TOO_LARGE) from error
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError) as error:
        # Decoders raise these errors for truncated or crafted files.
        raise PictureRefused("The picture is damaged. Save the picture again, or choose another picture.") from error
    return upright


def _encoded(image: Image.Image, kind: Kind) -> Picture:
    """Encode only the pixels: a new image has no text, color profile or location of the old image."""
    if kind.is_photo:
        pixels = Image.new("RGB", image.size, "white")
        rgba = image.convert("RGBA")
        pixels.paste(rgba, mask=rgba.getchannel("A"))
        return _written(pixels, "JPEG", "image/jpeg", "jpg", quality=_QUALITY, optimize=True, progressive=True)
    rgba = image.convert("RGBA")
    pixels = Image.new("RGBA", rgba.size)
    pixels.paste(rgba)
    return _written(pixels, "PNG", "image/png", "png", optimize=True)


def _written(pixels: Image.Image, encoder: str, media_type: str, ending: str, **options: object) -> Picture:
    out = io.BytesIO()
    pixels.save(out, encoder, **options)
    return Picture(out.getvalue(), media_type, ending, pixels.width, pixels.height)


def _is_svg(sent: bytes) -> bool:
    beginning = sent[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return beginning.startswith((b"<svg", b"<?xml")) or (beginning.startswith(b"<!") and b"<svg" in beginning)
