"""Clients request a second factor by OpenID Connect, SAML or WS-Federation. The same policy applies, and responses contain the methods
used."""

from __future__ import annotations

import json

import pytest

from authapi.models import Session
from authapi.protocols.saml.names import PASSWORD_CLASS, PROTECTED_PASSWORD_CLASS, SECOND_FACTOR_CLASSES
from authapi.protocols.saml.requests import AuthnRequest, wished_contexts
from authapi.protocols.saml.settings import saml_settings
from authapi.tokens.contexts import ANY_LOGIN, SECOND_FACTORS
from identity.models import User
from tests.authapi.browser import Browser
from tests.authapi.factors.walks import Walk, app_code, give_app, set_factors
from tests.authapi.login.conftest import Login, set_client
from tests.authapi.protocols.legacy.conftest import OldClient
from tests.authapi.protocols.legacy.conftest import old as old
from tests.authapi.protocols.legacy.test_account_links import BOB, agree, begin, logged_in, token_of, told
from tests.authapi.protocols.legacy.test_account_links import bob as bob
from tests.authapi.protocols.legacy.test_account_links import log_in as log_in_to_link
from tests.authapi.protocols.oauth.test_asked_claims import Asking
from tests.authapi.protocols.oauth.test_asked_claims import login as login
from tests.authapi.protocols.saml.conftest import Application
from tests.authapi.protocols.saml.conftest import application as application
from tests.authapi.protocols.saml.requests_of_applications import authn_request, contexts
from tests.factories.sign_in import PASSWORD, people, person, web_client

MFA = SECOND_FACTORS[0]
ASKS, SETS_UP = "Confirm that it is you", "Protect your account"


def test_a_requested_context_is_proven_and_is_in_the_id_token(login: Asking) -> None:
    set_factors(login.tenant, "otp")
    walk = Walk(login)
    # The policy requires no factor from a user who has no factor. So here only the request of the client requires a factor.
    assert "code" in walk.to_second().answer
    essential = json.dumps({"id_token": {"acr": {"essential": True, "values": [MFA]}}})
    assert SETS_UP in walk.again(acr_values=MFA).text
    assert SETS_UP in walk.again(claims=essential).text
    assert "code" in walk.again(acr_values=f"{ANY_LOGIN} {MFA}").answer
    secret, _ = give_app(login.user)
    for asked in ({"acr_values": MFA}, {"claims": essential}):
        silent = login.ask(prompt="none", **asked)
        assert (silent.answer["error"], silent.answer["error_description"]) == ("login_required", "Multifactor authentication required")
    page = walk.again(acr_values=MFA)
    assert ASKS in page.text
    claims = login.id_token(walk.browser.submit(page, code=app_code(secret)))
    assert (claims["acr"], sorted(claims["amr"])) == (MFA, ["mfa", "otp", "pwd"])
    # Single sign-on: one proof is valid for every client, without a page.
    set_client(login, settings={"second_factor_policy": "always"})
    assert "code" in login.ask(prompt="none", claims=essential).answer


def test_a_client_cannot_request_a_second_factor_if_its_policy_excludes_factors(login: Asking) -> None:
    set_factors(login.tenant, "otp")
    give_app(login.user)
    set_client(login, settings={"second_factor_policy": "never"})
    walk = Walk(login)
    assert "code" in walk.to_second().answer
    essential = json.dumps({"id_token": {"acr": {"essential": True, "values": [MFA]}}})
    answer = walk.followed(login.log_in(walk.again(claims=essential)))
    assert answer.answer["error"] == "unmet_authentication_requirements"


@pytest.mark.parametrize(
    ("asked", "comparison", "wished"),
    [
        ((MFA,), "exact", (MFA,)),
        ((MFA, PROTECTED_PASSWORD_CLASS), "exact", (MFA,)),
        ((PROTECTED_PASSWORD_CLASS, MFA), "exact", ()),
        ((PASSWORD_CLASS,), "minimum", ()),
        ((MFA,), "minimum", (MFA,)),
        ((PROTECTED_PASSWORD_CLASS,), "better", SECOND_FACTOR_CLASSES),
        ((MFA,), "better", ()),
        ((MFA,), "maximum", ()),
        ((), "better", ()),
    ],
)
def test_contexts_and_comparison_of_a_saml_request_decide_whether_a_factor_is_required(
    asked: tuple[str, ...], comparison: str, wished: tuple[str, ...]
) -> None:
    request = AuthnRequest(id="_x", contexts=asked, comparison=comparison)
    assert wished_contexts(request, saml_settings({})) == wished


def test_a_service_provider_gets_the_class_that_it_requests(application: Application) -> None:
    set_factors(application.tenant, "otp")
    secret, _ = give_app(application.user)
    set_client_of(application, "on-request")
    application.user.enrolled_factors.update(is_confirmed=False)
    plain = application.answered(application.log_in(application.ask(authn_request(contexts(PROTECTED_PASSWORD_CLASS, MFA)))))
    assert plain.at("AuthnStatement", "AuthnContext", "AuthnContextClassRef").text == PROTECTED_PASSWORD_CLASS
    application.user.enrolled_factors.update(is_confirmed=True)
    silent = application.answered(application.ask(authn_request(contexts(MFA), IsPassive="true")))
    assert silent.codes == ["Responder", "NoPassive"]
    page = application.browser.follow(application.ask(authn_request(contexts(MFA))))
    assert ASKS in page.text
    answer = application.answered(application.browser.submit(page, code=app_code(secret)))
    assert answer.at("AuthnStatement", "AuthnContext", "AuthnContextClassRef").text == MFA


def set_client_of(application: Application, policy: str) -> None:
    client = application.client
    client.settings = {**client.settings, "second_factor_policy": policy}
    client.save(update_fields=["settings"])


def test_an_application_of_ws_federation_requests_a_second_factor_with_wauth(login: Asking) -> None:
    set_factors(login.tenant, "otp")
    secret, _ = give_app(login.user)
    reply = "https://app.example.test/wsfed"
    client, _ = web_client(login.tenant, redirect_uris=reply, settings={"addons": {"wsfed": {}}, "second_factor_policy": "on-request"})
    connection = people(login.tenant, client, name="others")
    user = person(connection, email="bob@example.test")
    browser = Browser(login.tenant)
    walk = Walk(Login(login.tenant, client, connection, user, browser))
    asked = {
        "wa": "wsignin1.0",
        "wtrealm": f"urn:{client.client_id}",
        "wauth": "http://schemas.microsoft.com/claims/multipleauthn",
    }
    form = walk.followed(browser.get("/wsfed", asked))
    page = walk.followed(browser.submit(form, username="bob@example.test", password=PASSWORD))
    assert SETS_UP in page.text
    assert secret


def test_a_stolen_password_cannot_link_an_account_that_has_a_second_factor(old: OldClient, bob: User) -> None:
    set_factors(old.tenant, "otp")
    give_app(bob)
    browser = logged_in(old)
    done = log_in_to_link(browser, agree(browser, begin(old, browser, token_of(old))), BOB)
    assert told(done) == ("login_required", "Multifactor authentication required")
    assert User.objects.of(old.tenant.pk).filter(pk=bob.pk).exists()
    # A half-proven session cannot confirm an account link for its user.
    token = token_of(old)
    give_app(old.user)
    page = begin(old, browser, token)
    assert page.location.startswith("/u/mfa?")
    state = browser.follow(page).fields()["state"]
    assert browser.get("/u/link-account", {"state": state}).location.startswith("/u/mfa?")
    assert Session.objects.of(old.tenant.pk).exists()
