"""The files that are accepted as pictures, and the parts of a file that are kept."""

from __future__ import annotations

import io
import struct
import zlib

import pytest
from PIL import Image, PngImagePlugin

from authapi.looks.pictures import KINDS, MOST_BYTES, PictureRefused, picture_of

LOGO, BACKGROUND = KINDS["logo"], KINDS["background"]
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def encoded(encoder: str = "PNG", size: tuple[int, int] = (40, 20), mode: str = "RGB", **options: object) -> bytes:
    out = io.BytesIO()
    Image.new(mode, size, "red").save(out, encoder, **options)
    return out.getvalue()


def png_that_says(width: int, height: int) -> bytes:
    """Return a few bytes whose header claims this size of the picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("encoder", ["PNG", "JPEG", "WEBP", "GIF"])
def test_an_accepted_picture_is_encoded_again(encoder: str) -> None:
    picture = picture_of(encoded(encoder), LOGO)
    assert (picture.media_type, picture.ending, picture.width, picture.height) == ("image/png", "png", 40, 20)
    assert picture.data != encoded(encoder)
    with Image.open(io.BytesIO(picture.data)) as image:
        assert image.format == "PNG"


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "empty"),
        (SVG, "SVG"),
        (b"\xef\xbb\xbf  <?xml version='1.0'?>" + SVG, "SVG"),
        (b"<!DOCTYPE html><svg>", "SVG"),
        (b"<!doctype html><script>alert(1)</script>", "not a readable picture"),
        (b"GIF89a" + b"<script>", "picture"),
        (encoded()[:60], "damaged"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "not a readable picture"),
        (encoded("BMP"), "not a readable picture"),
        (encoded("TIFF"), "not a readable picture"),
        (encoded("ICO", size=(32, 32)), "not a readable picture"),
        (encoded("PDF"), "not a readable picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a readable picture"),
        (b"\0" * (MOST_BYTES + 1), "KB"),
        (png_that_says(60_000, 60_000), "pixels"),
        (png_that_says(4_001, 4_000), "pixels"),
        (png_that_says(2_000_000_000, 1), "pixels"),
    ],
)
def test_an_invalid_or_too_large_file_is_refused_with_an_explanation(sent: bytes, words: str) -> None:
    with pytest.raises(PictureRefused, match=words) as refused:
        picture_of(sent, LOGO)
    assert str(refused.value).endswith(".")


def test_texts_inside_a_picture_and_data_after_it_are_removed() -> None:
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Comment", "<script>alert(1)</script>")
    sent = encoded(pnginfo=texts) + b"<html><script>alert(2)</script></html>"
    assert b"alert(1)" in sent
    assert b"script" not in picture_of(sent, LOGO).data
    assert b"script" not in picture_of(sent, BACKGROUND).data


def test_a_photo_is_rotated_upright_and_loses_its_location_data() -> None:
    exif = Image.Exif()
    exif[0x010F] = "Secret Camera"
    exif[0x0112] = 6
    exif.get_ifd(0x8825)[1] = "N"
    out = io.BytesIO()
    Image.new("RGB", (40, 20), "red").save(out, "JPEG", exif=exif, icc_profile=b"secret profile")
    picture = picture_of(out.getvalue(), BACKGROUND)
    assert (picture.width, picture.height) == (20, 40)
    assert b"Secret" not in picture.data
    assert b"profile" not in picture.data
    with Image.open(io.BytesIO(picture.data)) as image:
        assert not image.getexif()
        assert set(image.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density", "progressive", "progression"}


def test_a_large_picture_is_scaled_down_in_proportion() -> None:
    picture = picture_of(encoded(size=(1600, 200)), LOGO)
    assert (picture.width, picture.height) == (800, 100)


def test_only_the_first_frame_of_an_animation_is_kept() -> None:
    out = io.BytesIO()
    frames = [Image.new("RGB", (30, 30), color) for color in ("red", "lime", "blue")]
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    with Image.open(io.BytesIO(picture_of(out.getvalue(), LOGO).data)) as image:
        assert getattr(image, "n_frames", 1) == 1
        assert image.convert("RGB").getpixel((5, 5)) == (255, 0, 0)


def test_a_transparent_background_becomes_white() -> None:
    out = io.BytesIO()
    Image.new("RGBA", (30, 30), (0, 0, 0, 0)).save(out, "PNG")
    picture = picture_of(out.getvalue(), BACKGROUND)
    assert picture.media_type == "image/jpeg"
    with Image.open(io.BytesIO(picture.data)) as image:
        assert image.getpixel((5, 5)) == (255, 255, 255)


def test_a_picture_whose_compressed_text_grows_to_200_megabytes_is_refused() -> None:
    packed = zlib.compress(b"\0" * (200 * 1024 * 1024), 9)
    chunk = b"iTXt" + b"Comment\0\1\0\0\0" + packed
    whole = encoded()
    bomb = whole[:33] + struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + whole[33:]
    with pytest.raises(PictureRefused, match="damaged"):
        picture_of(bomb, LOGO)
