"""Logout messages: to which login a request applies, and which responses are accepted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from authapi.protocols.saml.claims import NameId
from authapi.protocols.saml.logout import (
    PARTLY,
    LogoutRequest,
    Participation,
    logout_request,
    logout_response,
    read_logout_answer,
    read_logout_request,
)
from authapi.protocols.saml.names import EMAIL_NAME, PARTIAL_LOGOUT, RESPONDER, SUCCESS, TRANSIENT_NAME, UNSPECIFIED_NAME
from authapi.protocols.saml.requests import RequestUnusable, Sent
from authapi.protocols.saml.settings import SamlSettings
from authapi.xml.bindings import RESPONSE
from authapi.xml.parsing import parse, serialized
from tests.authapi.protocols.saml.requests_of_applications import (
    ENTRY,
    OTHER_SIGNER,
    SIGNER,
    logout_answer,
    logout_message,
    posted,
    redirected,
)
from tests.authapi.xml.signed_messages import trusted

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
SIGNED = SamlSettings(signing_certificates=(trusted(),))
HERE = frozenset({ENTRY})
KNOWN = Participation(NameId("ada@example.test", EMAIL_NAME), "_index")


def read(sent: Sent, settings: SamlSettings = SIGNED) -> LogoutRequest:
    return read_logout_request(sent, settings, addresses=HERE, now=NOW)


@pytest.mark.parametrize("travel", [posted, redirected])
def test_a_signed_request_names_the_login(travel: Callable[..., Sent]) -> None:
    asked = read(travel(logout_message("ada@example.test", "_index"), "", SIGNER))
    assert asked.is_about(KNOWN)


def test_a_request_without_indexes_applies_to_every_login_of_the_user() -> None:
    assert read(posted(logout_message("ada@example.test"), "", SIGNER)).is_about(KNOWN)


@pytest.mark.parametrize(("name", "index"), [("eve@example.test", "_index"), ("ada@example.test", "_other")])
def test_a_request_for_another_login_does_not_match(name: str, index: str) -> None:
    assert not read(posted(logout_message(name, index), "", SIGNER)).is_about(KNOWN)


@pytest.mark.parametrize(("name_format", "is_same"), [("", True), (UNSPECIFIED_NAME, True), (EMAIL_NAME, True), (TRANSIENT_NAME, False)])
def test_the_name_id_format_may_be_omitted(name_format: str, is_same: bool) -> None:
    asked = LogoutRequest("_x", "urn:sp", "", NameId("ada@example.test", name_format), ())
    assert asked.is_about(KNOWN) is is_same


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (posted(logout_message()), "not signed"),
        (redirected(logout_message()), "not signed"),
        (posted(logout_message(), "", OTHER_SIGNER), "trusted certificates"),
        (posted(logout_message(Destination="https://other.test"), "", SIGNER), "Destination"),
        (posted(logout_message(NotOnOrAfter="2026-11-23T09:50:00Z"), "", SIGNER), "too old"),
        (posted(logout_message(NotOnOrAfter="soon"), "", SIGNER), "not a time"),
        (posted(logout_message(NotOnOrAfter="2026-11-23T09:50:00"), "", SIGNER), "not a time"),
        (posted(logout_message(request_id=""), "", SIGNER), "ID"),
        (posted(logout_answer("_x", SUCCESS), "", SIGNER), "LogoutRequest"),
    ],
)
def test_an_untrusted_request_is_refused(sent: Sent, says: str) -> None:
    with pytest.raises(RequestUnusable, match=says):
        read(sent)


@pytest.mark.parametrize(("codes", "is_success"), [((SUCCESS,), True), ((SUCCESS, PARTIAL_LOGOUT), False), ((RESPONDER,), False)])
def test_a_logout_response_says_whether_the_login_has_ended(codes: tuple[str, ...], is_success: bool) -> None:
    sent = posted(logout_answer("_ours", *codes), "", SIGNER, RESPONSE)
    answer = read_logout_answer(sent, SIGNED, addresses=HERE)
    assert (answer.in_response_to, answer.is_success) == ("_ours", is_success)


def test_an_unsigned_logout_response_is_refused_if_signatures_are_checked() -> None:
    with pytest.raises(RequestUnusable, match="not signed"):
        read_logout_answer(posted(logout_answer("_ours", SUCCESS), parameter=RESPONSE), SIGNED, addresses=HERE)


def test_our_own_parser_accepts_our_logout_request() -> None:
    ours = logout_request(issuer="urn:acme", address=ENTRY, request_id="_ours", participation=KNOWN, now=NOW)
    asked = read(posted(parse(serialized(ours)), "", SIGNER))
    assert asked.is_about(KNOWN)
    assert (asked.id, asked.issuer, asked.name_id.format) == ("_ours", "urn:acme", EMAIL_NAME)


def test_our_own_parser_accepts_our_logout_response() -> None:
    for codes, is_success in (((SUCCESS,), True), (PARTLY, False)):
        ours = logout_response(issuer="urn:acme", address=ENTRY, response_id="_a", in_response_to="_theirs", now=NOW, codes=codes)
        answer = read_logout_answer(posted(ours, "", SIGNER, RESPONSE), SIGNED, addresses=HERE)
        assert (answer.in_response_to, answer.is_success) == ("_theirs", is_success)


def test_the_state_of_a_login_can_be_restored_from_its_text() -> None:
    assert Participation.of_state(KNOWN.state()) == KNOWN
