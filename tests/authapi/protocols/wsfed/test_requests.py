"""Requests of WS-Federation: parsing, and refusals before the service trusts an application."""

from __future__ import annotations

import pytest

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.protocols.wsfed.requests import SignIn, client_realm, read_parameters, reply_address, sign_in_of

CALLBACKS = ("https://app.example.test/wsfed", "https://other.example.test/wsfed")


def asked(**parameters: str) -> SignIn:
    return sign_in_of(parameters, realm="urn:shop", callbacks=CALLBACKS)


def test_a_minimal_request_uses_the_first_registered_address() -> None:
    assert asked() == SignIn("urn:shop", CALLBACKS[0])


def test_a_stored_request_is_restored_unchanged() -> None:
    found = asked(wreply=CALLBACKS[1], wctx="c", whr="urn:corp", wfresh="10", wauth="urn:oasis:names:tc:SAML:1.0:am:password")
    assert SignIn.of_state(found.state()) == found
    assert (found.reply, found.context, found.connection, found.max_age) == (CALLBACKS[1], "c", "corp", 600)
    assert found.factors == ("urn:oasis:names:tc:SAML:1.0:am:password",)


def test_our_own_parameter_for_the_connection_has_precedence_over_whr() -> None:
    assert asked(connection="people", whr="urn:corp").connection == "people"


@pytest.mark.parametrize(("wfresh", "seconds"), [("0", 0), ("1", 60), ("999999999", None)])
def test_freshness_is_read_in_minutes(wfresh: str, seconds: int | None) -> None:
    assert asked(wfresh=wfresh).max_age == seconds


@pytest.mark.parametrize("wfresh", ["-1", "soon", "1.5", "9" * 10, "٣"])
def test_invalid_freshness_is_refused(wfresh: str) -> None:
    with pytest.raises(RequestRefused):
        asked(wfresh=wfresh)


@pytest.mark.parametrize("address", ["https://app.example.test/wsfed/", "https://evil.example.test", "javascript:alert(1)"])
def test_an_address_that_does_not_equal_a_registered_address_gets_no_token(address: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        asked(wreply=address)
    assert refused.value.case is LoginCase.CALLBACK_MISMATCH


@pytest.mark.parametrize("callbacks", [(), ("https://*.example.test/x",), ("com.example.app:/callback",)])
def test_a_request_is_refused_if_no_address_can_receive_a_form(callbacks: tuple[str, ...]) -> None:
    with pytest.raises(RequestRefused) as refused:
        reply_address("", callbacks)
    assert refused.value.case is LoginCase.NO_CALLBACK


@pytest.mark.parametrize("name", ["wreq", "wreqptr"])
def test_an_embedded_request_is_refused(name: str) -> None:
    with pytest.raises(RequestRefused):
        asked(**{name: "<xml/>"})


def test_repeated_and_overlong_parameters_are_refused() -> None:
    assert read_parameters({"wa": ["wsignin1.0"], "unknown": ["a", "b"], "wctx": [""]}) == {"wa": "wsignin1.0"}
    for odd in ({"wtrealm": ["a", "b"]}, {"wctx": ["x" * 20_000]}, {"whr": ["x" * 2_000]}):
        with pytest.raises(RequestRefused):
            read_parameters(odd)


@pytest.mark.parametrize(
    ("realm", "client_id"), [("urn:abc1", "abc1"), ("abc1", ""), ("urn:a/b", ""), ("urn:", ""), (f"urn:{'a' * 65}", "")]
)
def test_a_realm_can_be_the_id_of_a_client(realm: str, client_id: str) -> None:
    assert client_realm(realm) == client_id
