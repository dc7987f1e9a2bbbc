"""Every page of an object shows its name, its state if any, at most one primary action, and the name of its list in the breadcrumbs."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from uuid import uuid4

import pytest
from django.contrib.admin.utils import quote
from django.db import models
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from authapi.models import ApiResource, ClientGrant, Invitation, RefreshToken, SamlKey, Session, SignIn, SigningKey
from authapi.models import Client as AuthClient
from config.console.admin_navigation import NAMES
from config.console.admin_site import site
from events.models import Event, EventStream, LogEntry
from identity.admin.object_actions import ObjectActionsAdmin
from identity.models import (
    AuditEntry,
    Connection,
    EnrolledFactor,
    Group,
    Job,
    Organization,
    PasswordCredential,
    Role,
    Tenant,
    User,
)
from identity.services.users import update_user
from provisioning.models import AccountLink, Action, ActionVersion, Attempt, DeadLetter, Delivery, Lane, SynchronizationRow, Trial
from tests.factories.admin import Rows, browser_of, new_staff, new_tenant, take_from_administrators
from tests.factories.admin_pages import page_of_row, place_of
from tests.factories.models.authapi import InvitationFactory
from tests.factories.models.identity import AuditEntryFactory
from tests.factories.models.provisioning import (
    AccountLinkFactory,
    DeadLetterFactory,
    DeliveryFactory,
    LaneFactory,
    SynchronizationRowFactory,
    TrialFactory,
)
from tests.provisioning.engine.logs import make_stream

# Events never change, so they have no state.
EVENTS = (Event, LogEntry)
OBJECTS = (
    User, Organization, Group, Role, AuthClient, Connection, EventStream, DeadLetter, Delivery, ApiResource, Job, AuditEntry, *EVENTS,
)  # fmt: skip
WITH_STATES = (SignIn, Session, SigningKey, SamlKey, ClientGrant, RefreshToken, Trial, Attempt, ActionVersion)
MODELS = [model for model, page in site._registry.items() if getattr(page, "tenant_column", None)]
HOUR = timedelta(hours=1)
ADA = "Ada Lovelace (ada@example.test)"


@pytest.fixture
def rows(committed_db: None) -> Rows:
    return Rows(new_tenant())


@pytest.fixture
def browser(rows: Rows) -> Client:
    return browser_of(new_staff(rows.tenant))


@pytest.fixture
def ada(rows: Rows) -> User:
    user: User = rows.of(User)
    update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={"email": "ada@example.test", "name": "Ada Lovelace"})
    user.refresh_from_db()
    return user


def shown(browser: Client, address: str) -> str:
    answer = browser.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


def crumbs_of(page: str) -> list[str]:
    found = page.partition('<div class="breadcrumbs">')[2].partition("</div>")[0]
    return [" ".join(unescape(re.sub("<[^>]*>", "", part)).split()) for part in found.split("\u203a")]


@pytest.mark.whole
@pytest.mark.parametrize("model", OBJECTS, ids=lambda model: model.__name__)
def test_the_page_of_an_object_has_a_name_a_state_and_at_most_one_primary_action(
    browser: Client, rows: Rows, model: type[models.Model]
) -> None:
    row = rows.of(model)
    page = shown(browser, page_of_row(row))
    head = page.partition('<header class="object-header">')[2].partition("</header>")[0]

    (title,) = re.findall(r"<h1>(.*?)</h1>", head)
    assert title.strip()
    assert unescape(title) != str(row.pk)
    assert ("badge" in head) is (model not in EVENTS)
    assert len(re.findall(r'<a class="button" ', head)) <= 1


@pytest.mark.whole
@pytest.mark.parametrize("model", WITH_STATES, ids=lambda model: model.__name__)
def test_the_page_of_a_row_with_a_state_shows_the_state_beside_its_name(browser: Client, rows: Rows, model: type[models.Model]) -> None:
    head = shown(browser, page_of_row(rows.of(model))).partition('<header class="object-header">')[2].partition("</header>")[0]
    assert head.count('class="badge ') == 1


def test_an_expired_session_is_not_called_active(browser: Client, rows: Rows) -> None:
    session = rows.of(Session)
    for column in ("idle_expires_at", "expires_at"):
        Session.objects.of(rows.tenant.pk).filter(pk=session.pk).update(
            idle_expires_at=timezone.now() + HOUR, expires_at=timezone.now() + HOUR
        )
        assert ">Active</span>" in shown(browser, page_of_row(session))
        Session.objects.of(rows.tenant.pk).filter(pk=session.pk).update(**{column: timezone.now() - HOUR})
        assert ">Expired</span>" in shown(browser, page_of_row(session))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label_lower)
def test_no_page_of_a_row_has_a_second_primary_action(browser: Client, rows: Rows, model: type[models.Model]) -> None:
    head = shown(browser, page_of_row(rows.of(model))).partition('<header class="object-header">')[2].partition("</header>")[0]
    assert "<h1>" in head
    assert len(re.findall(r'<a class="button" ', head)) <= 1


@pytest.mark.whole
@pytest.mark.parametrize("model", OBJECTS, ids=lambda model: model.__name__)
def test_the_breadcrumbs_of_an_object_have_the_names_of_the_menu_and_of_the_object(
    browser: Client, rows: Rows, model: type[models.Model]
) -> None:
    row = rows.of(model)
    page = site.get_model_admin(model)
    name = NAMES.get(model._meta.label_lower, str(model._meta.verbose_name_plural))

    crumbs = crumbs_of(shown(browser, page_of_row(row)))
    history = crumbs_of(shown(browser, page_of_row(row, "history")))

    assert crumbs[-2].lower() == name.lower()
    assert history[1].lower() == name.lower()
    assert isinstance(page, ObjectActionsAdmin)
    assert history[-1] == "History"


def test_the_event_log_is_called_event_log_everywhere(browser: Client, rows: Rows) -> None:
    entry = rows.of(LogEntry)

    for address in (place_of(LogEntry, "changelist"), page_of_row(entry), page_of_row(entry, "history")):
        page = shown(browser, address)
        assert "Log entries" not in page
        assert "Event log" in crumbs_of(page)


def test_a_page_that_acts_on_a_user_shows_the_user(browser: Client, ada: User) -> None:
    pages = {
        "block": reverse("admin:identity_user_action", args=(quote(ada.pk), "block")),
        "timeline": page_of_row(ada, "timeline"),
        "history": page_of_row(ada, "history"),
        "delete": page_of_row(ada, "delete"),
    }
    for name, address in pages.items():
        page = shown(browser, address)
        assert ADA in crumbs_of(page), name
        assert ada.user_id not in page.partition('id="content"')[2], name


def test_the_page_of_a_failed_delivery_links_to_the_dead_letter(browser: Client, ada: User) -> None:
    dead = DeliveryFactory.create(tenant_id=ada.tenant_id, key=f"user:{ada.user_id}", state="dead")
    letter = DeadLetterFactory.create(delivery=dead)
    delivered = DeliveryFactory.create(tenant_id=ada.tenant_id, key=f"user:{ada.user_id}", state="delivered")

    page = shown(browser, page_of_row(dead))
    assert re.search(rf'<a class="button" href="{re.escape(page_of_row(letter))}">Open the dead letter</a>', page)
    assert '<a class="button" ' not in shown(browser, page_of_row(delivered))


def test_the_page_of_a_delivery_that_waits_for_a_held_stream_links_to_the_stream(browser: Client, ada: User) -> None:
    stream = make_stream(Tenant.objects.get(pk=ada.tenant_id))
    waiting = DeliveryFactory.create(tenant_id=ada.tenant_id, key=f"user:{ada.user_id}", stream_id=stream.pk)
    assert '<a class="button" ' not in shown(browser, page_of_row(waiting))

    EventStream.objects.of(ada.tenant_id).filter(pk=stream.pk).update(status="disabled")
    page = shown(browser, page_of_row(waiting))
    assert re.search(rf'<a class="button" href="{re.escape(page_of_row(stream))}">Open the event stream</a>', page)


# People by name and email address


def rows_about(user: User, rows: Rows) -> dict[type[models.Model], models.Model]:
    tenant = {"tenant_id": user.tenant_id}
    return {
        AccountLink: AccountLinkFactory.create(**tenant, user_id=user.user_id),
        SynchronizationRow: SynchronizationRowFactory.create(job=rows.of(Job), user_id=user.user_id),
        Trial: TrialFactory.create(action=rows.of(Action), user_id=user.user_id),
        Lane: LaneFactory.create(stream_id=make_stream(rows.tenant).pk, **tenant, key=f"user:{user.user_id}"),
    }


def list_of(model: type[models.Model], rows: Rows) -> str:
    query = f"?q={rows.of(Job).pk}" if model is SynchronizationRow else ""
    return place_of(model, "changelist") + query


def test_provisioning_pages_show_only_the_user_id_without_permission_for_users(
    browser: Client, rows: Rows, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = rows_about(ada, rows)
    take_from_administrators(monkeypatch, "identity.view_user")
    for model, row in found.items():
        for address in (list_of(model, rows), *([] if model is Lane else [page_of_row(row)])):
            page = shown(browser, address)
            assert "Ada Lovelace" not in page, address
            assert ada.user_id in page, address


def test_lists_and_pages_of_provisioning_show_the_user(browser: Client, rows: Rows, ada: User) -> None:
    found = rows_about(ada, rows)
    for model, row in found.items():
        assert ADA in shown(browser, list_of(model, rows)), model
        if model is not Lane:
            assert f'<a href="{page_of_row(ada)}">{ADA}</a>' in shown(browser, page_of_row(row)), model


def test_the_list_of_trials_shows_a_dash_for_a_trial_without_a_user(browser: Client, rows: Rows) -> None:
    TrialFactory.create(action=rows.of(Action), user_id="")

    assert re.search(r'<td[^>]*class="field-about_user"[^>]*>-</td>', shown(browser, place_of(Trial, "changelist")))


def test_a_user_of_another_tenant_is_not_named_in_a_synchronization(browser: Client, rows: Rows) -> None:
    stranger = Rows(new_tenant()).of(User)
    row = SynchronizationRowFactory.create(job=rows.of(Job), user_id=stranger.user_id)

    page = shown(browser, page_of_row(row))
    assert stranger.email not in page
    assert stranger.user_id in page


def test_an_accepted_invitation_names_the_user(browser: Client, rows: Rows, ada: User) -> None:
    invitation = rows.of(Invitation)
    accepted = InvitationFactory.create(
        tenant_id=ada.tenant_id, organization=invitation.organization, client=invitation.client, accepted_by=ada
    )

    assert f'<a href="{page_of_row(ada)}">{ADA}</a>' in shown(browser, page_of_row(accepted))
    assert "field-acceptor" in shown(browser, page_of_row(invitation))


@pytest.mark.parametrize(
    ("object_type", "values"),
    [
        (User, {}),
        (PasswordCredential, {"changed_at": "2026-01-01"}),
        (EnrolledFactor, {"user_id": 0, "kind": "totp"}),
    ],
    ids=["user", "password", "second factor"],
)
def test_the_audit_log_shows_the_user_of_an_entry(
    browser: Client, ada: User, object_type: type[models.Model], values: dict[str, object]
) -> None:
    after = {name: ada.pk if name == "user_id" else value for name, value in values.items()}
    entry = AuditEntryFactory.create(
        tenant_id=ada.tenant_id,
        kind="change",
        act="Changed it",
        act_id=uuid4(),
        object_type=object_type._meta.label_lower,
        object_id=str(ada.pk),
        object_text=ada.user_id if object_type is User else f"something of user {ada.pk}",
        before={},
        after=after,
    )

    assert ADA in shown(browser, place_of(AuditEntry, "changelist"))
    page = shown(browser, page_of_row(entry))
    assert f"<h1>Changed it: {ADA}</h1>" in page
    if "user_id" in after:
        assert ADA in page.partition("Before and after")[2]


def test_the_message_after_a_change_names_the_user_and_escapes_markup(browser: Client, ada: User) -> None:
    update_user(tenant_id=ada.tenant_id, user_id=ada.user_id, changes={"name": "<b>Ada</b>"})
    form = browser.get(page_of_row(ada)).context["adminform"].form
    entered = {name: value for name in form.fields if (value := form[name].value()) not in (None, False)}

    answer = browser.post(page_of_row(ada), {**entered, "nickname": "countess", "_continue": "1"}, follow=True)

    assert f"&lt;b&gt;Ada&lt;/b&gt; ({ada.email})</a>” was changed" in answer.content.decode()


def test_the_search_shows_the_user_of_a_delivery_in_the_results(browser: Client, ada: User) -> None:
    delivery = DeliveryFactory.create(tenant_id=ada.tenant_id, key=f"user:{ada.user_id}", event_id="evt_0123456789abcdefABCDEF")

    page = shown(browser, f"{reverse('admin:search')}?q={delivery.event_id}")

    assert f"user.<wbr>created for {ADA}" in page
