"""Second factors in the admin: permissions, confirmations, and values that staff never see."""

from __future__ import annotations

import pytest
from django.core import mail
from django.test import Client as Browser
from django.urls import reverse

from authapi.factors.settings import factor_values, policy_of_organization, remembered_factors
from authapi.models import AccountTicket, RememberedBrowser, TenantSettings
from identity.messages.queue import send_message
from identity.models import AuditEntry, EnrolledFactor, Job, Tenant, User
from identity.staff_roles import AUDITOR
from tests.authapi.factors.walks import set_factors
from tests.config.two_tenants import make_other_tenant
from tests.factories.admin import browser_of, new_staff
from tests.factories.models.authapi import RememberedBrowserFactory
from tests.factories.models.identity import EnrolledFactorFactory, OrganizationFactory, UserFactory

PAGE = "admin:authapi_second_factors"
NUMBER = "+491712345678"
ON = {"factors": ["otp"], "policy": "on-request", "remembers_browsers": "on", "remembered_days": "30", "offers_passkeys": "on"}


@pytest.fixture
def ada(tenant: Tenant) -> User:
    return UserFactory.create(tenant_id=tenant.pk, email="ada@example.test")


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


def values(tenant: Tenant) -> dict[str, object]:
    return factor_values(TenantSettings.objects.of(tenant.pk).first())


def test_an_auditor_can_view_the_settings_and_change_nothing(tenant: Tenant, ada: User) -> None:
    auditor = browser_of(new_staff(tenant, role=AUDITOR))
    factor = EnrolledFactorFactory.create(user=ada, address=NUMBER)
    remembered = RememberedBrowserFactory.create(tenant_id=tenant.pk, user=ada)
    page = auditor.get(reverse(PAGE)).content.decode()
    assert "Save" not in page
    assert auditor.post(reverse(PAGE), ON).status_code == 403
    for place in (
        reverse("admin:identity_enrolledfactor_action", args=(factor.pk, "remove")),
        reverse("admin:identity_user_action", args=(ada.pk, "reset-factors")),
        reverse("admin:authapi_rememberedbrowser_action", args=(remembered.pk, "forget")),
    ):
        assert auditor.post(place, {"reason": "curious"}).status_code == 403
    assert values(tenant)["factors"] == []
    assert EnrolledFactor.objects.of(tenant.pk).exists()
    assert RememberedBrowser.objects.of(tenant.pk).exists()


def test_staff_of_one_tenant_cannot_open_a_factor_of_another_tenant(browser: Browser) -> None:
    other = make_other_tenant()
    user = UserFactory.create(tenant_id=other.pk)
    factor = EnrolledFactorFactory.create(user=user)
    remembered = RememberedBrowserFactory.create(tenant_id=other.pk, user=user)
    browser.post(reverse("admin:identity_enrolledfactor_action", args=(factor.pk, "remove")), {"reason": "x"})
    browser.post(reverse("admin:identity_user_action", args=(user.pk, "reset-factors")), {"reason": "x"})
    browser.post(reverse("admin:authapi_rememberedbrowser_action", args=(remembered.pk, "forget")), {})
    assert EnrolledFactor.objects.of(other.pk).exists()
    assert RememberedBrowser.objects.of(other.pk).exists()


def test_a_change_that_affects_users_asks_for_confirmation(browser: Browser, tenant: Tenant, ada: User) -> None:
    assert browser.post(reverse(PAGE), ON).status_code == 302
    asked = browser.post(reverse(PAGE), {**ON, "policy": "always"})
    assert "1 user has none of these factors and must enroll one" in asked.content.decode()
    assert values(tenant)["policy"] == "on-request"
    # An earlier confirmation does not apply to another change.
    UserFactory.create(tenant_id=tenant.pk)
    confirmed = {**ON, "policy": "always", "confirmed": asked.context["confirmed"]}
    again = browser.post(reverse(PAGE), confirmed)
    assert "2 users have none of these factors and must enroll one" in again.content.decode()
    assert browser.post(reverse(PAGE), {**confirmed, "confirmed": again.context["confirmed"]}).status_code == 302
    assert values(tenant)["policy"] == "always"

    refused = browser.post(reverse(PAGE), {**ON, "policy": "always", "factors": []}).content.decode()
    assert "Relax the policy first" in refused
    assert (
        "Text messages have no sender yet"
        in browser.post(reverse(PAGE), {**ON, "policy": "always", "factors": ["otp", "sms"]}).content.decode()
    )
    EnrolledFactorFactory.create(user=ada, kind="totp")
    asked = browser.post(reverse(PAGE), {**ON, "factors": ["webauthn-roaming"]})
    assert "1 user has set up this factor, which logins will no longer accept: authenticator app." in asked.content.decode()


