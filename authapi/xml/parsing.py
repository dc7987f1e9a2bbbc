"""The only parser of foreign XML, with bounded decoding of base64 and DEFLATE.

A parsed tree has elements and whole texts only: no document type, no entity, no comment, no processing
instruction. The parser fetches nothing. A parsed tree is not trusted: `verifying` returns the signed elements.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lxml import etree

from authapi.xml.failures import AmbiguousText, ForbiddenXml, XmlMalformed, XmlTooLarge

Element: TypeAlias = etree._Element

_CHUNK_BYTES = 16 * 1024
# The encoding that a document declares. Encodings other than UTF-8 could hide a document type from the search in `parse`, and a parser
# could change the encoding midway.
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_READABLE_ENCODINGS = frozenset({b"utf-8", b"utf8", b"us-ascii", b"ascii"})
_BASE64_SPACE = re.compile(r"[\s]+")


@dataclass(frozen=True)
class Bounds:
    """The maximum size of a document. Attributes and namespace declarations are counted over the whole document."""

    size: int
    depth: int
    elements: int
    attributes: int


# A message that a browser sends. A usual message of this service has 6 KB. A message for a user with 1,000 groups has 150 KB.
MESSAGE = Bounds(size=512 * 1024, depth=40, elements=10_000, attributes=20_000)
# Metadata of one entity or of a small federation.
METADATA = Bounds(size=2 * 1024 * 1024, depth=40, elements=50_000, attributes=100_000)


def parse(raw: bytes, bounds: Bounds = MESSAGE) -> Element:
    """Return the root of a document in UTF-8.

    Drops comments and processing instructions, so that every text is whole: `a<!-- -->b` becomes `ab`. Raises `XmlTooLarge` and
    `XmlMalformed`, and `ForbiddenXml` for every document type declaration.
    """
    if len(raw) > bounds.size:
        raise XmlTooLarge(f"The document has more than {bounds.size} bytes.")
    _check_encoding(raw)
    # In UTF-8, the bytes of these two texts cannot mean other characters, so the search finds every declaration. A document that has one
    # of the texts in a comment is refused, too.
    if b"<!DOCTYPE" in raw or b"<!ENTITY" in raw:
        raise ForbiddenXml
    parser = etree.XMLPullParser(
        events=("start", "end", "start-ns"),
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
        strip_cdata=True,
        collect_ids=False,
    )
    counted = _Counted(bounds)
    try:
        for begin in range(0, len(raw), _CHUNK_BYTES):
            parser.feed(raw[begin : begin + _CHUNK_BYTES])
            counted.read(parser)
        root: Element = parser.close()
        counted.read(parser)
    except etree.XMLSyntaxError as error:
        # The parser's error text may quote the document.
        raise XmlMalformed from error
    return root


def inflated(raw: bytes, *, limit: int = MESSAGE.size) -> bytes:
    """Decompress raw DEFLATE (RFC 1951): one whole stream with nothing after it, of at most `limit` bytes."""
    if len(raw) > limit:
        raise XmlTooLarge(f"The compressed document has more than {limit} bytes.")
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        opened = stream.decompress(raw, limit + 1)
    except zlib.error as error:
        raise XmlMalformed("The document is not compressed with DEFLATE.") from error
    if len(opened) > limit:
        raise XmlTooLarge(f"The document has more than {limit} bytes when it is decompressed.")
    if not stream.eof or stream.unused_data:
        raise XmlMalformed("The compressed document is truncated or has bytes after its end.")
    return opened


def deflated(raw: bytes) -> bytes:
    """Compress for the redirect binding: raw DEFLATE without a header."""
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(raw) + stream.flush()


def from_base64(text: str, *, limit: int = MESSAGE.size) -> bytes:
    """Decode standard base64, with or without line breaks. Refuses other characters and more than `limit` bytes."""
    if len(text) > limit * 3 // 2:
        raise XmlTooLarge(f"The encoded document has more than {limit} bytes.")
    try:
        decoded = base64.b64decode(_BASE64_SPACE.sub("", text), validate=True)
    except (binascii.Error, ValueError) as error:
        raise XmlMalformed("The document is not encoded in base64.") from error
    if len(decoded) > limit:
        raise XmlTooLarge(f"The encoded document has more than {limit} bytes.")
    return decoded


def serialized(element: Element) -> bytes:
    """Return the bytes of one element, with the namespaces in scope and without the text after it."""
    raw: bytes = etree.tostring(element, encoding="utf-8", with_tail=False)
    return raw


def text_of(element: Element) -> str:
    """Return the text of an element without surrounding white space. Refuses an element with child elements."""
    if len(element):
        raise AmbiguousText
    return (element.text or "").strip()


def child(element: Element, tag: str) -> Element | None:
    """Return the only direct child with this name, or None. Refuses an element with several such children."""
    found = list(element.iterchildren(tag))
    if len(found) > 1:
        raise XmlMalformed(f"There is more than one {etree.QName(tag).localname}.")
    return found[0] if found else None


def children(element: Element, tag: str) -> Iterator[Element]:
    """Return the direct children with this name."""
    return iter(list(element.iterchildren(tag)))


def local_name(element: Element) -> str:
    """Return the name of the element without its namespace."""
    return str(etree.QName(element).localname)


class _Counted:
    """Counts the parts that a parser has read. Refuses a document beyond the bounds before the rest is parsed."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._depth = self._elements = self._attributes = 0

    def read(self, parser: etree.XMLPullParser) -> None:
        for event, value in parser.read_events():
            if event == "start" and isinstance(value, Element):
                self._depth += 1
                self._elements += 1
                self._attributes += len(value.attrib)
            elif event == "end":
                self._depth -= 1
            else:
                self._attributes += 1
            if self._depth > self._bounds.depth or self._elements > self._bounds.elements or self._attributes > self._bounds.attributes:
                raise XmlTooLarge("The document has too many elements or attributes, or is nested too deeply.")


def _check_encoding(raw: bytes) -> None:
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    declared = _ENCODING.match(raw[:512])
    if declared and declared[1].lower() not in _READABLE_ENCODINGS:
        raise XmlMalformed("The document must be encoded in UTF-8.")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise XmlMalformed("The document must be encoded in UTF-8.") from error
    if "\x00" in text:
        raise XmlMalformed
