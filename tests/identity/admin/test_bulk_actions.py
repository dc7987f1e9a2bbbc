"""Actions on many rows: the confirmation page, small selections that run in the request, and large selections that become a job."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from events.models import Event
from foundation.acting import Act, Actor, as_document
from identity.models import AuditEntry, Connection, Job, Staff, Tenant, User
from identity.services.jobs import run_job, run_next_chunk
from identity.services.users import block_user, new_user
from tests.config.console.staff_account.sessions import grow_old
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.factories.identity import make_user
from tests.factories.models.identity import ConnectionFactory, JobChunkFactory, JobErrorFactory, JobFactory, UserFactory

LIST = reverse("admin:identity_user_changelist")
MANY = 25


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits: one request processes at most ten rows, and one chunk of a job processes ten rows."""
    monkeypatch.setattr("identity.admin.bulk_actions.AT_ONCE", 10)
    monkeypatch.setattr("identity.services.bulk_jobs._ROWS_PER_STEP", 10)
    monkeypatch.setattr("identity.services.bulk_jobs._STEP_SECONDS", 60.0)


@pytest.fixture
def people(database_connection: Connection) -> list[User]:
    """Create more users than one request may process."""
    users = [new_user(database_connection, f"u{number:03}", {"email": f"user{number}@example.test"}) for number in range(MANY)]
    return User.objects.of(database_connection.tenant_id).bulk_create(users)


def asked(browser: Client, action: str, query: str = "", **sent: Any) -> Any:
    """Select all rows that the list shows with `query`, send the form with the action, and return the response."""
    return browser.post(f"{LIST}{query}", {"action": action, "select_across": "1", "index": "0", ACTION_CHECKBOX_NAME: ["1"], **sent})


def begun(browser: Client, action: str, query: str = "", reason: str = "They left.") -> Job:
    """Select all rows that the list shows with `query`, submit the form of the confirmation page, and return the job."""
    form = fields_of(asked(browser, action, query).content.decode())
    answer = browser.post(f"{LIST}{query}", {**form, "reason": reason})
    assert answer.status_code == 302, answer.content.decode()
    job = Job.all_tenants.filter(type=Job.Type.BULK_ACTION).latest("created_at")
    assert answer.headers["location"] == page_of(job)
    return job


def fields_of(page: str) -> dict[str, str]:
    main = page[page.index('id="content"') :]
    found = [re.search(r'name="([^"]+)"\s+value="([^"]*)"', field) or re.search(r'name="(shown)" value="(\d+)"', field)
             for field in re.findall(r"<input[^>]*hidden[^>]*>", main)]  # fmt: skip
    return {match[1]: match[2] for match in found if match and match[1] != "csrfmiddlewaretoken"}


def page_of(job: Job, name: str = "change", *args: str) -> str:
    return reverse(f"admin:identity_job_{name}", args=(quote(job.pk), *args))


def blocked(tenant: Tenant) -> int:
    return User.objects.of(tenant.pk).filter(blocked=True).count()


def entries_of(job: Job) -> Any:
    return AuditEntry.objects.filter(tenant_id=job.tenant_id, object_type="identity.user", facts__job=job.pk)


def test_the_confirmation_page_shows_the_effect_on_the_rows_and_changes_nothing(
    browser: Client, tenant: Tenant, people: list[User]
) -> None:
    page = asked(browser, "block_selected").content.decode()

    assert f"Block {MANY} users?" in page
    assert "can no longer log in" in page
    assert "and 5 more" in page
    assert "has a button that cancels the job" in page
    assert blocked(tenant) == 0
    assert not Job.objects.of(tenant.pk).exists()


def test_the_confirmation_page_shows_names_of_users_instead_of_ids(browser: Client, database_connection: Connection) -> None:
    user = make_user(connection=database_connection, email="ada@example.test", name="Ada Lovelace")
    page = asked(browser, "block_selected", "?q=ada@example.test").content.decode()
    assert "Ada Lovelace (ada@example.test)</li>" in page
    assert f"{user.user_id}</li>" not in page


def test_few_rows_are_processed_within_the_request(browser: Client, tenant: Tenant, people: list[User]) -> None:
    chosen = {"action": "block_selected", ACTION_CHECKBOX_NAME: [people[0].pk, people[1].pk]}
    assert "Block 2 users?" in browser.post(LIST, chosen).content.decode()

    page = browser.post(LIST, {**chosen, "confirmed": "yes", "shown": "2", "reason": "Asked to"}, follow=True).content.decode()

    assert "2 users blocked." in page
    assert blocked(tenant) == 2
    noted = AuditEntry.objects.filter(tenant_id=tenant.pk, object_type="identity.user", kind="change")
    assert set(noted.values_list("act", "reason")) == {("Block selected users", "Asked to")}
    assert not Job.objects.of(tenant.pk).exists()


