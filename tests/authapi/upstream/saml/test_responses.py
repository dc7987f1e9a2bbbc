"""Accepted responses of providers, and the explanations of refused responses."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.facts import wire_instant
from authapi.upstream.saml.judging import Expected, recipients_of, with_organization
from authapi.upstream.saml.responses import Accepted, UnknownSigner, accepted, read_message, request_id_of
from authapi.xml.building import element
from authapi.xml.names import DS, SAML, SAMLP, qualified
from authapi.xml.parsing import Element, parse, serialized
from tests.factories.saml_provider import ENTITY_ID, OTHER, SIGNING, Answer, key_pair

AUDIENCE = "urn:auth0:acme:corp"
CALLBACK = "https://acme.example.test/login/callback"
ACS = f"{CALLBACK}?connection=corp"
REQUEST = "_request-1"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def answer(**changes: Any) -> Answer:
    return Answer(**{"audience": AUDIENCE, "recipient": ACS, "in_response_to": REQUEST, "now": NOW, **changes})


def expected(**changes: Any) -> Expected:
    good: dict[str, Any] = {
        "issuer": ENTITY_ID,
        "audience": AUDIENCE,
        "recipients": recipients_of(CALLBACK, "corp"),
        "request_id": REQUEST,
        "now": NOW,
    }
    return Expected(**{**good, **changes})


def judged(raw: bytes, wanted: Expected | None = None, **more: Any) -> Accepted:
    return accepted(raw, [SIGNING.known], wanted or expected(), **more)


def why(raw: bytes, wanted: Expected | None = None, **more: Any) -> str:
    with pytest.raises(UpstreamFailed) as refused:
        judged(raw, wanted, **more)
    return refused.value.detail


def test_a_valid_response_states_the_user_and_how_long_the_assertion_id_must_be_stored() -> None:
    found = judged(answer(assertion_id="_a").raw)
    statement = found.assertion.statement
    assert (found.assertion.id, statement.issuer, statement.session_index) == ("_a", ENTITY_ID, "_session-1")
    assert statement.name_id is not None
    assert statement.name_id.value == "248289"
    assert statement.attributes["displayName"] == ("Ada Lovelace",)
    assert found.until == NOW + timedelta(minutes=8)


@pytest.mark.parametrize(("response", "assertion"), [(True, False), (True, True), (False, True)])
def test_a_signature_over_the_response_or_over_the_assertion_is_sufficient(response: bool, assertion: bool) -> None:
    assert judged(answer(signs_response=response, signs_assertion=assertion).raw).assertion.statement.name_id is not None


def test_a_response_without_any_signature_is_refused() -> None:
    assert "Neither the response nor the assertion is signed" in why(answer(signs_assertion=False).raw)


def test_an_encrypted_assertion_is_decrypted_and_must_still_be_signed() -> None:
    mine = key_pair("us.example.test")
    assert judged(answer(encrypts_for=mine.certificate).raw, keys=[mine.private]).assertion.statement.name_id is not None
    unsigned = answer(encrypts_for=mine.certificate, signs_assertion=False)
    assert "Neither the response nor the assertion is signed" in why(unsigned.raw, keys=[mine.private])
    unsigned.signs_response = True
    assert judged(unsigned.raw, keys=[mine.private]).assertion.id


def test_the_error_for_an_assertion_encrypted_with_another_key_contains_our_metadata_url() -> None:
    assert "/samlp/metadata" in why(answer(encrypts_for=OTHER.certificate).raw, keys=[SIGNING.private])


def test_the_error_for_another_signing_key_contains_the_certificate_of_the_message() -> None:
    with pytest.raises(UnknownSigner) as refused:
        judged(answer(key=OTHER).raw)
    assert "other.example.test" in refused.value.detail
    assert OTHER.known.thumbprint[:16] in refused.value.detail
    assert SIGNING.known.thumbprint[:16] in refused.value.detail


def test_each_certificate_is_accepted_during_a_rollover() -> None:
    assert accepted(answer(key=OTHER).raw, [SIGNING.known, OTHER.known], expected()).assertion.id


def test_a_certificate_inside_the_message_is_not_trusted() -> None:
    # The signature contains the certificate of the key that made it. This certificate proves nothing.
    raw = answer(key=OTHER).raw
    assert OTHER.text.encode() in b"".join(raw.split())
    assert why(raw)


def test_a_changed_value_invalidates_the_signature() -> None:
    raw = answer().raw.replace(b"248289", b"248290")
    assert "changed after it was signed" in why(raw)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"audience": "urn:auth0:acme:another"}, f"must be '{AUDIENCE}'"),
        ({"audience": ""}, f"Enter '{AUDIENCE}' as audience"),
        ({"recipient": "https://acme.example.test/elsewhere", "destination": ACS}, f"must be '{ACS}'"),
        ({"recipient": "", "destination": ACS}, "The Recipient is missing"),
        ({"destination": "https://acme.example.test/elsewhere"}, "The Destination is 'https://acme.example.test/elsewhere'"),
        ({"destination": None, "signs_response": True}, "no Destination"),
        ({"in_response_to": "_another"}, "answers the request '_another'"),
        ({"in_response_to": None}, "names no request"),
        ({"issuer": "https://attacker.example.test"}, "The Issuer is 'https://attacker.example.test'"),
        ({"response_issuer": "https://attacker.example.test"}, "The Issuer is 'https://attacker.example.test'"),
        ({"issuer": None}, "no Issuer"),
        ({"method": "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key"}, "no SubjectConfirmation of the method bearer"),
        ({"now": NOW - timedelta(minutes=10)}, "ended at 2026-03-01T11:55:00Z, and the time on this server is 2026-03-01T12:00:00Z"),
        ({"now": NOW + timedelta(minutes=10)}, "is valid from 2026-03-01T12:09:30Z"),
        ({"lifetime": timedelta(days=2)}, "more than a day"),
        ({"signature": "http://www.w3.org/2000/09/xmldsig#rsa-sha1", "digest": "http://www.w3.org/2000/09/xmldsig#sha1"}, "SHA-1"),
    ],
)
def test_an_invalid_response_is_refused_with_an_explanation(changes: dict[str, Any], told: str) -> None:
    assert told in why(answer(**changes).raw)


def test_clocks_may_differ_by_at_most_three_minutes() -> None:
    assert judged(answer(now=NOW + timedelta(minutes=3)).raw).assertion.id
    assert judged(answer(now=NOW - timedelta(minutes=7, seconds=59)).raw).assertion.id
    assert why(answer(now=NOW - timedelta(minutes=8)).raw)
    assert why(answer(now=NOW + timedelta(minutes=3, seconds=31)).raw)


def test_an_unsolicited_response_may_not_name_a_request() -> None:
    assert judged(answer(in_response_to=None).raw, expected(request_id=None)).assertion.id
    assert "did not begin in this browser" in why(answer().raw, expected(request_id=None))


def test_any_issuer_is_accepted_if_the_connection_has_no_issuer() -> None:
    assert judged(answer(issuer="urn:any", response_issuer=None).raw, expected(issuer="")).assertion.id


def test_an_assertion_is_remembered_until_its_last_confirmation_ends() -> None:
    later = NOW + timedelta(hours=1)

    def confirm_again(tree: Element) -> None:
        subject = tree.find(qualified(SAML, "Subject"))
        assert subject is not None
        again = deepcopy(subject[-1])
        again[0].set("NotOnOrAfter", wire_instant(later))
        subject.append(again)

    assert judged(answer(spoil_assertion=confirm_again).raw).until > later


def test_each_spelling_of_our_url_is_accepted_including_one_with_an_organization() -> None:
    assert judged(answer(recipient=CALLBACK).raw).assertion.id
    with_org = f"{ACS}&organization=org_1"
    assert why(answer(recipient=with_org).raw)
    wanted = expected(recipients=with_organization(recipients_of(CALLBACK, "corp"), with_org, "corp"))
    assert judged(answer(recipient=with_org).raw, wanted).assertion.id
    odd = f"{ACS}&more=1"
    assert with_organization(recipients_of(CALLBACK, "corp"), odd, "corp") == recipients_of(CALLBACK, "corp")
    other = f"{CALLBACK}?connection=other&organization=org_1"
    assert with_organization(recipients_of(CALLBACK, "corp"), other, "corp") == recipients_of(CALLBACK, "corp")
    elsewhere = "https://evil.example.test/login/callback?connection=corp"
    assert with_organization(recipients_of(CALLBACK, "corp"), elsewhere, "corp") == recipients_of(CALLBACK, "corp")


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        (("urn:oasis:names:tc:SAML:2.0:status:Responder", "urn:oasis:names:tc:SAML:2.0:status:AuthnFailed"), "could not log the user in"),
        (("urn:oasis:names:tc:SAML:2.0:status:Requester", "urn:odd"), "refuses the request as it was sent"),
        (("urn:odd",), "without a known reason"),
    ],
)
def test_a_refusal_of_the_provider_is_explained(statuses: tuple[str, ...], told: str) -> None:
    raw = answer(statuses=statuses, status_message="Ask\nBob.").raw
    with pytest.raises(UpstreamFailed) as refused:
        judged(raw)
    assert refused.value.case is LoginCase.UPSTREAM_DENIED
    assert told in refused.value.detail
    assert refused.value.detail.endswith("The provider says: Ask Bob.")


def _without(path: str) -> Callable[[Element], None]:
    def spoil(tree: Element) -> None:
        found = tree.find(path)
        assert found is not None
        parent = found.getparent()
        assert parent is not None
        parent.remove(found)

    return spoil


def _set(path: str, name: str, value: str) -> Callable[[Element], None]:
    def spoil(tree: Element) -> None:
        found = tree if path == "." else tree.find(path)
        assert found is not None
        found.set(name, value)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_without(f"{{{SAML}}}AuthnStatement"), "no AuthnStatement"),
        (_set(".", "Version", "1.1"), "is of SAML 1.1"),
        (_set(f"{{{SAML}}}AuthnStatement", "SessionNotOnOrAfter", "2026-03-01T11:00:00Z"), "The session of the user ended"),
        (_set(f"{{{SAML}}}AuthnStatement", "AuthnInstant", "yesterday"), "A time in the assertion cannot be read"),
        (_set(f"{{{SAML}}}Conditions", "NotBefore", "2026-03-01T13:00:00Z"), "is valid from 2026-03-01T13:00:00Z"),
        (lambda tree: tree.find(f"{{{SAML}}}Conditions").append(element("{urn:odd}Weather")), "an unknown condition: Weather"),
    ],
)
def test_an_invalid_assertion_is_refused_with_an_explanation(spoil: Callable[[Element], None], told: str) -> None:
    assert told in why(answer(spoil_assertion=spoil).raw)


def test_one_valid_confirmation_among_several_is_sufficient() -> None:
    def add(tree: Element) -> None:
        subject = tree.find(f"{{{SAML}}}Subject")
        assert subject is not None
        data = element(f"{{{SAML}}}SubjectConfirmationData", {"Recipient": "https://another.example.test"})
        subject.insert(1, element(f"{{{SAML}}}SubjectConfirmation", {"Method": "urn:oasis:names:tc:SAML:2.0:cm:bearer"}, data))

    assert judged(answer(spoil_assertion=add).raw).assertion.id


def test_several_assertions_are_refused() -> None:
    def twice(tree: Element) -> None:
        tree.append(answer().assertion())

    assert "several assertions" in why(answer(spoil_response=twice).raw)


@pytest.mark.parametrize(
    "raw", [b"", b"no xml", b"<a/>", b"<!DOCTYPE a><a/>", b"<Response xmlns='urn:oasis:names:tc:SAML:2.0:protocol' Version='1.1'/>"]
)
def test_an_invalid_response_is_refused(raw: bytes) -> None:
    assert why(raw)
    if raw != b"<Response xmlns='urn:oasis:names:tc:SAML:2.0:protocol' Version='1.1'/>":
        with pytest.raises(UpstreamFailed):
            request_id_of(raw)


@pytest.mark.parametrize("text", ["%%%", "A" * 900_000])
def test_an_undecodable_or_overlong_message_is_refused(text: str) -> None:
    with pytest.raises(UpstreamFailed):
        read_message(text)


def test_a_comment_inside_a_name_does_not_shorten_it() -> None:
    # The canonical form has no comments, so the signature is still valid. The name must be read as a whole.
    raw = answer(name_id="ada@corp.example.test.attacker.test").raw.replace(
        b"ada@corp.example.test.attacker.test", b"ada@corp.example.test<!-- -->.attacker.test"
    )
    name = judged(raw).assertion.statement.name_id
    assert name is not None
    assert name.value == "ada@corp.example.test.attacker.test"


# The eight ways to wrap a signed assertion (Somorovsky and others, 2012): the signature is valid, but vulnerable software reads another
# element.


def _evil(good: Element) -> Element:
    """Return a copy of the assertion. The copy names another user and has another id."""
    evil = parse(serialized(good))
    evil.set("ID", "_evil")
    name = evil.find(f"{{{SAML}}}Subject/{{{SAML}}}NameID")
    assert name is not None
    name.text = "eve"
    return evil


def _stripped(evil: Element) -> Element:
    signature = evil.find(qualified(DS, "Signature"))
    assert signature is not None
    evil.remove(signature)
    return evil


@dataclass
class Wrapping:
    """A signed response, and a copy of its assertion with another user."""

    root: Element
    good: Element
    evil: Element
    evil_signature: Element


def _response_in_signature(parts: Wrapping) -> Element:
    outer = parse(serialized(parts.root))
    inner = outer.find(f"{{{SAML}}}Assertion")
    assert inner is not None
    outer.replace(inner, parts.evil)
    parts.evil_signature.append(parts.root)
    return outer


def _evil_before_good(parts: Wrapping) -> None:
    parts.root.insert(list(parts.root).index(parts.good), _stripped(parts.evil))


def _good_in_evil(parts: Wrapping) -> None:
    parts.root.replace(parts.good, _stripped(parts.evil))
    parts.evil.append(parts.good)


def _good_in_signed_evil(parts: Wrapping) -> None:
    parts.root.replace(parts.good, parts.evil)
    parts.evil.append(_stripped(parts.good))


def _good_behind_evil(parts: Wrapping) -> None:
    parts.root.replace(parts.good, parts.evil)
    parts.root.append(_stripped(parts.good))


def _good_in_signature(parts: Wrapping) -> None:
    parts.root.replace(parts.good, parts.evil)
    parts.evil_signature.append(_stripped(parts.good))


def _good_in_extensions(parts: Wrapping) -> None:
    parts.root.replace(parts.good, parts.evil)
    # The schema allows any element in Extensions.
    parts.root.insert(1, element(qualified(SAMLP, "Extensions"), None, _stripped(parts.good)))


def _good_in_object(parts: Wrapping) -> None:
    parts.root.replace(parts.good, parts.evil)
    parts.evil_signature.append(element(qualified(DS, "Object"), None, _stripped(parts.good)))


WRAPPINGS = (
    _response_in_signature,
    _evil_before_good,
    _good_in_evil,
    _good_in_signed_evil,
    _good_behind_evil,
    _good_in_signature,
    _good_in_extensions,
    _good_in_object,
)


@pytest.mark.parametrize("wrap", WRAPPINGS, ids=lambda wrap: wrap.__name__.strip("_"))
def test_no_wrapping_changes_the_user_of_a_signed_assertion(wrap: Callable[[Wrapping], Element | None]) -> None:
    root = parse(answer().raw)
    good = root.find(f"{{{SAML}}}Assertion")
    assert good is not None
    evil = _evil(good)
    evil_signature = evil.find(qualified(DS, "Signature"))
    assert evil_signature is not None
    outer = wrap(Wrapping(root, good, evil, evil_signature))
    raw = serialized(root if outer is None else outer)
    assert b"eve" in raw
    assert why(raw)


def test_an_id_that_occurs_twice_is_refused() -> None:
    root = parse(answer(assertion_id="_same").raw)
    root.set("ID", "_same")
    assert "same ID" in why(serialized(root))


def test_the_reason_of_a_refusal_contains_no_attribute_of_the_user() -> None:
    assert not re.search("Lovelace|ada@", why(answer(key=OTHER).raw))
