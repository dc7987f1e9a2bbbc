"""Lists whose rows store the id of a user show the name and the email address of the user.

These lists are the deliveries, the dead letters, the sign-in log and the audit log.
"""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote
from django.core.handlers.wsgi import WSGIRequest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from authapi.services.clients import create_client
from events.log.numbering import number_tenant
from foundation.acting import Act, Actor, acting
from identity.admin.people.relation_names import relation_texts
from identity.models import AuditEntry, Connection, User
from identity.services.memberships import add_members
from identity.services.users import block_user, delete_user, update_user
from provisioning.models import DeadLetter
from tests.factories.admin import browser_of, new_staff, new_tenant, take_from_administrators
from tests.factories.identity import make_connection, make_user
from tests.factories.models.authapi import ClientFactory, SignInFactory
from tests.factories.models.events import EventStreamFactory
from tests.factories.models.provisioning import DeadLetterFactory, DeliveryFactory
from tests.factories.organizations import make_organization
from tests.factories.sign_ins import make_session, make_sign_in

NAME = "Ada Lovelace (ada@example.test)"
LISTS = {
    "deliveries": "admin:provisioning_delivery_changelist",
    "dead letters": "admin:provisioning_deadletter_changelist",
    "sign-in log": "admin:authapi_signin_changelist",
    "audit log": "admin:identity_auditentry_changelist",
}


@pytest.fixture
def ada(database_connection: Connection) -> User:
    return make_user(connection=database_connection, email="ada@example.test", name="Ada Lovelace")


@pytest.fixture
def browser(ada: User) -> Client:
    return browser_of(new_staff(ada.tenant))


def request_of(browser: Client) -> WSGIRequest:
    """Return a request that was sent with this browser."""
    request: WSGIRequest = browser.get(reverse("admin:index")).wsgi_request
    return request


def leave_traces(user: User) -> DeadLetter:
    """Create one row about the user in each list, and return the dead letter."""
    delivery = DeliveryFactory.create(tenant_id=user.tenant_id, key=f"user:{user.user_id}", state="dead")
    SignInFactory.create(tenant_id=user.tenant_id, user_id=user.user_id, user_name="as entered")
    with acting(Act(Actor("staff", "1", "charles@example.test"), ip="192.0.2.7", user_agent="")):
        block_user(tenant_id=user.tenant_id, user_id=user.user_id)
    return DeadLetterFactory.create(delivery=delivery)


