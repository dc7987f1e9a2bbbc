"""The dry run of a redelivery over real sockets. It reads from the server, shows the request that would be sent, and writes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.log.numbering import number_tenant
from events.models import EventStream
from identity.models import Connection, Job, Tenant, User
from identity.services.failures import Conflict, NotFound
from identity.services.users import delete_user, update_user
from provisioning.admin.rights import Right
from provisioning.dead_letters.redelivery_preview import preview
from provisioning.engine import delivering, dispatch, streams
from provisioning.models import DeadLetter, Delivery
from provisioning.services.actions import deploy_action
from tests.factories.admin import browser_of, new_staff, take_from_administrators
from tests.factories.models.identity import UserFactory
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import TOKEN, MisbehavingServer, by_verb, listing, misbehaving_server, reply, scim_error, sequence, user
from tests.provisioning.engine.conftest import Recorder


@pytest.fixture(autouse=True)
def _settings(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = []
    settings.SECURE_SSL_REDIRECT = False


@pytest.fixture
def person(database_connection: Connection) -> User:
    return UserFactory.create(tenant_id=database_connection.tenant_id, connection=database_connection, email="ada@example.test")


def buried(server: MisbehavingServer, person: User, event_type: str, **options: Any) -> DeadLetter:
    """Create a stream to the server, let an event of the user fail, and clear the recorded requests. Return the dead letter."""
    tenant_id = person.tenant_id
    action = ActionFactory.create(
        tenant_id=tenant_id,
        name="scim",
        template="scim-user-provisioning",
        options=options,
        secrets={"SCIM_BASE_URL": server.base_url, "SCIM_BEARER_TOKEN": TOKEN, "SCIM_MAX_RETRIES": "0"},
    )
    deploy_action(tenant_id=tenant_id, action_id=action.pk)
    stream = streams.create_stream(
        tenant_id=tenant_id, subscriptions=[event_type], destination_type="action", destination={"action_id": str(action.pk)}
    )
    if event_type == "user.deleted":
        delete_user(tenant_id=tenant_id, user_id=person.user_id)
    else:
        update_user(tenant_id=tenant_id, user_id=person.user_id, changes={"given_name": "Ada", "name": "Ada"})
    number_tenant(tenant_id)
    dispatch.dispatch_stream(stream.pk)
    delivering.deliver_lane(stream.pk, f"user:{person.user_id}")
    letter = DeadLetter.objects.get(stream_id=stream.pk)
    server.received.clear()
    return letter


def known(person: User, **attributes: Any) -> dict[str, Any]:
    return user("7", externalId=person.user_id, userName="ada@example.test", **attributes)


def test_the_preview_of_an_update_shows_the_difference_and_writes_nothing(person: User) -> None:
    there = known(person, displayName="Before")
    handler = by_verb(GET=lambda request: reply(200, there) if request.path.endswith("/7") else listing(there), PUT=scim_error(400))
    with misbehaving_server(handler) as server:
        letter = buried(server, person, "user.updated")
        shown = preview(letter, current_profile=False)
    assert (shown.verb, shown.path, shown.notes) == ("PUT", "/Users/7", [])
    assert (shown.sent["displayName"], shown.before["displayName"]) == ("Ada", "Before")
    assert {"path": "displayName", "before": "Before", "after": "Ada"} in shown.changes
    assert {request.verb for request in server.received} == {"GET"}
    assert [exchange["verb"] for exchange in shown.exchanges] == ["GET", "GET"]
    assert TOKEN not in str(shown.exchanges)
    assert Delivery.objects.get(pk=letter.delivery_id).state == "dead"


def test_the_preview_with_the_current_profile_shows_the_current_user(person: User) -> None:
    with misbehaving_server(by_verb(GET=listing(), POST=scim_error(400))) as server:
        letter = buried(server, person, "user.updated", upsert=True)
        update_user(tenant_id=person.tenant_id, user_id=person.user_id, changes={"given_name": "Augusta"})
        exact, current = preview(letter, current_profile=False), preview(letter, current_profile=True)
    assert (exact.verb, exact.before) == ("POST", None)
    assert [shown.sent["name"]["givenName"] for shown in (exact, current)] == ["Ada", "Augusta"]


def test_a_taken_user_name_is_reported_before_the_redelivery(person: User) -> None:
    holder = user("9", userName="ADA@example.test", externalId="database|stranger")
    handler = by_verb(
        GET=lambda request: listing(holder) if request.filter.startswith("userName") else listing(), POST=scim_error(409, "uniqueness")
    )
    with misbehaving_server(handler) as server:
        shown = preview(buried(server, person, "user.updated", upsert=True), current_profile=False)
    assert shown.verb == "POST"
    assert [note for note in shown.notes if "409: the account 9 has this userName" in note]
    assert {request.verb for request in server.received} == {"GET"}


def test_a_note_says_that_the_user_of_a_deletion_exists_again(person: User) -> None:
    there = known(person)
    handler = by_verb(GET=lambda request: reply(200, there) if request.path.endswith("/7") else listing(there), DELETE=scim_error(400))
    with misbehaving_server(handler) as server:
        letter = buried(server, person, "user.deleted")
        assert preview(letter, current_profile=False).notes == []
        with pytest.raises(Conflict):
            preview(letter, current_profile=True)
        again = person.user_id.partition("|")[2]
        UserFactory.create(tenant_id=person.tenant_id, connection=person.connection, email="ada@example.test", identifier=again)
        shown = preview(letter, current_profile=False)
    assert (shown.verb, shown.path) == ("DELETE", "/Users/7")
    assert "exists again" in shown.notes[0]


def test_a_user_outside_the_scope_is_reported_as_skipped_without_a_request(person: User) -> None:
    with misbehaving_server(by_verb(GET=listing(), POST=scim_error(400))) as server:
        letter = buried(server, person, "user.updated", upsert=True, scope="given_name == 'Ada'")
        update_user(tenant_id=person.tenant_id, user_id=person.user_id, changes={"given_name": "Augusta"})
        assert preview(letter, current_profile=False).verb == "POST"
        server.received.clear()
        shown = preview(letter, current_profile=True)
    assert shown.notes == ["Skipped: the user is outside the scope of the action."]
    assert (shown.verb, shown.sent, server.received) == ("", None, [])


@pytest.mark.parametrize("answer", [scim_error(401), reply(200, raw=b"<html>"), reply(200, {"Resources": "none"})])
def test_an_invalid_response_is_shown_as_a_note_and_not_as_an_error(answer: bytes, person: User) -> None:
    with misbehaving_server(by_verb(GET=answer)) as server:
        shown = preview(buried(server, person, "user.updated"), current_profile=False)
    assert (shown.verb, shown.sent) == ("", None)
    assert shown.notes[0].startswith("A redelivery would fail now")


def test_a_response_that_is_not_json_is_shown_as_a_note(person: User) -> None:
    page = sequence(scim_error(400), listing(known(person)), reply(200, raw=b"<html>"))
    with misbehaving_server(page) as server:
        shown = preview(buried(server, person, "user.updated"), current_profile=False)
    assert "invalid response shape" in shown.notes[0]


def test_a_dry_run_fails_if_the_action_or_the_required_user_is_missing(
    person: User, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    with misbehaving_server(by_verb(GET=scim_error(400))) as server:
        letter = buried(server, person, "user.updated")
        delete_user(tenant_id=person.tenant_id, user_id=person.user_id)
        with pytest.raises(NotFound):
            preview(letter, current_profile=True)
    letter.stream_id = stream.pk
    with pytest.raises(Conflict):
        preview(letter, current_profile=False)


def test_the_page_shows_the_recorded_and_the_current_user(person: User, tenant: Tenant) -> None:
    there = known(person, displayName="Before")
    handler = by_verb(GET=lambda request: reply(200, there) if request.path.endswith("/7") else listing(there), PUT=scim_error(400))
    browser = browser_of(new_staff(tenant))
    with misbehaving_server(handler) as server:
        letter = buried(server, person, "user.updated")
        place = reverse("admin:provisioning_deadletter_dry_run", args=(quote(letter.pk),))
        assert place in browser.get(reverse("admin:provisioning_deadletter_change", args=(quote(letter.pk),))).content.decode()
        assert browser.get(place).status_code == 200
        assert server.received == []
        page = browser.post(place, {"profile": "exact"}).content.decode()
    for shown in ("PUT", "/Users/7", "Before", "Changes"):
        assert shown in page


def test_a_bulk_redelivery_shows_the_changes_of_the_first_dead_letters_beforehand(person: User, tenant: Tenant) -> None:
    there = known(person, displayName="Before")
    handler = by_verb(GET=lambda request: reply(200, there) if request.path.endswith("/7") else listing(there), PUT=scim_error(400))
    browser = browser_of(new_staff(tenant))
    with misbehaving_server(handler) as server:
        letter = buried(server, person, "user.updated")
        EventStream.objects.of(tenant.pk).filter(pk=letter.stream_id).update(held_since=timezone.now(), held_reason="Token refused.")
        all_shown = browser.post(
            f"{reverse('admin:provisioning_deadletter_redelivery')}?stream_id={letter.stream_id}",
            {"changes": "1", "reason": "Fixed", "rate_per_second": "7"},
        )
        chosen = {ACTION_CHECKBOX_NAME: [letter.pk], "action": "redeliver_selected", "confirmed": "yes", "changes": "1", "reason": "Fixed"}
        selected = browser.post(reverse("admin:provisioning_deadletter_changelist"), chosen)
    for answer in (all_shown, selected):
        panel = answer.context["panels"][-1]
        assert panel.title == "Changes on the server"
        assert [cell.note for row in panel.rows for cell in row if cell.note] == []
        assert [tuple(cell.text for cell in row[2:]) for row in panel.rows if row[2].text == "displayName"] == [
            ("displayName", "Before", "Ada")
        ]
        assert (panel.rows[0][0].text, panel.rows[0][1].text) == ("user.updated of Ada (ada@example.test)", "PUT /Users/7")
        # The form still contains the entered values.
        assert 'value="Fixed"' in answer.content.decode() or ">Fixed<" in answer.content.decode()
    assert 'value="7"' in all_shown.content.decode()
    assert {request.verb for request in server.received} == {"GET"}
    letter.refresh_from_db()
    assert (letter.state, Job.objects.of(tenant.pk).exists()) == ("open", False)


def test_a_bulk_redelivery_to_an_unreachable_server_says_why_its_changes_are_unknown(person: User, tenant: Tenant) -> None:
    browser = browser_of(new_staff(tenant))
    with misbehaving_server(by_verb(GET=scim_error(400))) as server:
        letter = buried(server, person, "user.updated")
    page = browser.post(f"{reverse('admin:provisioning_deadletter_redelivery')}?stream_id={letter.stream_id}", {"changes": "1"})

    (row,) = page.context["panels"][-1].rows
    assert (row[1].text, row[1].note[:28]) == ("Nothing is sent.", "A redelivery would fail now:")


def test_an_account_that_may_not_see_profiles_gets_no_changes(person: User, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    with misbehaving_server(by_verb(GET=scim_error(400))) as server:
        letter = buried(server, person, "user.updated")
        take_from_administrators(monkeypatch, Right.VIEW_BODIES.value)
        browser = browser_of(new_staff(tenant))
        address = f"{reverse('admin:provisioning_deadletter_redelivery')}?stream_id={letter.stream_id}"
        assert "Show the changes" not in browser.get(address).content.decode()
        page = browser.post(address, {"changes": "1", "reason": "Fixed", "rate_per_second": "7"})
    assert not Job.objects.of(tenant.pk).exists()
    assert [panel.title for panel in page.context["panels"]] == ["What would be redelivered"]
    assert server.received == []
