"""Redeliveries with the current profile of the user, and redeliveries of deletions of users that exist again."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from pytest_django.fixtures import Settings

from events.log.numbering import number_tenant
from events.models import EventStream
from identity.models import Connection, Tenant, User
from identity.services.failures import Conflict, NotFound
from identity.services.users import delete_user, update_user
from provisioning.dead_letters.redelivery import Order, redeliver_event, redeliver_letters, redeliver_one
from provisioning.engine import delivering, destinations, dispatch
from provisioning.links.rows import head_position
from provisioning.models import Attempt, DeadLetter, Delivery
from provisioning.runs.current_profile import UserExistsAgain
from provisioning.runs.failures import DataFailure
from provisioning.runs.outcomes import Claim
from tests.factories.models.identity import UserFactory
from tests.provisioning.engine.conftest import Answer
from tests.provisioning.engine.logs import DESTINATION, make_stream

ACTOR = "ada@example.test"


class Destination:
    """A destination that stores the object of each event, and refuses selected event types."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.skipped: set[str] = set()
        self.taken: list[tuple[str, dict[str, Any]]] = []
        self.positions: list[int] = []

    def __call__(self, claim: Claim, envelope: dict[str, Any], *_rest: Any) -> Answer:
        assert envelope["x0stream"] == claim.stream_id
        if envelope["type"] in self.refused:
            raise DataFailure("refused", status=400)
        if envelope["type"] in self.skipped:
            return Answer("skipped", "no user to update")
        self.taken.append((envelope["type"], envelope["data"]["object"]))
        self.positions.append(claim.position)
        return Answer()


