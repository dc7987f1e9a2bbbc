"""Consent, choice of an account, and organizations, over the ASGI application."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from authapi import tasks, tenant_settings
from authapi.login.sessions import end_session
from authapi.login.transactions import kept_state
from authapi.models import AuthorizationCode, Consent, LoginTransaction, Session, TenantSettings
from authapi.services.api_resources import create_api_resource
from foundation.secrets.random_secrets import digest_of
from identity.models import Organization, OrganizationConnection, OrganizationMember
from identity.services.memberships import add_connection, add_members
from identity.services.organizations import create_organization
from tests.authapi.browser import Page
from tests.authapi.login.conftest import Login, set_client
from tests.factories.sign_in import person

API = "urn:orders"
SCOPES = [{"value": "read:orders", "description": "See what you have ordered"}, {"value": "write:orders"}]


@pytest.fixture
def foreign(login: Login) -> Login:
    """A third-party client, and an API."""
    create_api_resource(tenant_id=login.tenant.pk, identifier=API, scopes=SCOPES)
    set_client(login, is_first_party=False)
    return login


def consents(login: Login) -> list[tuple[str, list[str]]]:
    return [(row.audience, row.scopes) for row in Consent.objects.of(login.tenant.pk)]


def asked_page(login: Login, **changes: Any) -> Page:
    """Log in and stop at the consent page."""
    answer = login.log_in(login.ask(audience=API, scope="openid read:orders", **changes))
    assert answer.location.startswith("/u/consent?state="), answer.location
    return login.browser.follow(answer)


# --- Consent ----------------------------------------------------------------------------------------------------------------


def test_a_third_party_client_gets_no_response_before_the_user_consents(foreign: Login) -> None:
    page = asked_page(foreign)
    assert "See what you have ordered" in page.text
    assert "ada@example.test" in page.text
    silent = foreign.ask(audience=API, scope="openid read:orders", prompt="none")
    assert (silent.answer["error"], silent.answer["error_description"]) == ("consent_required", "Consent required")


def test_a_user_who_refuses_consent_is_redirected_to_the_client_with_an_error(foreign: Login) -> None:
    page = foreign.browser.submit(asked_page(foreign), answer="deny")
    assert page.answer == {
        "error": "access_denied",
        "error_description": "User did not authorize the request",
        "state": "the-state",
        "iss": foreign.issuer,
    }
    assert consents(foreign) == []


def test_consent_is_requested_again_only_for_a_further_scope(foreign: Login) -> None:
    assert "code" in foreign.browser.submit(asked_page(foreign), answer="allow").answer
    assert consents(foreign) == [(API, ["openid", "read:orders"])]
    assert "code" in foreign.ask(audience=API, scope="read:orders", prompt="none").answer
    more = foreign.ask(audience=API, scope="openid read:orders write:orders")
    page = foreign.browser.follow(more)
    assert "write:orders" in page.text
    assert "code" in foreign.browser.submit(page, answer="allow").answer
    assert consents(foreign) == [(API, ["openid", "read:orders", "write:orders"])]


def test_consent_to_the_profile_is_separate_from_consent_to_an_api(foreign: Login) -> None:
    foreign.browser.submit(asked_page(foreign), answer="allow")
    assert foreign.ask(scope="openid email", prompt="none").answer["error"] == "consent_required"


def test_consent_is_requested_again_if_the_client_requires_it(foreign: Login) -> None:
    foreign.browser.submit(asked_page(foreign), answer="allow")
    page = foreign.ask(audience=API, scope="read:orders", prompt="consent")
    assert page.location.startswith("/u/consent")
    assert "code" in foreign.browser.submit(foreign.browser.follow(page), answer="allow").answer
    assert foreign.ask(audience=API, scope="read:orders", prompt="consent").location.startswith("/u/consent")


def test_an_api_can_require_consent_even_for_first_party_clients(login: Login) -> None:
    create_api_resource(tenant_id=login.tenant.pk, identifier="urn:plain", scopes=SCOPES)
    settings = {"skip_consent_for_verifiable_first_party_clients": False}
    create_api_resource(tenant_id=login.tenant.pk, identifier="urn:strict", scopes=SCOPES, settings=settings)
    login.begin_session()
    assert "code" in login.ask(audience="urn:plain", scope="read:orders", prompt="none").answer
    assert login.ask(audience="urn:strict", scope="read:orders", prompt="none").answer["error"] == "consent_required"


def test_a_user_cannot_answer_the_consent_page_of_another_user(foreign: Login) -> None:
    page = asked_page(foreign)
    person(foreign.connection, email="eve@example.test")
    foreign.log_in(foreign.ask(prompt="login"), identifier="eve@example.test")
    again = foreign.browser.submit(page, answer="allow")
    assert (again.status, "eve@example.test" in again.text) == (200, True)
    assert consents(foreign) == []


def test_a_session_that_ends_during_the_consent_redirects_to_the_login(foreign: Login) -> None:
    page = asked_page(foreign)
    end_session(Session.objects.of(foreign.tenant.pk).get(), reason="session-revoked")
    assert foreign.browser.submit(page, answer="allow").location.startswith("/u/login?state=")
    assert consents(foreign) == []


def test_a_consent_that_another_site_posts_is_refused(foreign: Login) -> None:
    page = asked_page(foreign)
    fields = {**page.fields(), "answer": "allow", "form_token": "x"}
    assert foreign.browser.post("/u/consent", fields).status == 400
    assert consents(foreign) == []


# --- Choosing an account ------------------------------------------------------------------------------------------------------


def test_the_user_can_choose_the_current_account_or_another_account(login: Login) -> None:
    login.begin_session()
    page = login.browser.follow(login.ask(prompt="select_account"))
    assert "Continue as ada@example.test" in page.text
    assert "code" in login.browser.submit(page, answer=login.user.user_id).answer
    person(login.connection, email="eve@example.test")
    other = login.browser.submit(page, answer="")
    assert other.location.startswith("/u/login?state=")
    assert "code" in login.log_in(other, identifier="eve@example.test").answer
    assert Session.objects.of(login.tenant.pk).get().user.email == "eve@example.test"


def test_after_a_change_of_the_client_a_choice_of_account_ends_with_an_error(login: Login) -> None:
    login.begin_session()
    first = login.ask(prompt="select_account")
    set_client(login, grant_types=["implicit"])
    page = login.browser.follow(first)
    assert (page.status, "Continue as ada@example.test" in page.text) == (200, True)
    assert login.browser.submit(page, answer=login.user.user_id).answer["error"] == "unauthorized_client"


def test_the_choice_of_an_account_shows_an_error_after_the_callback_was_removed(login: Login) -> None:
    login.begin_session()
    first = login.ask(prompt="select_account")
    set_client(login, redirect_uris="https://app.example.test/other")
    page = login.browser.follow(first)
    assert (page.status, "Callback URL mismatch." in page.text) == (400, True)


# --- Organizations ------------------------------------------------------------------------------------------------------------


def organization(login: Login, **flags: Any) -> Organization:
    made = create_organization(tenant_id=login.tenant.pk, name="acme")
    add_connection(tenant_id=login.tenant.pk, organization_id=made.pk, connection_id=login.connection.pk, **flags)
    return made


@pytest.mark.parametrize(("usage", "asked", "text"), [
    ("deny", "org_x", "parameter organization is not allowed for this client"),
    (None, "org_x", "parameter organization is not allowed for this client"),
    ("require", None, "parameter organization is required for this client"),
    ("allow", "org_unknown", "parameter organization is invalid"),
    ("allow", "acme", "parameter organization is invalid"),
])  # fmt: skip
def test_a_request_that_does_not_fit_the_organization_setting_of_the_client_is_refused(
    login: Login, usage: str | None, asked: str | None, text: str
) -> None:
    organization(login)
    set_client(login, settings={"organization_usage": usage})
    page = login.ask(organization=asked)
    assert (page.answer["error"], page.answer["error_description"]) == ("invalid_request", text)


def test_a_user_who_is_not_a_member_is_refused(login: Login) -> None:
    acme = organization(login)
    set_client(login, settings={"organization_usage": "allow"})
    page = login.log_in(login.ask(organization=acme.pk))
    assert page.answer["error"] == "access_denied"
    assert page.answer["error_description"] == f"user {login.user.user_id} is not part of the {acme.pk} organization"


def test_a_member_can_log_in_and_a_connection_can_make_its_users_members(login: Login) -> None:
    acme = organization(login, assign_membership_on_login=True)
    set_client(login, settings={"organization_usage": "require"})
    assert "code" in login.log_in(login.ask(organization=acme.pk)).answer
    assert OrganizationMember.objects.of(login.tenant.pk).filter(organization=acme, user=login.user).count() == 1
    assert "code" in login.log_in(login.ask(organization=acme.pk, prompt="login")).answer


def test_an_organization_name_is_accepted_if_the_tenant_allows_names(login: Login) -> None:
    acme = organization(login)
    add_members(tenant_id=login.tenant.pk, organization_id=acme.pk, user_ids=[login.user.user_id])
    set_client(login, settings={"organization_usage": "allow"})
    TenantSettings(tenant=login.tenant, values={"allow_organization_name_in_authentication_api": True}).save()
    tenant_settings.remembered_settings.clear()
    assert "code" in login.log_in(login.ask(organization="ACME")).answer


def test_a_connection_that_is_not_enabled_for_the_organization_cannot_be_used(login: Login) -> None:
    acme = create_organization(tenant_id=login.tenant.pk, name="acme")
    set_client(login, settings={"organization_usage": "allow"})
    assert login.ask(organization=acme.pk).answer["error_description"] == "No connection is enabled for the client."


# --- Scheduled cleanup ----------------------------------------------------------------------------------------------------------


def test_expired_requests_are_deleted(login: Login) -> None:
    login.ask()
    LoginTransaction.objects.of(login.tenant.pk).update(expires_at=timezone.now())
    login.ask(state="another")
    tasks.prune()
    assert [kept_state(row)["state"] for row in LoginTransaction.objects.of(login.tenant.pk)] == ["another"]


# --- Choosing an organization -------------------------------------------------------------------------------------------------


def ask_before(login: Login) -> None:
    set_client(login, settings={"organization_usage": "require", "organization_require_behavior": "pre_login_prompt"})


def ask_after(login: Login, usage: str = "require") -> None:
    set_client(login, settings={"organization_usage": usage, "organization_require_behavior": "post_login_prompt"})


def memberships(login: Login, *names: str) -> list[Organization]:
    made = []
    for name in names:
        one = create_organization(tenant_id=login.tenant.pk, name=name, display_name=name.title())
        add_connection(tenant_id=login.tenant.pk, organization_id=one.pk, connection_id=login.connection.pk)
        add_members(tenant_id=login.tenant.pk, organization_id=one.pk, user_ids=[login.user.user_id])
        made.append(one)
    return made


def chosen(login: Login, answer: Page) -> str | None:
    """Return the organization in the tokens for the code of an answer."""
    row = AuthorizationCode.objects.of(login.tenant.pk).get(code=digest_of(answer.answer["code"]))
    return row.organization_id


def test_a_user_names_the_organization_before_the_login(login: Login) -> None:
    acme, _ = memberships(login, "acme", "globex")
    ask_before(login)
    answer = login.ask()
    assert answer.location.startswith("/u/organization?state=")
    page = login.browser.follow(answer)
    assert "Acme" not in page.text
    unknown = login.browser.submit(page, name="nobody")
    assert (unknown.status, "There is no organization with this name." in unknown.text) == (400, True)
    login_page = login.browser.submit(unknown, name=" ACME ")
    assert login_page.location.startswith("/u/login?state=")
    assert chosen(login, login.log_in(login_page)) == acme.pk


def test_a_user_who_names_an_organization_of_other_users_is_refused(login: Login) -> None:
    memberships(login, "acme")
    other = create_organization(tenant_id=login.tenant.pk, name="globex")
    add_connection(tenant_id=login.tenant.pk, organization_id=other.pk, connection_id=login.connection.pk)
    ask_before(login)
    answer = login.log_in(login.browser.submit(login.browser.follow(login.ask()), name="globex"))
    assert answer.answer["error_description"] == f"user {login.user.user_id} is not part of the {other.pk} organization"


def test_a_user_chooses_one_of_their_own_organizations_after_the_login(login: Login) -> None:
    memberships(login, "acme", "globex")
    create_organization(tenant_id=login.tenant.pk, name="initech")
    globex = Organization.objects.of(login.tenant.pk).get(name="globex")
    ask_after(login)
    answer = login.log_in(login.ask())
    assert answer.location.startswith("/u/organization?state=")
    page = login.browser.follow(answer)
    assert ("Acme" in page.text, "Globex" in page.text, "nitech" in page.text) == (True, True, False)
    assert chosen(login, login.browser.submit(page, answer=globex.pk)) == globex.pk


@pytest.mark.parametrize("answer", ["initech", "org_unknown", "none", "", "' OR 1 = 1"])
def test_a_user_cannot_choose_an_organization_of_other_users(login: Login, answer: str) -> None:
    memberships(login, "acme", "globex")
    create_organization(tenant_id=login.tenant.pk, name="initech")
    ask_after(login)
    page = login.browser.follow(login.log_in(login.ask()))
    refused = login.browser.submit(page, answer=answer)
    assert (refused.status, "You are not a member of this organization." in refused.text) == (400, True)


def test_a_member_of_only_one_organization_skips_the_choice(login: Login) -> None:
    (acme,) = memberships(login, "acme")
    ask_after(login)
    answer = login.log_in(login.ask())
    assert chosen(login, login.browser.follow(answer)) == acme.pk


def test_a_user_without_an_organization_can_log_in_only_if_the_organization_is_optional(login: Login) -> None:
    ask_after(login)
    refused = login.browser.follow(login.log_in(login.ask()))
    assert refused.answer["error_description"] == f"user {login.user.user_id} is not part of any organization"
    ask_after(login, usage="allow")
    assert chosen(login, login.browser.follow(login.ask())) is None


def test_a_user_can_continue_without_an_organization_if_it_is_optional(login: Login) -> None:
    memberships(login, "acme")
    ask_after(login, usage="allow")
    page = login.browser.follow(login.log_in(login.ask()))
    assert chosen(login, login.browser.submit(page, answer="none")) is None


def test_a_request_that_names_an_organization_skips_the_choice(login: Login) -> None:
    acme, _ = memberships(login, "acme", "globex")
    ask_after(login)
    assert chosen(login, login.log_in(login.ask(organization=acme.pk))) == acme.pk


def test_a_silent_request_continues_in_the_organization_of_the_session_without_a_page(login: Login) -> None:
    _, globex = memberships(login, "acme", "globex")
    ask_after(login)
    assert login.ask(prompt="none").answer["error"] == "login_required"
    page = login.browser.follow(login.log_in(login.ask()))
    assert login.ask(prompt="none").answer["error"] == "interaction_required"
    login.browser.submit(page, answer=globex.pk)
    assert chosen(login, login.ask(prompt="none")) == globex.pk
    OrganizationMember.objects.of(login.tenant.pk).get(organization=globex, user=login.user).delete()
    assert login.ask(prompt="none").answer["error"] == "access_denied"


def test_the_choice_of_one_user_does_not_apply_to_the_next_user(login: Login) -> None:
    memberships(login, "acme", "globex")
    ask_after(login)
    page = login.browser.follow(login.log_in(login.ask()))
    other = person(login.connection, email="eve@example.test")
    end_session(Session.objects.of(login.tenant.pk).get(), reason="rp-logout")
    login.log_in(login.ask(), identifier="eve@example.test")
    again = login.browser.submit(page, answer="acme")
    assert again.answer["error_description"] == f"user {other.user_id} is not part of any organization"


def test_a_user_does_not_join_the_organization_that_the_previous_user_chose(foreign: Login) -> None:
    acme, _ = memberships(foreign, "acme", "globex")
    OrganizationConnection.objects.of(foreign.tenant.pk).get(organization=acme).delete()
    add_connection(
        tenant_id=foreign.tenant.pk, organization_id=acme.pk, connection_id=foreign.connection.pk, assign_membership_on_login=True
    )
    ask_after(foreign)
    page = foreign.browser.follow(foreign.log_in(foreign.ask(audience=API, scope="openid read:orders")))
    consent = foreign.browser.submit(page, answer=acme.pk)
    assert consent.location.startswith("/u/consent?state="), consent.location
    end_session(Session.objects.of(foreign.tenant.pk).get(), reason="rp-logout")
    eve = person(foreign.connection, email="eve@example.test")
    answer = foreign.log_in(foreign.browser.follow(consent), identifier="eve@example.test")
    assert answer.location.startswith("/u/organization?state="), answer.location
    assert not OrganizationMember.objects.of(foreign.tenant.pk).filter(user=eve).exists()
    assert Session.objects.of(foreign.tenant.pk).get().organization_id is None
