"""The metadata and messages of this service for external SAML providers, checked against the schemas of OASIS and W3C."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from authapi.upstream.saml.claims import NameId
from authapi.upstream.saml.options import read_options
from authapi.upstream.saml.own_metadata import own_metadata
from authapi.upstream.saml.provider import SamlProvider, provider_of
from authapi.upstream.saml.requests import login_request, logout_request, logout_response
from authapi.xml.bindings import Signer
from authapi.xml.parsing import Element, serialized
from tests.factories.saml_provider import OTHER, SIGN_IN, SIGN_OUT, SIGNING
from tests.peers.test_saml_schemas import judge, pytestmark  # noqa: F401 (the marks of a module)

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
NAME = NameId("248289", "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent", "https://idp.example.test", "urn:auth0:acme:corp")


def provider() -> SamlProvider:
    options = read_options({"signInEndpoint": SIGN_IN, "signOutEndpoint": SIGN_OUT, "signingCert": SIGNING.text})
    return provider_of(options, None, tenant_id="acme", connection="corp")


def login() -> Element:
    contexts = ("urn:oasis:names:tc:SAML:2.0:ac:classes:Password",)
    acs = "https://acme.example.test/login/callback?connection=corp"
    return login_request(provider(), request_id="_1", acs=acs, now=NOW, is_forced=True, contexts=contexts)


def logout() -> Element:
    return logout_request(provider(), destination=SIGN_OUT, request_id="_1", name_id=NAME, session_index="_session", now=NOW)


def answer() -> Element:
    return logout_response(provider(), destination=SIGN_OUT, response_id="_1", in_response_to="_2", now=NOW, is_complete=False)


@pytest.mark.parametrize("message", [login, logout, answer])
@pytest.mark.parametrize("is_signed", [False, True])
def test_a_message_for_a_provider_is_valid(message: Callable[[], Element], is_signed: bool) -> None:
    made = message()
    judge(serialized(Signer(SIGNING.private, SIGNING.certificate).signed(made) if is_signed else made))


def test_the_metadata_of_this_service_for_a_provider_is_valid() -> None:
    judge(
        own_metadata(
            entity_id="urn:auth0:acme:corp",
            acs="https://acme.example.test/login/callback?connection=corp",
            logout="https://acme.example.test/logout?connection=corp",
            signing=[SIGNING.certificate, OTHER.certificate],
            encryption=[SIGNING.certificate],
            signs_requests=True,
        )
    )
