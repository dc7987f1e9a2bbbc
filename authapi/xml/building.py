"""Builds XML: elements with attributes and texts. The library escapes attributes and texts; this module writes no markup itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lxml import etree

from authapi.xml.names import PREFIXES
from authapi.xml.parsing import METADATA, Element, parse, serialized

# XML 1.0, 2.2: characters that no document can contain, in any encoding.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def element(tag: str, attributes: Mapping[str, str | None] | None = None, *content: Element | str | None) -> Element:
    """Return a new element `{namespace}name` with the usual prefix; attributes and content that are None are left out."""
    namespace = etree.QName(tag).namespace
    prefixes = {prefix: uri for prefix, uri in PREFIXES.items() if uri == namespace}
    made: Element = etree.Element(tag, nsmap=prefixes)
    for name, value in (attributes or {}).items():
        if value is not None:
            made.set(name, writable(value))
    for part in content:
        if isinstance(part, str):
            made.text = (made.text or "") + writable(part)
        elif part is not None:
            made.append(part)
    return made


def with_prefixes(made: Element, *prefixes: str) -> Element:
    """Return a copy that declares further prefixes, for values that use a prefix, such as `xs:string`."""
    declared = {name: uri for name, uri in made.nsmap.items() if name is not None} | {name: PREFIXES[name] for name in prefixes}
    copy: Element = etree.Element(made.tag, attrib={str(name): str(value) for name, value in made.attrib.items()}, nsmap=declared)
    copy.text = made.text
    copy.extend(list(made))
    return copy


def writable(text: str) -> str:
    """Replace each character that XML cannot contain with U+FFFD."""
    return _UNWRITABLE.sub("\ufffd", text)


def laid_out(made: Element) -> str:
    """Return a copy as indented text for readers. Never use it for a signature, which covers white space."""
    copy = parse(serialized(made), METADATA)
    etree.indent(copy, space="  ")
    return str(etree.tostring(copy, encoding="unicode"))
