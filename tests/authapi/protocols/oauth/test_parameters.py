"""Parameters of `/authorize`, checked without a database: each refusal, and whether the user or the client gets the error."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from oauthlib.oauth2 import InvalidRequestError

from authapi.clients.origins import web_origin_of
from authapi.failures import Case, RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.protocols.oauth.authorization_request import AuthorizationRequest, ClientFacts, Target
from authapi.protocols.oauth.engine import server
from authapi.protocols.oauth.parameters import checked, read, single, target_of

CALLBACK = "https://app.example.test/callback?tenant=1"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
GOOD = {"client_id": "c", "response_type": "code", "redirect_uri": CALLBACK, "code_challenge": CHALLENGE, "code_challenge_method": "S256"}
FACTS: dict[str, Any] = {
    "client_id": "c",
    "callbacks": (CALLBACK, "https://app.example.test/other", "com.example.app:/done"),
    "web_origins": ("https://app.example.test",),
    "grant_types": frozenset({"authorization_code", "implicit"}),
}


def judged(sent: dict[str, str] | list[tuple[str, str]], **facts: Any) -> AuthorizationRequest:
    client = ClientFacts(**{**FACTS, **facts})
    parameters = read(sent.items() if isinstance(sent, dict) else sent)
    return checked(parameters, client, target_of(parameters, client))


def with_changes(**changes: str | None) -> dict[str, str]:
    return {name: value for name, value in {**GOOD, **changes}.items() if value is not None}


# --- Errors shown to the user, because no trusted URL is known yet ----------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "https://app.example.test/callback",
        "https://app.example.test/callback?tenant=2",
        "https://app.example.test/callback?tenant=1&more=1",
        "https://app.example.test/callback?tenant=1#",
        "https://app.example.test/callback?tenant=1/",
        "https://app.example.test/Callback?tenant=1",
        "https://APP.example.test/callback?tenant=1",
        "https://app.example.test:443/callback?tenant=1",
        "http://app.example.test/callback?tenant=1",
        "https://app.example.test/./callback?tenant=1",
        "https://app.example.test/x/../callback?tenant=1",
        "https://app.example.test/%63allback?tenant=1",
        "https://app.example.test@evil.test/callback?tenant=1",
        "https://user@app.example.test/callback?tenant=1",
        "https://app.example.test.evil.test/callback?tenant=1",
        "https://evil.test/?https://app.example.test/callback?tenant=1",
        "https://evil.test/callback?tenant=1",
        "//app.example.test/callback?tenant=1",
        "/callback?tenant=1",
        "https:app.example.test/callback?tenant=1",
        "https://app.example.test\\@evil.test/callback?tenant=1",
        " https://app.example.test/callback?tenant=1",
        "https://app.example.test/callback?tenant=1 ",
        "https://app.example.test/callback?tenant=1\t",
        "javascript:alert(1)",
        "data:text/html,x",
        "com.example.app:/Done",
        "com.example.app://done",
        f"{CALLBACK} https://evil.test/",
    ],
)
def test_a_redirect_uri_that_does_not_equal_a_registered_uri_is_refused(address: str) -> None:
    client = ClientFacts(**FACTS)
    with pytest.raises(RequestRefused) as refused:
        target_of(read(with_changes(redirect_uri=address).items()), client)
    assert refused.value.case is LoginCase.CALLBACK_MISMATCH


def test_a_client_without_callbacks_is_refused() -> None:
    with pytest.raises(RequestRefused) as refused:
        target_of(read(with_changes(redirect_uri=None).items()), ClientFacts("c"))
    assert refused.value.case is LoginCase.NO_CALLBACK


@pytest.mark.parametrize("name", ["client_id", "redirect_uri"])
def test_a_parameter_that_determines_the_redirect_may_occur_only_once(name: str) -> None:
    parameters = read([*GOOD.items(), (name, "https://app.example.test/other")])
    with pytest.raises(RequestRefused) as refused:
        single(parameters, name)
    assert refused.value.case is RequestCase.REPEATED_PARAMETER


@pytest.mark.parametrize("origins", [(), ("https://other.example.test",), ("http://app.example.test",), ("https://app.example.test:8443",)])
def test_a_web_message_is_sent_only_to_registered_origins(origins: tuple[str, ...]) -> None:
    with pytest.raises(RequestRefused) as refused:
        judged(with_changes(response_mode="web_message"), web_origins=origins)
    assert refused.value.case is OAuthCase.WEB_ORIGIN_NOT_ALLOWED


@pytest.mark.parametrize("sent", [{"state": "a\x00b"}, {"state": "x" * 10_240}])
def test_a_value_that_cannot_be_stored_is_refused(sent: dict[str, str]) -> None:
    with pytest.raises(RequestRefused) as refused:
        judged({**GOOD, **sent})
    assert refused.value.case is RequestCase.MALFORMED_REQUEST


# --- Errors sent to the client -------------------------------------------------------------------------------------------

CODE_ALONE: dict[str, Any] = {"grant_types": frozenset({"authorization_code"})}
REFUSALS: dict[str, tuple[dict[str, str | None], dict[str, Any], Case]] = {
    "no response type": ({"response_type": None}, {}, RequestCase.MISSING_PARAMETER),
    "unset response type": ({"response_type": "undefined"}, {}, RequestCase.MISSING_PARAMETER),
    "unknown response type": ({"response_type": "code banana"}, {}, OAuthCase.UNSUPPORTED_RESPONSE_TYPE),
    "response type none": ({"response_type": "none"}, {}, OAuthCase.UNSUPPORTED_RESPONSE_TYPE),
    "blank response type": ({"response_type": " "}, {}, OAuthCase.UNSUPPORTED_RESPONSE_TYPE),
    "code not enabled": ({}, {"grant_types": frozenset({"implicit"})}, OAuthCase.RESPONSE_TYPE_NOT_ALLOWED),
    "implicit not enabled": ({"response_type": "token"}, CODE_ALONE, OAuthCase.RESPONSE_TYPE_NOT_ALLOWED),
    "only half of hybrid enabled": ({"response_type": "code id_token", "nonce": "n"}, CODE_ALONE, OAuthCase.RESPONSE_TYPE_NOT_ALLOWED),
    "unknown mode": ({"response_mode": "jwt"}, {}, RequestCase.MALFORMED_REQUEST),
    "tokens in the query": ({"response_type": "token", "response_mode": "query"}, {}, RequestCase.MALFORMED_REQUEST),
    "no nonce": ({"response_type": "id_token"}, {}, RequestCase.MISSING_PARAMETER),
    "no nonce in hybrid": ({"response_type": "code id_token"}, {}, RequestCase.MISSING_PARAMETER),
    "public without PKCE": ({"code_challenge": None, "code_challenge_method": None}, {"is_public": True}, RequestCase.MISSING_PARAMETER),
    "method without challenge": ({"code_challenge": None}, {}, RequestCase.MISSING_PARAMETER),
    "plain": ({"code_challenge_method": "plain"}, {}, RequestCase.MALFORMED_REQUEST),
    "plain by default": ({"code_challenge_method": None}, {}, RequestCase.MALFORMED_REQUEST),
    "unknown method": ({"code_challenge_method": "S512"}, {}, RequestCase.MALFORMED_REQUEST),
    "method in lower case": ({"code_challenge_method": "s256"}, {}, RequestCase.MALFORMED_REQUEST),
    "challenge too short": ({"code_challenge": "short"}, {}, RequestCase.MALFORMED_REQUEST),
    "invalid base64url challenge": ({"code_challenge": CHALLENGE[:-1] + "="}, {}, RequestCase.MALFORMED_REQUEST),
    "plain challenge too short": (
        {"code_challenge": "x" * 42, "code_challenge_method": "plain"}, {"takes_plain": True}, RequestCase.MALFORMED_REQUEST,
    ),
    "unknown prompt": ({"prompt": "banana"}, {}, RequestCase.MALFORMED_REQUEST),
    "prompt none with another prompt": ({"prompt": "none login"}, {}, RequestCase.MALFORMED_REQUEST),
    "negative max_age": ({"max_age": "-1"}, {}, RequestCase.MALFORMED_REQUEST),
    "max_age in Arabic digits": ({"max_age": "\u0661"}, {}, RequestCase.MALFORMED_REQUEST),
    "max_age too large": ({"max_age": "9999999999"}, {}, RequestCase.MALFORMED_REQUEST),
    "request object": ({"request": "e.y.J"}, {}, OAuthCase.REQUEST_OBJECT_NOT_SUPPORTED),
    "request uri": ({"request_uri": "https://a.test/"}, {}, OAuthCase.REQUEST_URI_NOT_SUPPORTED),
    "registration": ({"registration": "{}"}, {}, OAuthCase.REGISTRATION_NOT_SUPPORTED),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_each_invalid_request_gets_the_expected_error(name: str) -> None:
    changes, facts, case = REFUSALS[name]
    with pytest.raises(RequestRefused) as refused:
        judged(with_changes(**changes), **facts)
    assert refused.value.case is case


@pytest.mark.parametrize("name", ["scope", "state", "response_type", "code_challenge", "unknown"])
def test_a_repeated_parameter_is_refused(name: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        judged([*GOOD.items(), (name, "a"), (name, "b")])
    assert refused.value.case is RequestCase.REPEATED_PARAMETER


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"response_mode": "jwt"}, "Unsupported response mode: jwt"),
        ({"response_type": "token", "response_mode": "query"}, "The response mode query cannot carry tokens."),
        ({"code_challenge_method": "S512"}, "The code_challenge_method must be S256."),
        ({"code_challenge": "short"}, "The code_challenge is not valid for the method S256."),
        ({"max_age": "1e3"}, "The max_age must be a number of seconds."),
        ({"prompt": "none login"}, "The prompt none excludes other prompts."),
        ({"dpop_jkt": "short"}, "The dpop_jkt is not the thumbprint of a key."),
    ],
)
def test_a_malformed_request_gets_an_error_that_names_the_reason(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        judged(with_changes(**changes))
    assert reason in str(refused.value.failure.description)


@pytest.mark.parametrize(
    ("changes", "reads_resource", "case"),
    [
        ({}, True, OAuthCase.INVALID_TARGET),
        ({}, False, RequestCase.REPEATED_PARAMETER),
        ({"audience": "urn:orders"}, True, None),
        ({"audience": "urn:orders"}, False, RequestCase.REPEATED_PARAMETER),
    ],
)
def test_a_repeated_parameter_resource_is_ignored_only_beside_an_audience(
    changes: dict[str, str], reads_resource: bool, case: Case | None
) -> None:
    sent = [*with_changes(**changes).items(), ("resource", "urn:a"), ("resource", "urn:b")]
    if case is None:
        assert judged(sent, reads_resource=reads_resource).audience == "urn:orders"
        return
    with pytest.raises(RequestRefused) as refused:
        judged(sent, reads_resource=reads_resource)
    assert refused.value.case is case


def test_a_repeated_scope_is_refused_even_if_the_parameter_resource_may_be_repeated() -> None:
    with pytest.raises(RequestRefused) as refused:
        judged([*GOOD.items(), ("scope", "a"), ("scope", "b")], reads_resource=True)
    assert refused.value.case is RequestCase.REPEATED_PARAMETER


def test_an_error_repeats_at_most_200_characters_of_an_origin() -> None:
    address = f"https://{'a' * 300}.example.test/"
    with pytest.raises(RequestRefused) as refused:
        judged(with_changes(redirect_uri=address, response_mode="web_message"), callbacks=(address,))
    told = str(refused.value.failure.description)
    assert (address[:200] in told, address[:201] in told) == (True, False)


def test_a_refusal_by_the_oauth_library_has_the_error_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(request: Any) -> None:
        raise InvalidRequestError(description="Of the engine.")

    monkeypatch.setattr(server().response_types["code"].custom_validators, "post_auth", [refuse])
    with pytest.raises(RequestRefused) as refused:
        judged(GOOD)
    assert (refused.value.failure.error, refused.value.failure.description) == ("invalid_request", "Of the engine.")


def test_a_parameter_with_the_name_of_an_internal_attribute_of_a_request_is_ignored() -> None:
    names = ("client", "user", "scopes", "types", "target", "extra_credentials", "details")
    assert judged({**GOOD, **dict.fromkeys(names, "{")}) == judged(GOOD)


# --- Accepted requests ----------------------------------------------------------------------------------------------------


def test_the_checked_request_has_the_values_of_its_parameters() -> None:
    asked = judged(with_changes(audience="urn:orders", max_age="60", prompt="login", state="s", claims='{"id_token":{"nickname":null}}'))
    assert (asked.audience, asked.max_age, asked.prompts, asked.target.state) == ("urn:orders", 60, frozenset({"login"}), "s")
    assert (asked.is_redirect_uri_given, asked.code_challenge, asked.code_challenge_method) == (True, CHALLENGE, "S256")
    assert asked.claims != judged(GOOD).claims


def test_no_value_that_proves_an_identity_is_in_the_representation_of_a_request() -> None:
    secret = {"id_token_hint": "a.b.c-hint", "invitation": "ticket-1"}
    text = repr(judged({**GOOD, **secret}))
    assert [value for value in (CHALLENGE, *secret.values()) if value in text] == []


def test_parameters_of_exactly_10240_characters_are_accepted() -> None:
    rest = 10_240 - sum(map(len, GOOD.values()))
    assert judged({**GOOD, "state": "x" * rest}).target.state == "x" * rest
    with pytest.raises(RequestRefused):
        judged({**GOOD, "state": "x" * (rest + 1)})


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_set_of_response_types_is_accepted_in_any_order(size: int) -> None:
    for words in itertools.permutations(("code", "token", "id_token"), size):
        asked = judged(with_changes(response_type=" ".join(words), nonce="n"))
        assert asked.response_types == frozenset(words)
        assert asked.target.mode == ("query" if words == ("code",) else "fragment")


@pytest.mark.parametrize("mode", ["form_post", "web_message", "fragment"])
def test_a_requested_response_mode_is_used_for_any_response_type(mode: str) -> None:
    for response_type in ("code", "token", "id_token token"):
        assert judged(with_changes(response_type=response_type, response_mode=mode, nonce="n")).target.mode == mode


def test_the_first_callback_is_used_if_the_request_names_no_redirect_uri() -> None:
    asked = judged(with_changes(redirect_uri=None))
    assert (asked.target, asked.is_redirect_uri_given) == (Target(CALLBACK, "query"), False)


def test_a_confidential_client_may_omit_pkce_but_needs_a_setting_for_plain_challenges() -> None:
    assert judged(with_changes(code_challenge=None, code_challenge_method=None)).code_challenge == ""
    assert judged(with_changes(code_challenge="x" * 43, code_challenge_method=None), takes_plain=True).code_challenge_method == "plain"


def test_unset_values_count_as_absent_and_unknown_names_are_ignored() -> None:
    asked = judged(with_changes(scope="", audience="undefined", prompt="", max_age="", response_mode="", auth0Client="e30", owp="1"))
    assert (asked.scope, asked.audience, asked.prompts, asked.max_age) == ("openid", None, frozenset(), None)


def test_an_error_is_sent_in_the_response_mode_of_the_answer() -> None:
    client = ClientFacts(**FACTS)
    for response_type, mode, expected in [
        ("", "", "query"),
        ("code", "fragment", "fragment"),
        ("token", "query", "fragment"),
        ("banana", "", "fragment"),
        ("", "form_post", "form_post"),
    ]:
        parameters = read(with_changes(response_type=response_type, response_mode=mode).items())
        assert target_of(parameters, client).mode == expected


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://a.test/x", "https://a.test"), ("https://A.test:443", "https://a.test"), ("http://a.test:80/", "http://a.test"),
        ("http://127.0.0.1:3000/cb", "http://127.0.0.1:3000"), ("http://[::1]:3000/", "http://[::1]:3000"), ("com.app:/x", ""),
        ("https://u@a.test/", "https://a.test"), ("https://a.test:x/", ""), ("https:///x", ""), ("*", ""),
    ],
)  # fmt: skip
def test_the_origin_of_a_url_is_computed_as_in_a_browser(address: str, origin: str) -> None:
    assert web_origin_of(address) == origin