@pytest.mark.parametrize("index", ["0", "1", "7", "x"])
def test_the_audit_log_shows_the_performed_action_although_the_form_contains_several_actions(
    index: str, browser: Client, tenant: Tenant, people: list[User]
) -> None:
    chosen = {"action": ["block_selected", "unblock_selected"], "index": index, ACTION_CHECKBOX_NAME: [people[0].pk]}
    if index in ("1", "7"):
        block_user(tenant_id=tenant.pk, user_id=people[0].user_id)

    browser.post(LIST, {**chosen, "confirmed": "yes", "shown": "1", "reason": " Asked to "})

    noted = AuditEntry.objects.filter(tenant_id=tenant.pk, object_type="identity.user", kind="change")
    done = "Block selected users" if blocked(tenant) else "Unblock selected users"
    assert list(noted.values_list("act", "reason")) == [(done, "Asked to")]


def test_an_invalid_key_in_the_selection_is_reported(browser: Client, tenant: Tenant, people: list[User]) -> None:
    roles = reverse("admin:identity_role_changelist")
    for address, action, key in ((LIST, "block_selected", "abc"), (LIST, "block_selected", "9" * 40), (roles, "delete_selected", "rol_\0")):
        answer = browser.post(address, {"action": action, "index": "0", ACTION_CHECKBOX_NAME: [people[0].pk, key]}, follow=True)

        assert (answer.status_code, "The selection is invalid" in answer.content.decode()) == (200, True)


def test_an_action_on_more_rows_than_one_request_processes_requires_a_reason(browser: Client, tenant: Tenant, people: list[User]) -> None:
    form = fields_of(asked(browser, "block_selected").content.decode())

    page = browser.post(LIST, {**form, "reason": ""}).content.decode()

    assert "This field is required." in page
    assert not Job.objects.of(tenant.pk).exists()


def test_a_job_writes_an_event_and_an_audit_entry_for_every_row(browser: Client, staff: Staff, tenant: Tenant, people: list[User]) -> None:
    job = begun(browser, "block_selected")
    assert job.summary == {"total": MANY, "done": 0, "failed": 0, "gone": 0}
    assert blocked(tenant) == 0

    assert run_job(job.pk)

    job.refresh_from_db()
    assert (job.status, job.summary["done"], blocked(tenant)) == ("completed", MANY, MANY)
    assert Event.objects.filter(tenant_id=tenant.pk, type="user.updated").count() == MANY
    entries = entries_of(job)
    assert entries.count() == entries.values("object_id").distinct().count() == MANY
    known = set(entries.values_list("actor_kind", "actor_name", "ip", "act", "reason"))
    assert known == {("staff", staff.email, "127.0.0.1", "Block selected users", "They left.")}
    [entry] = entries.filter(object_id=str(people[5].pk))
    assert (entry.before, entry.after) == ({"blocked": None}, {"blocked": True})
    [start] = AuditEntry.objects.filter(object_type="identity.job", object_id=job.pk)
    assert (start.act_id, start.facts, start.reason) == (entry.act_id, {"rows": MANY}, "They left.")


def test_rows_created_after_the_confirmation_are_not_changed(
    browser: Client, tenant: Tenant, people: list[User], database_connection: Connection
) -> None:
    job = begun(browser, "delete_selected")
    late = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="late@example.test")

    assert run_job(job.pk)

    assert [user.pk for user in User.objects.of(tenant.pk)] == [late.pk]


def test_only_rows_that_match_the_filters_of_the_list_are_selected(browser: Client, tenant: Tenant, people: list[User]) -> None:
    for user in people[:11]:
        block_user(tenant_id=tenant.pk, user_id=user.user_id)

    job = begun(browser, "unblock_selected", "?blocked__exact=1")

    assert job.summary["total"] == 11
    assert run_job(job.pk)
    assert blocked(tenant) == 0


def test_a_selection_that_contains_more_rows_than_were_confirmed_requires_another_confirmation(
    browser: Client, tenant: Tenant, people: list[User], database_connection: Connection
) -> None:
    form = fields_of(asked(browser, "delete_selected", "?q=user1@").content.decode())
    assert form["shown"] == "1"

    page = browser.post(LIST, {**form, "reason": "They left."}).content.decode()

    assert f"Now {MANY} rows are selected instead of 1." in page
    assert fields_of(page)["shown"] == str(MANY)
    assert User.objects.of(tenant.pk).count() == MANY
    assert not Job.objects.of(tenant.pk).exists()


