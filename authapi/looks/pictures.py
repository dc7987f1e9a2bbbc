"""Pictures that staff upload: what is taken, and how it is written anew, so that nothing of the sent file is served. Pure.

A picture is decoded and encoded again: what else stood in the file, such as a script, a page or where a photo was taken, is gone.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from PIL import Image, ImageOps, UnidentifiedImageError

# The body of a request has at most 1 MiB, and the form takes some of it.
MOST_BYTES = 900 * 1024
# A pixel takes four bytes while it is worked on: 64 MiB at most. The header tells the size before anything is decoded.
MOST_PIXELS = 16_000_000
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
_QUALITY = 82
_TOO_LARGE = f"The picture has more than {MOST_PIXELS // 1_000_000} million pixels. Make it smaller."


@dataclass(frozen=True)
class Kind:
    """What a picture is for, and the largest size in which it is kept."""

    name: str
    width: int
    height: int
    is_photo: bool = False


# Logos are shown up to 100 px high, twice that on fine screens.
KINDS: Mapping[str, Kind] = {
    "logo": Kind("logo", 800, 200),
    "favicon": Kind("favicon", 192, 192),
    "background": Kind("background", 1920, 1200, is_photo=True),
}


@dataclass(frozen=True)
class Picture:
    """A picture as it is served."""

    data: bytes
    media_type: str
    ending: str
    width: int
    height: int

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class PictureRefused(Exception):
    """The file is no picture that this service takes."""


def picture_of(sent: bytes, kind: Kind) -> Picture:
    """Return the picture in a file, made no larger than its kind and encoded anew. Raises `PictureRefused` with what to do."""
    if not sent:
        raise PictureRefused("The file is empty. Choose another one.")
    if len(sent) > MOST_BYTES:
        raise PictureRefused(f"The file has more than {MOST_BYTES // 1024} KB. Make the picture smaller.")
    if _is_svg(sent):
        raise PictureRefused("SVG files are not taken, because they can carry scripts. Export the picture as PNG.")
    image = _decoded(sent)
    image.thumbnail((kind.width, kind.height), Image.Resampling.LANCZOS)
    return _encoded(image, kind)


def _decoded(sent: bytes) -> Image.Image:
    """Decode the first frame. The formats are named, so that no other decoder ever sees the file."""
    try:
        with warnings.catch_warnings():
            # Pillow warns of a large picture where this function refuses it.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(sent), formats=_FORMATS)
        if image.width * image.height > MOST_PIXELS:
            raise PictureRefused(_TOO_LARGE)
        image.load()
        upright = ImageOps.exif_transpose(image)
    except UnidentifiedImageError as error:
        raise PictureRefused("This is no picture that can be read. Use PNG, JPEG, WebP or GIF.") from error
    except Image.DecompressionBombError as error:
        raise PictureRefused(_TOO_LARGE) from error
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError) as error:
        # The decoders raise these for files that are cut off or crafted.
        raise PictureRefused("The picture is damaged. Save it again, or choose another one.") from error
    return upright


def _encoded(image: Image.Image, kind: Kind) -> Picture:
    """Encode the pixels alone: a new image has no text, profile or place of the old one."""
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