@pytest.fixture(autouse=True)
def _one_attempt(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = []


@pytest.fixture
def destination(committed_db: None, monkeypatch: pytest.MonkeyPatch) -> Destination:
    made = Destination()
    monkeypatch.setitem(destinations.DESTINATIONS, DESTINATION, made)
    return made


@pytest.fixture
def stream(tenant: Tenant, destination: Destination) -> EventStream:
    return make_stream(tenant)


@pytest.fixture
def user(database_connection: Connection, stream: EventStream) -> User:
    return UserFactory.create(tenant_id=database_connection.tenant_id, connection=database_connection, email="old@example.test")


def deliver(stream: EventStream, user: User) -> None:
    number_tenant(stream.tenant_id)
    dispatch.dispatch_stream(stream.pk)
    delivering.deliver_lane(stream.pk, f"user:{user.user_id}")


def letter_of(stream: EventStream, event_type: str) -> DeadLetter:
    return DeadLetter.objects.get(stream_id=stream.pk, event_type=event_type)


def redeliver(letter: DeadLetter, **order: Any) -> bool:
    return redeliver_one(tenant_id=letter.tenant_id, letter_id=letter.pk, order=Order(ACTOR, **order))


def test_a_creation_is_redelivered_with_the_current_profile_and_marked(destination: Destination, stream: EventStream, user: User) -> None:
    destination.refused, destination.skipped = {"user.created"}, {"user.updated"}
    deliver(stream, user)
    update_user(tenant_id=stream.tenant_id, user_id=user.user_id, changes={"given_name": "Ada"})
    deliver(stream, user)
    letter = letter_of(stream, "user.created")
    destination.refused = set()

    assert redeliver(letter, with_current_profile=True)
    delivering.deliver_lane(stream.pk, letter.key)

    ((event_type, sent),) = destination.taken
    assert (event_type, sent["given_name"]) == ("user.created", "Ada")
    assert list(Attempt.objects.filter(delivery_id=letter.delivery_id).order_by("number").values_list("trigger", flat=True)) == [
        "scheduled",
        "current",
    ]
    letter.refresh_from_db()
    assert (letter.state, "given_name" in orjson.loads(bytes(letter.body or b""))["data"]["object"]) == ("resolved", False)


def test_the_current_profile_is_sent_although_a_newer_event_was_already_delivered(
    destination: Destination, stream: EventStream, user: User
) -> None:
    destination.refused = {"user.created"}
    deliver(stream, user)
    update_user(tenant_id=stream.tenant_id, user_id=user.user_id, changes={"given_name": "Ada"})
    deliver(stream, user)
    destination.refused = set()
    letter = letter_of(stream, "user.created")
    redeliver(letter, with_current_profile=True)
    delivering.deliver_lane(stream.pk, letter.key)
    assert Delivery.objects.get(pk=letter.delivery_id).state == "delivered"
    assert [sent["given_name"] for _, sent in destination.taken] == ["Ada", "Ada"]


def test_the_current_profile_has_the_position_of_the_newest_event(destination: Destination, stream: EventStream, user: User) -> None:
    destination.refused = {"user.created"}
    deliver(stream, user)
    update_user(tenant_id=stream.tenant_id, user_id=user.user_id, changes={"given_name": "Ada"})
    deliver(stream, user)
    destination.refused = set()
    letter = letter_of(stream, "user.created")
    redeliver(letter, with_current_profile=True)
    delivering.deliver_lane(stream.pk, letter.key)
    newest, created = head_position(stream.tenant_id), Delivery.objects.get(pk=letter.delivery_id).position
    assert destination.positions == [newest, newest]
    assert created < newest


def test_a_later_redelivery_without_the_current_profile_sends_the_recorded_event(
    destination: Destination, stream: EventStream, user: User
) -> None:
    destination.refused = {"user.created"}
    deliver(stream, user)
    letter = letter_of(stream, "user.created")
    update_user(tenant_id=stream.tenant_id, user_id=user.user_id, changes={"given_name": "Ada"})
    redeliver(letter, with_current_profile=True)
    delivering.deliver_lane(stream.pk, letter.key)
    destination.refused = set()
    redeliver(letter)
    delivering.deliver_lane(stream.pk, letter.key)
    assert "given_name" not in destination.taken[0][1]


def test_the_current_profile_cannot_be_sent_for_a_deleted_user_or_for_a_deletion(
    destination: Destination, stream: EventStream, user: User
) -> None:
    destination.refused = {"user.created", "user.deleted"}
    deliver(stream, user)
    delete_user(tenant_id=stream.tenant_id, user_id=user.user_id)
    deliver(stream, user)
    with pytest.raises(NotFound):
        redeliver(letter_of(stream, "user.created"), with_current_profile=True)
    with pytest.raises(Conflict):
        redeliver(letter_of(stream, "user.deleted"), with_current_profile=True)
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"dead"}


def test_redelivering_the_deletion_of_a_user_that_exists_again_requires_force(
    destination: Destination, stream: EventStream, user: User
) -> None:
    destination.refused = {"user.deleted"}
    deliver(stream, user)
    delete_user(tenant_id=stream.tenant_id, user_id=user.user_id)
    deliver(stream, user)
    letter = letter_of(stream, "user.deleted")
    UserFactory.create(
        tenant_id=stream.tenant_id,
        connection=user.connection,
        email="old@example.test",
        identifier=user.user_id.partition("|")[2],
    )
    destination.refused = set()
    destination.taken.clear()

    with pytest.raises(UserExistsAgain):
        redeliver(letter)
    with pytest.raises(UserExistsAgain):
        redeliver_event(tenant_id=stream.tenant_id, stream_id=stream.pk, event_id=letter.event_id, actor=ACTOR)
    many = redeliver_letters(tenant_id=stream.tenant_id, letter_ids=[letter.pk], order=Order(ACTOR))
    assert (many.count, many.blocked, DeadLetter.objects.get(pk=letter.pk).state) == (0, 1, "open")
    assert redeliver(letter, force=True)
    delivering.deliver_lane(stream.pk, letter.key)
    assert destination.taken[0][0] == "user.deleted"
