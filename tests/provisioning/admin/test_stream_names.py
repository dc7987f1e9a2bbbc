"""Lists and pages of deliveries show the names of streams, although the rows contain only the ids."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from events.models import EventStream
from identity.models import Tenant
from provisioning.models import Alert, DeadLetter
from tests.factories.admin import Rows, browser_of, new_staff
from tests.factories.identity import make_connection, make_user
from tests.factories.models.provisioning import AlertFactory, BreakerFactory, DeletionGuardFactory, IgnoredKindFactory, LaneFactory
from tests.provisioning.engine.logs import make_stream


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def stream(tenant: Tenant) -> EventStream:
    stream = make_stream(tenant)
    stream.name = "Users to the directory"
    stream.save()
    return stream


def text_of(browser: Client, address: str) -> str:
    """Return the text of the content of a page, without tags."""
    page = browser.get(address).content.decode()
    return " ".join(re.sub(r"<[^>]*>", " ", page.partition('id="content"')[2]).split())


def test_a_list_shows_the_name_of_the_stream_and_a_page_also_its_id(browser: Client, stream: EventStream) -> None:
    alert = AlertFactory.create(tenant_id=stream.tenant_id, stream_id=stream.pk, kind=Alert.Kind.HELD)

    listed = text_of(browser, reverse("admin:provisioning_alert_changelist"))
    shown = text_of(browser, reverse("admin:provisioning_alert_change", args=(quote(alert.pk),)))

    assert "Users to the directory" in listed
    assert stream.pk not in listed
    assert f"Users to the directory ({stream.pk})" in shown


@pytest.mark.parametrize(
    ("factory", "heading"),
    [
        (BreakerFactory, "Failures of {}"),
        (DeletionGuardFactory, "Deletion threshold of {}"),
        (IgnoredKindFactory, "Ignored failure of {}"),
    ],
)
def test_the_heading_of_a_row_of_a_stream_names_the_stream(browser: Client, stream: EventStream, factory: Any, heading: str) -> None:
    row = factory.create(tenant_id=stream.tenant_id, stream_id=stream.pk)
    page = reverse(f"admin:provisioning_{row._meta.model_name}_change", args=(quote(row.pk),))

    def shown() -> str:
        return browser.get(page).content.decode().partition("<h1>")[2].partition("</h1>")[0]

    assert shown() == heading.format("Users to the directory")
    stream.delete()
    assert shown() == heading.format(f"{row.stream_id} (deleted)")


def test_the_heading_of_a_lane_names_its_user(browser: Client, stream: EventStream) -> None:
    user = make_user(connection=make_connection(tenant_id=stream.tenant_id), name="Ada Lovelace", email="ada@example.test")
    lane = LaneFactory.create(tenant_id=stream.tenant_id, stream_id=stream.pk, key=f"user:{user.user_id}")
    page = browser.get(reverse("admin:provisioning_lane_change", args=(quote(lane.pk),))).content.decode()
    assert "<h1>Lane of Ada Lovelace (ada@example.test)</h1>" in page


def test_a_deleted_or_unnamed_stream_is_shown_by_its_id(browser: Client, stream: EventStream) -> None:
    stream.name = ""
    stream.save()
    BreakerFactory.create(tenant_id=stream.tenant_id, stream_id=stream.pk, failures=2)

    assert stream.pk in text_of(browser, reverse("admin:provisioning_breaker_changelist"))


def test_dead_letters_can_be_filtered_by_the_name_of_their_stream(browser: Client, tenant: Tenant, stream: EventStream) -> None:
    letter = Rows(tenant).of(DeadLetter)
    letter.stream_id = stream.pk
    letter.save()

    listed = text_of(browser, reverse("admin:provisioning_deadletter_changelist"))
    chosen = text_of(browser, f"{reverse('admin:provisioning_deadletter_changelist')}?stream_id={stream.pk}")

    assert "Stream All Users to the directory" in listed
    assert stream.pk not in listed
    assert letter.key in chosen
