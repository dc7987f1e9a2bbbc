"""The eight classic ways to wrap a signed message (Somorovsky et al., "On Breaking SAML", 2012).

Each way moves the signed element and puts a forged element at the position that software reads. Our code must either read and refuse the
forged element, or read the signed element.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from authapi.xml.building import element
from authapi.xml.failures import SignatureInvalid, SignatureMissing, SignatureRefused
from authapi.xml.names import DS, SAMLP, qualified
from authapi.xml.parsing import Element, parse, serialized
from authapi.xml.signing import signed
from authapi.xml.verifying import verified
from tests.authapi.xml.signed_messages import NAME_ID, SUBJECT, assertion, at, inner_assertion, key, response, signed_response, trusted

SIGNATURE = qualified(DS, "Signature")
OBJECT = qualified(DS, "Object")
REFUSED = (SignatureRefused, SignatureMissing, SignatureInvalid)


def copy(original: Element) -> Element:
    return parse(serialized(original))


def unsigned(original: Element) -> Element:
    made = copy(original)
    made.remove(at(made, SIGNATURE))
    return made


def forged(original: Element, identifier: str = "_forged") -> Element:
    """Return the element with the attacker's name and another id."""
    made = copy(original)
    made.set("ID", identifier)
    for name in made.iter(NAME_ID):
        name.text = "eve@example.test"
    return made


def whole() -> Element:
    """Return a response that is signed as a whole."""
    return signed(response(assertion()), private_key=key(), certificate=trusted(), place=1)


def xsw1(original: Element) -> Element:
    """Return a forged response whose signature contains the signed response."""
    made = forged(original)
    at(made, SIGNATURE).append(unsigned(original))
    return made


def xsw2(original: Element) -> Element:
    """Return a forged response with a detached signature, and the signed response before the signature."""
    made = forged(original)
    made.insert(1, unsigned(original))
    return made


def xsw3(original: Element) -> Element:
    """Return a response with a forged assertion before the signed assertion."""
    made = copy(original)
    made.insert(1, unsigned_forged(original))
    return made


def xsw4(original: Element) -> Element:
    """Return a response with a forged assertion around the signed assertion."""
    made = copy(original)
    outer = unsigned_forged(original)
    inside = inner_assertion(made)
    made.replace(inside, outer)
    outer.append(inside)
    return made


def xsw5(original: Element) -> Element:
    """Return a response with a forged assertion that has the signature, followed by the signed assertion without its signature."""
    made = copy(original)
    inside = inner_assertion(made)
    made.replace(inside, forged(inside))
    made.append(unsigned(inside))
    return made


def xsw6(original: Element) -> Element:
    """Return a response with a forged assertion whose signature contains the signed assertion."""
    made = copy(original)
    inside = inner_assertion(made)
    outer = forged(inside)
    at(outer, SIGNATURE).append(unsigned(inside))
    made.replace(inside, outer)
    return made


def xsw7(original: Element) -> Element:
    """Return a response whose extensions contain a forged assertion with the same id. Schemas allow any element in extensions."""
    made = copy(original)
    inside = unsigned_forged(original)
    inside.set("ID", "_assertion")
    made.insert(1, element(qualified(SAMLP, "Extensions"), None, inside))
    return made


def xsw8(original: Element) -> Element:
    """Return a response with a forged assertion whose signature contains an Object with the signed assertion."""
    made = copy(original)
    inside = inner_assertion(made)
    outer = forged(inside)
    at(outer, SIGNATURE).append(element(OBJECT, None, unsigned(inside)))
    made.replace(inside, outer)
    return made


def unsigned_forged(original: Element) -> Element:
    return unsigned(forged(inner_assertion(copy(original))))


@pytest.mark.parametrize("wrapped", [xsw1, xsw2], ids=lambda each: each.__name__)
def test_a_wrapped_response_is_refused(wrapped: Callable[[Element], Element]) -> None:
    root = parse(serialized(wrapped(whole())))
    with pytest.raises(REFUSED):
        verified(root, [trusted()])


@pytest.mark.parametrize("wrapped", [xsw3, xsw4, xsw5, xsw6, xsw7, xsw8], ids=lambda each: each.__name__)
def test_the_forged_assertion_of_a_wrapping_is_refused(wrapped: Callable[[Element], Element]) -> None:
    root = parse(serialized(wrapped(parse(signed_response()))))
    forged_ones = [each for each in root.iter(inner_assertion(parse(signed_response())).tag) if "eve@" in first_name(each)]
    assert forged_ones
    for each in forged_ones:
        with pytest.raises(REFUSED):
            verified(each, [trusted()])


@pytest.mark.parametrize("wrapped", [xsw1, xsw2], ids=lambda each: each.__name__)
def test_a_forged_response_with_the_id_of_the_signed_response_is_refused(wrapped: Callable[[Element], Element]) -> None:
    made = wrapped(whole())
    made.set("ID", "_response")
    with pytest.raises(REFUSED):
        verified(parse(serialized(made)), [trusted()])


def test_the_original_response_is_accepted() -> None:
    assert first_name(verified(whole(), [trusted()])) == "ada@example.test"


def first_name(each: Element) -> str:
    """Return the name in an assertion, or in the first assertion inside a response."""
    found = each.find(f"{SUBJECT}/{NAME_ID}")
    return (next(each.iter(NAME_ID)) if found is None else found).text or ""