def test_the_event_log_and_the_start_page_show_the_names_of_users(browser: Client, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    update_user(tenant_id=ada.tenant_id, user_id=ada.user_id, changes={"nickname": "countess"})
    number_tenant(ada.tenant_id)
    pages = [reverse("admin:events_logentry_changelist"), reverse("admin:index")]

    assert [NAME in browser.get(page).content.decode() for page in pages] == [True, True]
    take_from_administrators(monkeypatch, "identity.view_user")
    assert [NAME in browser.get(page).content.decode() for page in pages] == [False, False]


def test_deliveries_of_a_stream_and_sessions_of_a_client_show_the_names_of_users(
    browser: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = EventStreamFactory.create(tenant_id=ada.tenant_id)
    for key in (f"user:{ada.user_id}", "connection:con_x"):
        DeliveryFactory.create(tenant_id=ada.tenant_id, stream_id=stream.pk, key=key)
    make_session(ada, client := ClientFactory.create(tenant_id=ada.tenant_id))
    make_sign_in(ada, client)
    stream_page = f"{reverse('admin:events_eventstream_change', args=(quote(stream.pk),))}?tab=deliveries"
    client_page = f"{reverse('admin:authapi_client_change', args=(client.pk,))}?tab=logins"

    shown = browser.get(stream_page).content.decode()
    assert "Ada Lovelace" in shown
    assert "connection:con_x" in shown
    of_client = browser.get(client_page).content.decode()
    assert NAME in of_client
    assert f'href="{reverse("admin:authapi_signin_changelist")}?client={client.client_id}"' in of_client
    take_from_administrators(monkeypatch, "identity.view_user")
    assert "Ada Lovelace" not in browser.get(stream_page).content.decode()


def test_the_tab_with_example_code_shows_no_message_about_a_missing_permission(browser: Client, ada: User) -> None:
    client, _ = create_client(
        tenant_id=ada.tenant_id, name="Shop", grant_types=["authorization_code"], redirect_uris="https://shop.example.test/callback"
    )
    address = f"{reverse('admin:authapi_client_change', args=(client.pk,))}?tab=code-for-your-application"
    page = browser.get(address).content.decode()
    assert "<h2>Code for your application</h2>" in page
    assert "You do not have permission to see this part." not in page


@pytest.mark.parametrize("place", LISTS.values(), ids=LISTS)
def test_a_list_shows_names_of_users_without_a_query_for_each_row(
    browser: Client, ada: User, django_assert_num_queries: DjangoAssertNumQueries, place: str
) -> None:
    leave_traces(ada)
    leave_traces(make_user(connection=ada.connection))
    browser.get(reverse(place))
    with CaptureQueriesContext(connection) as queries:
        assert NAME in browser.get(reverse(place)).content.decode()
    for _ in range(5):
        leave_traces(make_user(connection=ada.connection))

    with django_assert_num_queries(len(queries)):
        browser.get(reverse(place))


def test_the_audit_log_shows_the_user_and_the_organization_of_a_membership(browser: Client, ada: User) -> None:
    stranger = make_organization(new_tenant(), "strangers", display_name="Strangers")
    company = make_organization(ada.tenant, "engines", display_name="Analytical Engines")
    with acting(Act(Actor("staff", "1", "charles@example.test"), ip="192.0.2.7", user_agent="")):
        add_members(tenant_id=ada.tenant_id, organization_id=company.pk, user_ids=[ada.user_id])
    entry = AuditEntry.objects.get(tenant_id=ada.tenant_id, object_type="identity.organizationmember")

    assert f"{NAME}, Analytical Engines" in browser.get(reverse(LISTS["audit log"])).content.decode()
    page = reverse("admin:identity_auditentry_change", args=(entry.pk,))
    assert f"{NAME}, Analytical Engines" in browser.get(page).content.decode()

    entry.after = {**(entry.after or {}), "organization_id": stranger.pk}
    assert relation_texts(request_of(browser), [entry]) == {entry.pk: f"{NAME}, {stranger.pk}"}


@pytest.mark.parametrize("place", LISTS.values(), ids=LISTS)
def test_a_list_shows_the_ids_of_users_to_accounts_that_may_not_see_users(
    browser: Client, ada: User, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    leave_traces(ada)
    take_from_administrators(monkeypatch, "identity.view_user")

    page = browser.get(reverse(place)).content.decode()

    assert "Ada Lovelace" not in page
    assert ada.user_id in page or "as entered" in page


def test_the_audit_log_shows_names_of_members_only_to_accounts_that_may_see_users(
    browser: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    company = make_organization(ada.tenant, "engines", display_name="Analytical Engines")
    with acting(Act(Actor("staff", "1", "charles@example.test"), ip="192.0.2.7", user_agent="")):
        add_members(tenant_id=ada.tenant_id, organization_id=company.pk, user_ids=[ada.user_id])
    entry = AuditEntry.objects.get(tenant_id=ada.tenant_id, object_type="identity.organizationmember")
    take_from_administrators(monkeypatch, "identity.view_user")

    for place in (reverse(LISTS["audit log"]), reverse("admin:identity_auditentry_change", args=(entry.pk,))):
        page = browser.get(place).content.decode()
        assert "Analytical Engines" in page
        assert "Ada Lovelace" not in page


def test_the_page_of_a_row_has_a_link_to_the_user_and_the_id(browser: Client, ada: User) -> None:
    letter = leave_traces(ada)
    link = f'href="{reverse("admin:identity_user_change", args=(quote(ada.pk),))}"'

    for name, row in (("delivery", letter.delivery), ("deadletter", letter)):
        page = browser.get(reverse(f"admin:provisioning_{name}_change", args=(row.pk,))).content.decode()
        assert link in page
        assert ada.user_id in page


def test_the_button_of_a_redelivery_has_a_label_with_the_name_of_the_user(browser: Client, ada: User) -> None:
    letter = leave_traces(ada)

    assert f'aria-label="Redeliver {letter.event_type} of {NAME}"' in browser.get(reverse(LISTS["dead letters"])).content.decode()


def test_a_page_without_anything_to_save_has_no_bar_of_buttons(browser: Client, ada: User) -> None:
    letter = leave_traces(ada)

    read_only = browser.get(reverse("admin:provisioning_delivery_change", args=(letter.delivery.pk,))).content.decode()
    assert 'class="submit-row' not in read_only
    assert 'class="submit-row"' in browser.get(reverse("admin:identity_user_change", args=(quote(ada.pk),))).content.decode()


def test_the_summary_of_a_dead_letter_does_not_repeat_the_id_of_the_heading(browser: Client, ada: User) -> None:
    letter = leave_traces(ada)
    letter.event_id = "evt_of-the-letter"
    letter.save(update_fields=["event_id"])
    page = browser.get(reverse("admin:provisioning_deadletter_change", args=(letter.pk,))).content.decode()

    head, _, rest = page[page.index('<header class="object-header">') :].partition("</header>")
    assert letter.event_id in head
    assert letter.event_id not in rest[: rest.index("</section>")]


def test_a_deleted_user_and_a_user_of_another_tenant_are_shown_by_id(browser: Client, ada: User) -> None:
    stranger = make_user(connection=make_connection(tenant_id=new_tenant().pk), email="stranger@example.test", name="Stranger")
    DeliveryFactory.create(tenant_id=ada.tenant_id, key=f"user:{stranger.user_id}")
    leave_traces(ada)
    delete_user(tenant_id=ada.tenant_id, user_id=ada.user_id)

    shown = browser.get(reverse(LISTS["deliveries"])).content.decode()
    assert f"user:{ada.user_id}" in shown
    assert f"user:{stranger.user_id}" in shown
    assert "Stranger" not in shown


def test_the_page_of_a_user_shows_its_dead_letters_and_deliveries(browser: Client, ada: User) -> None:
    leave_traces(ada)
    other = leave_traces(make_user(connection=ada.connection))

    answer = browser.get(reverse("admin:identity_user_change", args=(quote(ada.pk),)), {"tab": "events-and-deliveries"})

    assert [panel.title for panel in answer.context["panels"]] == ["Dead letters", "Deliveries of the last events", "Last events"]
    letters = answer.context["panels"][0].rows
    assert len(letters) == 1
    assert reverse("admin:provisioning_deadletter_change", args=(other.pk,)) not in answer.content.decode()


def test_only_accounts_that_may_view_dead_letters_see_the_dead_letters_of_a_user(
    browser: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_traces(ada)
    take_from_administrators(monkeypatch, "provisioning.view_deadletter")

    answer = browser.get(reverse("admin:identity_user_change", args=(quote(ada.pk),)), {"tab": "events-and-deliveries"})
    assert [panel.title for panel in answer.context["panels"]] == ["Deliveries of the last events", "Last events"]


def test_the_collapsed_fields_of_a_delivery_omit_empty_values_and_what_the_header_shows(browser: Client, ada: User) -> None:
    delivery = leave_traces(ada).delivery
    delivery.event_id = "evt_of-the-delivery"
    delivery.save(update_fields=["event_id"])
    page = browser.get(reverse("admin:provisioning_delivery_change", args=(delivery.pk,))).content.decode()

    assert delivery.event_id in page
    assert delivery.event_id not in page.rpartition("<fieldset")[2]
    assert "field-error_scim_type" not in page
    assert "field-detail_text" not in page
