"""Users in the admin. Every change calls a service function, which records an event. The form shows every refusal of the service."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from events.log.numbering import number_tenant
from events.models import Event
from identity.models import AuditEntry, Connection, LinkedIdentity, PasswordCredential, Staff, User
from identity.services.users import block_user, link_users
from tests.factories.models.identity import ConnectionFactory, UserFactory

ADD = "admin:identity_user_add"
LIST = "admin:identity_user_changelist"


@pytest.fixture
def user(database_connection: Connection) -> User:
    return UserFactory.create(
        tenant_id=database_connection.tenant_id,
        connection=database_connection,
        email="ada@example.test",
        name="Ada",
        app_metadata={"plan": "gold", "seats": 2},
    )


def page(user: User, name: str = "change") -> str:
    return reverse(f"admin:identity_user_{name}", args=(quote(user.pk),))


def action(user: User, name: str) -> str:
    return reverse("admin:identity_user_action", args=(quote(user.pk), name))


def form_of(browser: Client, user: User, **changes: object) -> dict[str, object]:
    """Return the values that a browser sends if a member of staff has changed only the fields in `changes` in the form of `user`."""
    form = browser.get(page(user)).context["adminform"].form
    sent = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in {**sent, **changes}.items() if value not in (None, False)}


def events_of(user: User) -> list[str]:
    return list(Event.objects.filter(tenant_id=user.tenant_id, root=f"user:{user.user_id}").order_by("pk").values_list("type", flat=True))


def test_a_user_is_created_with_a_password_and_an_event(browser: Client, database_connection: Connection) -> None:
    sent = {"connection": database_connection.pk, "email": "new@example.test", "password": "A-Password-of-theirs-1", "given_name": "New"}
    answer = browser.post(reverse(ADD), {**sent, "app_metadata": '{"plan": "free"}'})

    user = User.objects.of(database_connection.tenant_id).get(email="new@example.test")
    assert answer.headers["location"] == reverse(LIST)
    assert (user.given_name, user.name, user.app_metadata) == ("New", "new@example.test", {"plan": "free"})
    assert PasswordCredential.objects.filter(user=user).exists()
    assert events_of(user) == ["user.created"]


def test_the_event_of_a_change_contains_the_request_and_no_staff_account(browser: Client, user: User, staff: Staff) -> None:
    browser.post(page(user), form_of(browser, user, given_name="Augusta"), headers={"user-agent": "a browser"})

    context = json.loads(bytes(Event.objects.filter(root=f"user:{user.user_id}").latest("pk").body))["data"]["context"]
    assert context["request"]["method"] == "POST"
    assert context["request"]["user_agent"] == "a browser"
    assert staff.email not in json.dumps(context)


def test_the_form_of_a_new_user_offers_the_database_connection(browser: Client, database_connection: Connection) -> None:
    assert browser.get(reverse(ADD)).context["adminform"].form["connection"].value() == database_connection.pk


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"email": "ada@example.test"}, "already exists"),
        ({"email": "no address"}, "Enter a valid email"),
        ({"phone_number": "12"}, "A plus sign and 1 to 15 digits"),
        ({"identifier": "with space"}, "no white space"),
        ({"app_metadata": "[1]"}, "Enter a JSON object"),
        ({"app_metadata": "{"}, "Enter a valid JSON"),
        ({"app_metadata": '{"a": NaN}'}, "beyond 64 bits"),
        ({"app_metadata": '{"a": "\\u0000"}'}, "NUL"),
        ({"app_metadata": "[" * 100_000}, "nested too deeply"),
        ({"app_metadata": f'{{"a": {"9" * 5000}}}'}, "nested too deeply"),
        ({"app_metadata": json.dumps({"a": "x" * 600_000})}, "maximum size"),
    ],
)
def test_a_refusal_by_the_service_is_shown_on_the_form(browser: Client, user: User, sent: dict[str, str], said: str) -> None:
    answer = browser.post(reverse(ADD), {"connection": user.connection_id, "email": "other@example.test", **sent})

    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert User.objects.of(user.tenant_id).count() == 1


def test_a_password_that_violates_the_policy_of_the_connection_is_refused(
    browser: Client, user: User, database_connection: Connection
) -> None:
    for address, sent in (
        (reverse(ADD), {"connection": database_connection.pk, "email": "a@example.test", "password": "short"}),
        (page(user), form_of(browser, user, password="short")),
    ):
        answer = browser.post(address, sent)
        assert answer.status_code == 200
        assert "Password must have 8 to 512 characters" in answer.content.decode()
    assert not PasswordCredential.objects.filter(user__tenant=user.tenant).exists()


def test_a_password_for_a_user_without_a_database_connection_is_refused(browser: Client, user: User) -> None:
    company = ConnectionFactory.create(tenant_id=user.tenant_id, name="company", strategy="samlp")
    answer = browser.post(reverse(ADD), {"connection": company.pk, "email": "a@example.test", "password": "whatever-it-is"})

    assert "Only users of a database connection have a password" in answer.content.decode()
    assert "whatever-it-is" not in answer.content.decode()


def test_a_change_records_one_event_and_is_listed_in_the_history(browser: Client, user: User) -> None:
    browser.post(page(user), form_of(browser, user, given_name="Augusta", app_metadata='{"plan": "silver"}'))

    changed = User.objects.of(user.tenant_id).get()
    assert (changed.given_name, changed.app_metadata) == ("Augusta", {"plan": "silver"})
    assert events_of(user) == ["user.created", "user.updated"]
    history = browser.get(page(user, "history")).content.decode()
    assert "given name" in history
    assert "app metadata" in history


def test_saving_without_a_change_records_no_event(browser: Client, user: User) -> None:
    browser.post(page(user), form_of(browser, user))

    assert events_of(user) == ["user.created"]


def test_a_refused_change_keeps_the_typed_values(browser: Client, user: User) -> None:
    UserFactory.create(tenant_id=user.tenant_id, connection=user.connection, email="taken@example.test")
    answer = browser.post(page(user), form_of(browser, user, email="taken@example.test", given_name="Typed"))

    assert answer.status_code == 200
    assert 'value="Typed"' in answer.content.decode()
    assert User.objects.of(user.tenant_id).get(pk=user.pk).given_name is None


def test_the_deletion_of_a_user_records_an_event_and_an_audit_entry(browser: Client, user: User) -> None:
    assert "user.deleted" in browser.get(page(user, "delete")).content.decode()
    answer = browser.post(page(user, "delete"), {"post": "yes"})

    assert answer.headers["location"] == reverse(LIST)
    assert events_of(user) == ["user.created", "user.deleted"]
    assert AuditEntry.objects.filter(object_type="identity.user", object_id=str(user.pk), kind="delete").exists()


def test_selected_users_are_deleted_after_a_confirmation_and_each_deletion_is_an_event(browser: Client, user: User) -> None:
    second = UserFactory.create(tenant_id=user.tenant_id, connection=user.connection, email="second@example.test")
    chosen = {"action": "delete_selected", ACTION_CHECKBOX_NAME: [user.pk, second.pk]}

    page = browser.post(reverse(LIST), chosen).content.decode()
    assert '<li class="long">Ada (ada@example.test)</li><li class="long">second@example.test</li>' in page
    assert User.objects.of(user.tenant_id).count() == 2
    page = browser.post(reverse(LIST), {**chosen, "confirmed": "yes", "shown": "2"}, follow=True).content.decode()

    assert "2 users deleted" in page
    assert events_of(user)[-1] == events_of(second)[-1] == "user.deleted"


def test_blocking_requires_a_post(browser: Client, user: User) -> None:
    assert "can no longer log in" in browser.get(action(user, "block")).content.decode()
    assert not User.objects.of(user.tenant_id).get().blocked

    browser.post(action(user, "block"))
    assert User.objects.of(user.tenant_id).get().blocked
    assert browser.post(action(user, "block")).status_code == 403

    browser.post(action(user, "unblock"))
    assert User.objects.of(user.tenant_id).get().blocked is False
    assert events_of(user) == ["user.created", "user.updated", "user.updated"]


def test_a_selected_user_is_blocked_and_an_event_is_recorded(browser: Client, user: User) -> None:
    browser.post(reverse(LIST), {"action": "block_selected", ACTION_CHECKBOX_NAME: [user.pk], "confirmed": "yes", "shown": "1"})

    assert User.objects.of(user.tenant_id).get().blocked
    assert events_of(user) == ["user.created", "user.updated"]


def test_the_page_of_a_user_shows_linked_users_and_refuses_an_unknown_user(browser: Client, user: User) -> None:
    second = UserFactory.create(tenant_id=user.tenant_id, connection=user.connection, email="second@example.test")

    assert "does not exist" in browser.post(action(user, "link"), {"secondary": "database|nobody"}).content.decode()
    browser.post(action(user, "link"), {"secondary": second.user_id})

    assert str(LinkedIdentity.objects.of(user.tenant_id).get()) == second.user_id
    assert second.user_id in browser.get(page(user), {"tab": "identities"}).content.decode()


def test_an_identity_can_be_unlinked_on_the_page_of_the_identity(browser: Client, user: User) -> None:
    second = UserFactory.create(tenant_id=user.tenant_id, connection=user.connection, email="second@example.test")
    link_users(tenant_id=user.tenant_id, primary_id=user.user_id, secondary_id=second.user_id)
    linked = LinkedIdentity.objects.of(user.tenant_id).get()

    answer = browser.post(reverse("admin:identity_linkedidentity_action", args=(quote(linked.pk), "unlink")))

    assert answer.headers["location"] == reverse("admin:identity_linkedidentity_changelist")
    assert User.objects.of(user.tenant_id).filter(user_id=second.user_id).exists()


def test_the_page_of_a_user_shows_the_latest_events_newest_first(browser: Client, user: User) -> None:
    block_user(tenant_id=user.tenant_id, user_id=user.user_id)
    number_tenant(user.tenant_id)

    shown = browser.get(page(user), {"tab": "events-and-deliveries"}).content.decode()
    shown = shown[shown.index("Last events") :]
    assert shown.index("user.<wbr>updated") < shown.index("user.<wbr>created")


@pytest.mark.parametrize("term", ["ada@example.test", "ADA@example.test", "ada", "Ada"])
def test_users_are_found_by_address_and_name(browser: Client, user: User, term: str) -> None:
    UserFactory.create(tenant_id=user.tenant_id, connection=user.connection, email="bob@example.test", name="Bob")

    rows = browser.get(reverse(LIST), {"q": term}).context["cl"].result_list
    assert [row.pk for row in rows] == [user.pk]


def test_a_user_is_found_by_its_full_id(browser: Client, user: User) -> None:
    rows = browser.get(reverse(LIST), {"q": user.user_id}).context["cl"].result_list
    assert [row.pk for row in rows] == [user.pk]


def test_an_empty_list_suggests_the_next_step(browser: Client, database_connection: Connection) -> None:
    assert "No users yet. Add one here" in browser.get(reverse(LIST)).content.decode()


def test_no_password_hash_is_shown(browser: Client, user: User) -> None:
    browser.post(page(user), form_of(browser, user, password="another-password-1"))
    credential = PasswordCredential.objects.get(user=user)

    for place in (page(user), reverse("admin:identity_passwordcredential_change", args=(quote(credential.pk),))):
        assert credential.password_hash not in browser.get(place).content.decode()
