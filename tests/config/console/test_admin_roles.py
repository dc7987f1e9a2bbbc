"""The permissions of each role in the admin, tested with real accounts on every page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.contrib.admin.utils import quote
from django.db import models
from django.test import Client
from django.urls import reverse

from config.console.admin_site import site
from events.admin.open_connections import ACT, ConnectionsPage
from events.models import EventStream
from identity.admin.object_actions import ObjectActionsAdmin
from identity.models import Job, Staff, Tenant
from identity.staff_roles import ADMINISTRATOR, AUDITOR, PROVISIONING_OPERATOR, ROLES, RoleRule
from provisioning.admin.rights import Right
from tests.depth import sample
from tests.factories.admin import Rows, browser_of, new_staff, new_tenant
from tests.factories.models.identity import JobFactory

MODELS = sorted(site._registry, key=lambda model: model._meta.label_lower)
NOT_FOR_PROVISIONING = (
    "authapi.client",
    "authapi.signingkey",
    "authapi.samlkey",
    "authapi.clientgrant",
    "identity.staff",
    "identity.auditentry",
    "identity.tenant",
)


def place_of(model: type[models.Model], page: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def addresses_that_act(rows: Rows) -> list[str]:
    """Return the URLs of all model pages on which staff add, change or delete a row, or run an action."""
    found = []
    for model in MODELS:
        page = site.get_model_admin(model)
        found.append(place_of(model, "add"))
        if not getattr(page, "tenant_column", None):
            continue
        key = quote(rows.of(model).pk)
        found += [place_of(model, "change", key), place_of(model, "delete", key)]
        if isinstance(page, ObjectActionsAdmin):
            found += [place_of(model, "action", key, action.name) for action in page.object_actions]
    return found


@pytest.mark.sized
@pytest.mark.parametrize("is_of_platform", [False, True], ids=["of a tenant", "of the platform"])
def test_an_auditor_sees_every_list_and_cannot_change_anything(committed_db: None, *, is_of_platform: bool) -> None:
    rows = Rows(new_tenant())
    browser = browser_of(new_staff(None if is_of_platform else rows.tenant, AUDITOR))
    if is_of_platform:
        browser.post(reverse("admin:choose_tenant"), {"tenant": rows.tenant.pk})
    acts = addresses_that_act(rows)
    for address in sample(acts, "of the platform", len(acts) // 2) if is_of_platform else acts:
        assert browser.post(address, {"post": "yes", "reason": "no"}).status_code == 403, address
    administrator = browser_of(new_staff(None if is_of_platform else rows.tenant))
    for model in MODELS:
        address = place_of(model, "changelist")
        # A list with one row redirects to the form of that row.
        answers = [whose.get(address, follow=True).status_code for whose in (browser, administrator)]
        assert answers[0] == answers[1], address


def addresses_of_every_page(rows: Rows) -> Iterator[str]:
    """Yield the URLs of all pages of each model: Django's pages and our own."""
    for model in MODELS:
        page = site.get_model_admin(model)
        key = quote(rows.of(model).pk) if getattr(page, "tenant_column", None) else "nothing"
        acts = page.object_actions if isinstance(page, ObjectActionsAdmin) else ()
        values = {"object_id": key, "action_name": acts[0].name if acts else "nothing"}
        for pattern in page.get_urls():
            # Django's redirect of old URLs has no name and shows no data.
            if pattern.name:
                yield reverse(f"admin:{pattern.name}", kwargs={name: values.get(name, "nothing") for name in pattern.pattern.converters})