def test_a_factor_is_removed_with_a_reason_and_its_number_is_never_shown_in_full(browser: Browser, tenant: Tenant, ada: User) -> None:
    factor = EnrolledFactorFactory.create(user=ada, address=NUMBER)
    page = browser.get(reverse("admin:identity_user_change", args=(ada.pk,)), {"tab": "security"}).content.decode()
    assert "+49…78" in page
    place = reverse("admin:identity_enrolledfactor_action", args=(factor.pk, "remove"))
    assert place in page
    listed = browser.get(reverse("admin:identity_enrolledfactor_changelist")).content.decode()
    shown = browser.get(reverse("admin:identity_enrolledfactor_change", args=(factor.pk,))).content.decode()
    assert not any(NUMBER in text for text in (page, listed, shown))
    browser.post(place, {})
    assert EnrolledFactor.objects.of(tenant.pk).exists()
    browser.post(place, {"reason": "Ticket 4711"})
    assert not EnrolledFactor.objects.of(tenant.pk).exists()
    entry = AuditEntry.objects.filter(tenant_id=tenant.pk, reason="Ticket 4711").first()
    assert entry is not None
    assert NUMBER not in repr(entry.__dict__)


def test_a_reset_removes_passkeys_only_on_request_and_all_other_factors_always(browser: Browser, tenant: Tenant, ada: User) -> None:
    for kind in ("totp", "recovery-code", "passkey"):
        EnrolledFactorFactory.create(user=ada, kind=kind)
    RememberedBrowserFactory.create(tenant_id=tenant.pk, user=ada)
    place = reverse("admin:identity_user_action", args=(ada.pk, "reset-factors"))
    browser.post(place, {"reason": "Lost telephone"})
    assert EnrolledFactor.objects.of(tenant.pk).get().kind == "passkey"
    assert not RememberedBrowser.objects.of(tenant.pk).exists()
    browser.post(place, {"reason": "Lost telephone", "removes_passkeys": "on"})
    assert not EnrolledFactor.objects.of(tenant.pk).exists()


def test_remembered_browsers_are_removed_one_by_one_or_all_together(browser: Browser, tenant: Tenant, ada: User) -> None:
    rows = [RememberedBrowserFactory.create(tenant_id=tenant.pk, user=ada) for _ in range(3)]
    browser.post(reverse("admin:authapi_rememberedbrowser_action", args=(rows[0].pk, "forget")), {})
    assert RememberedBrowser.objects.of(tenant.pk).count() == 2
    browser.post(reverse("admin:identity_user_action", args=(ada.pk, "forget-browsers")), {})
    assert not RememberedBrowser.objects.of(tenant.pk).exists()


def test_the_page_of_an_organization_sets_its_policy(browser: Browser, tenant: Tenant) -> None:
    organization = OrganizationFactory.create(tenant_id=tenant.pk)
    place = reverse("admin:identity_organization_action", args=(organization.pk, "second-factors"))
    browser.post(place, {"policy": "often"})
    assert policy_of_organization(organization) is None
    browser.post(place, {"policy": "always"})
    assert policy_of_organization(organization) == "always"
    assert "always" in browser.get(reverse("admin:identity_organization_change", args=(organization.pk,))).content.decode()
    browser.post(place, {"policy": ""})
    assert policy_of_organization(organization) is None


def test_staff_mail_a_setup_link_after_a_confirmation(browser: Browser, tenant: Tenant, ada: User) -> None:
    place, page = (
        reverse(f"admin:identity_user_{name}", args=args) for name, args in (("action", (ada.pk, "send-setup-link")), ("change", (ada.pk,)))
    )
    assert place not in browser.get(page).content.decode()
    set_factors(tenant, "otp")
    assert place in browser.get(page).content.decode()
    assert "The service emails a link to ada@example.test." in browser.get(place).content.decode()
    assert not AccountTicket.objects.of(tenant.pk).exists()
    assert browser_of(new_staff(tenant, role=AUDITOR)).post(place, {}).status_code == 403
    done = browser.post(place, {}, follow=True).content.decode()
    assert "Setup link sent to ada@example.test." in done
    ticket = AccountTicket.objects.of(tenant.pk).get()
    job = Job.objects.of(tenant.pk).get(parameters__kind="enrollment_email")
    send_message(job)
    secret = mail.outbox[-1].body.partition("?ticket=")[2].split()[0]
    assert (len(secret) > 30, secret in done) == (True, False)
    entry = AuditEntry.objects.get(tenant_id=tenant.pk, act="Created a link that sets up a second factor")
    assert (entry.actor_kind, ticket.pk in str(vars(entry)), secret in str(vars(entry))) == ("staff", True, False)
    remembered_factors.clear()
