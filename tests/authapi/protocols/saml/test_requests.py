"""Requests of applications: parsing, required signatures, and refusals with helpful texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from authapi.protocols.saml.names import PROTECTED_PASSWORD_CLASS, UNSPECIFIED_CLASS, UNSUPPORTED_BINDING
from authapi.protocols.saml.requests import AuthnRequest, RequestUnusable, Sent, chosen_context, read_request, stated_issuer, unsupported
from authapi.protocols.saml.settings import SamlSettings, settings_of
from authapi.xml.algorithms import RSA_SHA1
from authapi.xml.bindings import HTTP_POST, HTTP_REDIRECT, REQUEST
from authapi.xml.building import element
from authapi.xml.names import SAML, SAMLP, qualified
from authapi.xml.parsing import Element, deflated, serialized
from tests.authapi.protocols.saml.requests_of_applications import (
    ENTRY,
    OTHER_SIGNER,
    SIGNER,
    authn_request,
    contexts,
    encoded,
    logout_message,
    policy,
    posted,
    redirected,
)
from tests.authapi.xml.signed_messages import trusted

UNSIGNED = SamlSettings()
SIGNED = SamlSettings(signing_certificates=(trusted("second"), trusted()))
MFA = "https://refeds.org/profile/mfa"


def read(sent: Sent, settings: SamlSettings = UNSIGNED) -> AuthnRequest:
    return read_request(sent, settings, addresses=frozenset({ENTRY}))


@pytest.mark.parametrize("travel", [redirected, posted])
def test_every_member_of_a_request_is_read(travel: Any) -> None:
    subject = element(qualified(SAML, "Subject"), None, element(qualified(SAML, "NameID"), None, "ada@example.test"))
    message = authn_request(
        subject,
        policy("urn:x"),
        contexts("urn:a", "urn:b", comparison="minimum"),
        AssertionConsumerServiceURL="https://sp.test/acs",
        Destination=ENTRY,
        ProtocolBinding=HTTP_POST,
        ForceAuthn="true",
        IsPassive="0",
    )
    asked = read(travel(message, "where to"))
    assert asked == AuthnRequest(
        id="_request",
        issuer="urn:sp",
        destination=ENTRY,
        address="https://sp.test/acs",
        binding=HTTP_POST,
        is_forced=True,
        name_id_format="urn:x",
        contexts=("urn:a", "urn:b"),
        comparison="minimum",
        subject="ada@example.test",
        relay_state="where to",
    )
    assert AuthnRequest.of_state(asked.state()) == asked


def test_a_message_may_be_compressed_or_uncompressed_in_both_bindings() -> None:
    raw = serialized(authn_request())
    for sent in (raw, deflated(raw), b"\xef\xbb\xbf\n" + raw):
        for query in (None, "SAMLRequest=x"):
            assert read(Sent(REQUEST, encoded(sent), query=query)).id == "_request"


def test_the_index_of_an_assertion_consumer_service_is_read() -> None:
    assert read(posted(authn_request(AssertionConsumerServiceIndex="3"))).address_index == 3


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (authn_request(ID=None), "no ID"),
        (authn_request(issuer=None), "no Issuer"),
        (authn_request(Version="1.1"), "version 2.0"),
        (authn_request(Destination="https://other.test/samlp/abc"), "Destination"),
        (authn_request(IsPassive="yes"), "neither true nor false"),
        (authn_request(AssertionConsumerServiceIndex="-1"), "not an index"),
        (authn_request(AssertionConsumerServiceURL="https://x.test/" + "x" * 2048), "more than 2048"),
        (authn_request(contexts(*["urn:a"] * 21)), "more than 20"),
        (logout_message(), "AuthnRequest of SAML 2.0 is expected"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_refusal_explains_the_error(message: Element, says: str) -> None:
    with pytest.raises(RequestUnusable, match=says):
        read(posted(message))


@pytest.mark.parametrize("text", ["", "x", "!!!!", encoded(b"<a"), encoded(deflated(b"<!DOCTYPE a><a/>")), encoded(b"<!DOCTYPE a><a/>")])
def test_an_invalid_message_is_refused_in_both_bindings(text: str) -> None:
    for query in (None, "SAMLRequest=x"):
        with pytest.raises(RequestUnusable, match="refused"):
            read(Sent(REQUEST, text, query=query))


def test_a_long_relay_state_is_refused() -> None:
    with pytest.raises(RequestUnusable, match="RelayState"):
        read(posted(authn_request(), "x" * 4097))


@pytest.mark.parametrize("travel", [redirected, posted])
def test_a_signed_request_is_accepted(travel: Any) -> None:
    assert read(travel(authn_request(), "a&b=c d", SIGNER), SIGNED).id == "_request"


@pytest.mark.parametrize("travel", [redirected, posted])
def test_a_signature_is_required_once_a_certificate_is_registered(travel: Any) -> None:
    with pytest.raises(RequestUnusable, match="not signed"):
        read(travel(authn_request()), SIGNED)


@pytest.mark.parametrize("travel", [redirected, posted])
def test_a_signature_of_another_key_is_refused(travel: Any) -> None:
    with pytest.raises(RequestUnusable, match="trusted certificates"):
        read(travel(authn_request(), "", OTHER_SIGNER), replace(SIGNED, signing_certificates=(trusted(),)))


@pytest.mark.parametrize("travel", [redirected, posted])
def test_only_an_application_whose_settings_name_sha1_may_use_sha1(travel: Any) -> None:
    sent = travel(authn_request(), "", replace(SIGNER, signature=RSA_SHA1))
    with pytest.raises(RequestUnusable, match="SHA-1"):
        read(sent, SIGNED)
    assert read(sent, replace(SIGNED, signature="rsa-sha1")).id == "_request"


@pytest.mark.parametrize("other", ["https://sp.test/other", ""])
def test_the_signature_of_a_url_covers_the_relay_state(other: str) -> None:
    sent = redirected(authn_request(), "https://sp.test/there", SIGNER)
    assert sent.query is not None
    changed = sent.query.replace("RelayState=https%3A%2F%2Fsp.test%2Fthere", f"RelayState={other}")
    assert changed != sent.query
    with pytest.raises(RequestUnusable):
        read(replace(sent, query=changed, relay_state=other), SIGNED)


def test_the_signature_of_a_url_covers_the_exact_bytes() -> None:
    """Senders escape different characters, and some write escapes in lower case. So the receiver must not encode the query again."""
    sent = redirected(authn_request(), "a b", replace(SIGNER))
    assert sent.query is not None
    other_spelling = sent.query.replace("%2F", "%2f").replace("%3D", "%3d").replace("%2B", "%2b")
    assert other_spelling != sent.query
    with pytest.raises(RequestUnusable):
        read(replace(sent, query=other_spelling), SIGNED)


def test_parameters_of_this_service_are_allowed_in_the_query_of_a_signed_message() -> None:
    sent = redirected(authn_request(), "", SIGNER)
    assert read(replace(sent, query=f"connection=people&{sent.query}&organization=x"), SIGNED).id == "_request"


@pytest.mark.parametrize("name", ["SAMLRequest", "SAML%52equest", "SigAlg", "Signature", "RelayState"])
def test_a_repeated_parameter_is_refused(name: str) -> None:
    sent = redirected(authn_request(), "x", SIGNER)
    with pytest.raises(RequestUnusable, match="repeated"):
        read(replace(sent, query=f"{name}=x&{sent.query}"), SIGNED)


def test_the_issuer_of_an_unverified_message_can_be_read() -> None:
    assert stated_issuer(posted(authn_request())) == "urn:sp"
    assert stated_issuer(redirected(authn_request(issuer=None))) == ""


def test_a_request_may_name_only_the_post_binding_for_the_response() -> None:
    assert unsupported(AuthnRequest(id="_x", binding=HTTP_REDIRECT)) == UNSUPPORTED_BINDING
    assert unsupported(AuthnRequest(id="_x", binding=HTTP_POST)) == unsupported(AuthnRequest()) == ""


@pytest.mark.parametrize(
    ("wanted", "comparison", "has_second_factor", "chosen"),
    [
        ((), "exact", False, UNSPECIFIED_CLASS),
        ((PROTECTED_PASSWORD_CLASS,), "exact", False, PROTECTED_PASSWORD_CLASS),
        (("urn:unknown", PROTECTED_PASSWORD_CLASS), "exact", False, PROTECTED_PASSWORD_CLASS),
        (("urn:unknown",), "exact", True, None),
        ((MFA,), "exact", False, None),
        ((MFA,), "exact", True, MFA),
        ((MFA, PROTECTED_PASSWORD_CLASS), "exact", False, PROTECTED_PASSWORD_CLASS),
        ((PROTECTED_PASSWORD_CLASS,), "minimum", True, PROTECTED_PASSWORD_CLASS),
        ((PROTECTED_PASSWORD_CLASS,), "better", False, None),
        ((PROTECTED_PASSWORD_CLASS,), "better", True, MFA),
        ((MFA,), "maximum", False, UNSPECIFIED_CLASS),
    ],
)
def test_the_context_class_of_the_response_is_one_of_the_requested_classes(
    wanted: tuple[str, ...], comparison: str, has_second_factor: bool, chosen: str | None
) -> None:
    asked = AuthnRequest(id="_x", contexts=wanted, comparison=comparison)
    assert chosen_context(asked, UNSIGNED, has_second_factor=has_second_factor) == chosen


def test_the_configured_context_class_is_used_for_every_login() -> None:
    settings = settings_of({"authnContextClassRef": "urn:ours"})
    assert chosen_context(AuthnRequest(), settings, has_second_factor=False) == "urn:ours"
    asked = AuthnRequest(id="_x", contexts=("urn:ours",))
    assert chosen_context(asked, settings, has_second_factor=False) == "urn:ours"


def test_a_request_in_another_namespace_is_refused() -> None:
    with pytest.raises(RequestUnusable, match="type Envelope"):
        read(posted(element(qualified("urn:soap", "Envelope"), {"Version": "2.0"}, element(qualified(SAMLP, "AuthnRequest")))))