def test_the_list_has_a_link_to_the_job_whose_page_shows_progress_and_a_cancel_button(
    browser: Client, staff: Staff, tenant: Tenant, people: list[User]
) -> None:
    job = begun(browser, "block_selected")
    assert run_next_chunk(job.pk)

    page = browser.get(page_of(job)).content.decode()
    assert f"Block {MANY} users" in page
    assert f"10 of {MANY}: 10 done, 0 failed, 0 already deleted" in page
    assert staff.email in page
    assert "They left." in page
    assert '<meta http-equiv="refresh" content="5">' in page
    listed = browser.get(LIST).content.decode()
    assert page_of(job) in listed
    assert "40 % done" in listed

    browser.post(page_of(job, "action", "cancel"))

    assert run_job(job.pk)
    job.refresh_from_db()
    assert (job.status, job.status_details) == ("failed", f"Canceled by {staff.email}.")
    assert blocked(tenant) == 10
    assert "Not changed" in browser.get(page_of(job)).content.decode()
    assert page_of(job) not in browser.get(LIST).content.decode()


def test_a_session_with_an_expired_proof_cannot_start_a_job(browser: Client, tenant: Tenant, people: list[User]) -> None:
    form = fields_of(asked(browser, "delete_selected").content.decode())
    grow_old(browser)

    for answer in (asked(browser, "delete_selected"), browser.post(LIST, {**form, "reason": "x"})):
        assert answer.headers["location"].startswith("/admin/account/prove/?next=")
    assert not Job.objects.of(tenant.pk).exists()


def test_an_account_without_permission_to_change_users_cannot_start_or_cancel_jobs(
    browser: Client, tenant: Tenant, people: list[User]
) -> None:
    job = begun(browser, "block_selected")
    for role in ("auditor", "provisioning_operator"):
        other = browser_of(new_staff(tenant, role))
        form = {"action": "block_selected", "select_across": "1", ACTION_CHECKBOX_NAME: ["1"], "confirmed": "yes", "shown": str(MANY)}
        other.post(LIST, {**form, "reason": "x"})
        assert other.get(page_of(job)).status_code == 200
        assert other.post(page_of(job, "action", "cancel")).status_code == 403

    assert Job.objects.of(tenant.pk).count() == 1


def test_staff_of_a_tenant_select_and_see_only_rows_of_that_tenant(browser: Client, tenant: Tenant, people: list[User]) -> None:
    job = begun(browser, "block_selected")
    other = new_tenant("other")
    stranger = browser_of(new_staff(other))
    form = {"action": "delete_selected", ACTION_CHECKBOX_NAME: [user.pk for user in people], "confirmed": "yes", "shown": str(MANY)}

    for sent in (form, {**form, "select_across": "1"}):
        page = stranger.post(LIST, {**sent, "reason": "x"}, follow=True).content.decode()
        assert "The selected rows no longer exist." in page
    assert stranger.get(page_of(job)).status_code == 404
    assert stranger.post(page_of(job, "action", "cancel")).status_code == 404
    assert job.pk not in stranger.get(reverse("admin:identity_job_changelist")).content.decode()
    assert User.objects.of(tenant.pk).count() == MANY


def test_an_operator_cannot_select_all_rows_of_a_list_that_shows_several_tenants(operator: Client, people: list[User]) -> None:
    elsewhere = ConnectionFactory.create(tenant_id=new_tenant("other").pk, name="people", strategy="database")
    make_user(connection=elsewhere, email="user0@elsewhere.test")
    keys = [user.pk for user in people]

    page = operator.post(LIST, {"action": "block_selected", "select_across": "1", ACTION_CHECKBOX_NAME: keys}, follow=True).content.decode()
    assert "These rows belong to several tenants" in page
    assert "Block 25 users?" in operator.post(LIST, {"action": "block_selected", ACTION_CHECKBOX_NAME: keys}).content.decode()


def test_an_account_that_cannot_view_the_rows_cannot_view_the_job(tenant: Tenant) -> None:
    administrator = browser_of(new_staff(tenant))
    about = {"label": "Delete selected clients", "model": "authapi.client", "permission": "authapi.delete_client"}
    by = as_document(Act(Actor("staff", "1", "ada@example.test")))
    job = JobFactory.create(
        tenant_id=tenant.pk, type=Job.Type.BULK_ACTION, parameters={**about, "act": "authapi.client:delete", "next": 0, "by": by}
    )
    error = JobErrorFactory.create(job=job, user={"name": "Till", "id": "1"}, errors=[{"code": "Conflict", "message": "No."}])
    chunk = JobChunkFactory.create(job=job)
    rows = (("joberror", error), ("jobchunk", chunk))
    pages = (page_of(job), *(reverse(f"admin:identity_{name}_change", args=(row.pk,)) for name, row in rows))
    assert [administrator.get(page).status_code for page in pages] == [200, 200, 200]

    provisioning = browser_of(new_staff(tenant, "provisioning_operator"))

    assert [provisioning.get(page).status_code for page in pages] == [404, 404, 404]
    assert job.pk not in provisioning.get(reverse("admin:identity_job_changelist")).content.decode()
