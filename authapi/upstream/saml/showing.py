"""A message in readable form for an administrator: indented, without the parts that would allow its reuse. Pure.

Signatures and encrypted data are left out, so the text cannot open a session at any service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from authapi.xml.failures import XmlError
from authapi.xml.names import DS, SAML, SAML11, SAMLP, XENC, qualified
from authapi.xml.parsing import Element, local_name, parse

_HIDDEN = frozenset(
    {
        qualified(DS, "SignatureValue"),
        qualified(DS, "DigestValue"),
        qualified(XENC, "CipherValue"),
    }
)
_PREFIXES = {SAMLP: "samlp", SAML: "saml", SAML11: "saml", DS: "ds", XENC: "xenc"}
MOST_CHARACTERS = 64 * 1024
_LONGEST_VALUE = 2_000
LEFT_OUT = "(left out)"
_ATTRIBUTES = frozenset({qualified(SAML, "Attribute"), qualified(SAML11, "Attribute")})
# A function that tells whether to leave out the values of an attribute. The arguments are all names and all values of the attribute.
Hides = Callable[[Sequence[str], Sequence[str]], bool]


def shown_message(raw: bytes, *, hides: Hides = lambda _names, _values: False) -> str:
    """Return the message as an outline of elements, attributes and texts. If the message is not XML, return only its length.

    If `hides` returns true for an attribute of an assertion, the values of this attribute are left out.
    """
    try:
        root = parse(raw)
    except XmlError as error:
        return f"{len(raw)} bytes that cannot be read: {error}"
    lines: list[str] = []
    _write(root, 0, lines, hides)
    text = "\n".join(lines)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}\n... (cut off)"


def _write(element: Element, depth: int, lines: list[str], hides: Hides) -> None:
    name = _name(element)
    attributes = "".join(f' {_attribute_name(key)}="{_short(str(value))}"' for key, value in element.attrib.items())
    indent = "  " * depth
    if element.tag in _HIDDEN:
        lines.append(f"{indent}<{name}>{LEFT_OUT}</{name}>")
    elif element.tag in _ATTRIBUTES and hides(_names_of(element), _texts_in(element)):
        lines.append(f"{indent}<{name}{attributes}>{LEFT_OUT}</{name}>")
    elif len(element):
        lines.append(f"{indent}<{name}{attributes}>")
        for inner in element:
            _write(inner, depth + 1, lines, hides)
        lines.append(f"{indent}</{name}>")
    else:
        text = _short(element.text or "")
        lines.append(f"{indent}<{name}{attributes}>{text}</{name}>" if text else f"{indent}<{name}{attributes}/>")


def _names_of(attribute: Element) -> list[str]:
    """Return the names of an attribute.

    SAML 2.0: `Name` and `FriendlyName`. SAML 1.1: the last part of the claim URI, and the whole URI.
    """
    namespace, short = attribute.get("AttributeNamespace") or "", attribute.get("AttributeName") or ""
    names = (attribute.get("Name"), attribute.get("FriendlyName"), short, f"{namespace.rstrip('/')}/{short}" if namespace else "")
    return [name for name in names if name]


def _texts_in(attribute: Element) -> list[str]:
    return [str(text) for text in attribute.itertext()]


def _name(element: Element) -> str:
    namespace = str(element.tag).partition("}")[0].lstrip("{")
    prefix = _PREFIXES.get(namespace)
    return f"{prefix}:{local_name(element)}" if prefix else local_name(element)


def _attribute_name(key: str | bytes) -> str:
    return str(key).rpartition("}")[2]


def _short(text: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in text).strip()
    return plain if len(plain) <= _LONGEST_VALUE else f"{plain[:_LONGEST_VALUE]}..."