def test_an_account_without_permissions_gets_no_page_of_any_model(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(tenant)
    addresses = list(addresses_of_every_page(rows))
    monkeypatch.setitem(ROLES, ADMINISTRATOR, RoleRule("Nothing", "", ()))
    browser = browser_of(new_staff(tenant))

    answers = {(address, call.__name__): call(address).status_code for address in addresses for call in (browser.get, browser.post)}

    assert {asked: status for asked, status in answers.items() if status not in {403, 404, 405}} == {}
    # A 404 alone proves no refusal: these URLs also answer 404 for a missing row, for a job without a file and for a trial without an
    # event.
    absent = [address for address in addresses if 403 not in (answers[address, "get"], answers[address, "post"])]
    assert [address for address in absent if not re.search(r"/nothing/|/job/.*/file/$|/event-run/$", address)] == []


def test_every_url_refuses_a_write_by_an_auditor(tenant: Tenant) -> None:
    rows = Rows(tenant)
    browser = browser_of(new_staff(tenant, AUDITOR))
    answers = {address: browser.post(address, {"post": "yes"}).status_code for address in addresses_of_every_page(rows)}
    lists = {place_of(model, "changelist") for model in MODELS} | {reverse("admin:provisioning_deadletter_kinds")}

    # Lists and histories only show data, for any HTTP method.
    taken = {address for address, status in answers.items() if status not in {403, 404, 405} and not address.endswith("/history/")}
    assert taken - lists == set()


def test_an_auditor_sees_no_button_of_any_action(tenant: Tenant) -> None:
    rows = Rows(tenant)
    browser = browser_of(new_staff(tenant, AUDITOR))
    for model in MODELS:
        page = site.get_model_admin(model)
        if not isinstance(page, ObjectActionsAdmin) or model is Tenant:
            continue
        key = quote(rows.of(model).pk)
        shown = browser.get(place_of(model, "change", key)).content.decode()
        for action in page.object_actions:
            assert place_of(model, "action", key, action.name) not in shown, (model, action.name)


def test_a_provisioning_operator_manages_streams_and_cannot_see_clients_or_staff(tenant: Tenant) -> None:
    rows = Rows(tenant)
    browser = browser_of(new_staff(tenant, PROVISIONING_OPERATOR))
    assert browser.get(place_of(EventStream, "add")).status_code == 200
    for label in (
        "provisioning.action",
        "provisioning.deadletter",
        "provisioning.delivery",
        "identity.user",
        "identity.job",
        "events.logentry",
    ):
        model = next(model for model in MODELS if model._meta.label_lower == label)
        assert browser.get(place_of(model, "changelist")).status_code == 200, label
    for label in NOT_FOR_PROVISIONING:
        model = next(model for model in MODELS if model._meta.label_lower == label)
        assert browser.get(place_of(model, "changelist")).status_code == 403, label
    for model in MODELS:
        if model._meta.app_label in {"identity", "authapi"}:
            assert browser.post(place_of(model, "add"), {}).status_code == 403, model
            if getattr(site.get_model_admin(model), "tenant_column", None):
                deletion = place_of(model, "delete", quote(rows.of(model).pk))
                assert browser.post(deletion, {"post": "yes"}).status_code == 403, model


@pytest.mark.parametrize(("job_type", "answer"), [(Job.Type.USERS_IMPORT, 403), (Job.Type.STREAM_RECONCILIATION, 302)])
def test_a_provisioning_operator_can_cancel_only_jobs_of_streams(tenant: Tenant, job_type: Job.Type, answer: int) -> None:
    job = JobFactory.create(tenant_id=tenant.pk, type=job_type, parameters={"plan": {}, "stream_id": "est_none"})
    browser = browser_of(new_staff(tenant, PROVISIONING_OPERATOR))

    assert browser.post(place_of(Job, "action", quote(job.pk), "cancel")).status_code == answer


def test_no_role_sees_another_tenant(tenant: Tenant) -> None:
    rows = Rows(new_tenant())
    for role in ROLES:
        browser = browser_of(new_staff(tenant, role))
        for model in MODELS:
            if getattr(site.get_model_admin(model), "tenant_column", None):
                answer = browser.get(place_of(model, "change", quote(rows.of(model).pk)))
                assert answer.status_code in {403, 404}, (role, model)
                assert rows.tenant.pk not in answer.content.decode().replace(str(rows.of(model).pk), ""), (role, model)


def test_an_auditor_on_the_connections_page_cannot_send_a_canary(tenant: Tenant) -> None:
    page = next(page for page in site.pages if isinstance(page, ConnectionsPage))
    auditor, administrator = browser_of(new_staff(tenant, AUDITOR)), browser_of(new_staff(tenant))
    canary = reverse("admin:events_connections_canary")

    assert auditor.get(page.address).status_code == 200
    assert canary not in auditor.get(page.address).content.decode()
    assert auditor.post(canary).status_code == 403
    assert administrator.post(canary).status_code == 404  # The role may send a canary, but this request names no existing client.


@pytest.mark.parametrize(
    ("role", "permission", "is_allowed"),
    [
        (AUDITOR, Right.VIEW.value, True),
        (AUDITOR, Right.VIEW_BODIES.value, True),
        (AUDITOR, Right.EXPORT.value, False),
        (AUDITOR, Right.REDELIVER.value, False),
        (AUDITOR, ACT, False),
        (PROVISIONING_OPERATOR, Right.FORCE.value, True),
        (PROVISIONING_OPERATOR, "identity.view_staff", False),
        (PROVISIONING_OPERATOR, "identity.change_user", False),
        (PROVISIONING_OPERATOR, ACT, False),
        ("somebody", Right.VIEW.value, False),
    ],
)
def test_a_role_has_exactly_its_listed_permissions(role: str, permission: str, *, is_allowed: bool) -> None:
    assert Staff(role=role, is_active=True).has_perm(permission) is is_allowed
    assert not Staff(role=role, is_active=False).has_perm(permission)


def test_a_deactivated_account_sees_nothing(tenant: Tenant) -> None:
    account = new_staff(tenant)
    browser: Client = browser_of(account)
    Staff.objects.filter(pk=account.pk).update(is_active=False)

    assert browser.get(place_of(EventStream, "changelist")).status_code == 302
