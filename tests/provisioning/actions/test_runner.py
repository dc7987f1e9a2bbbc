"""Runs of a stored action: secrets, outcomes and failures. No result of a run contains a secret."""

from __future__ import annotations

import json
import traceback
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from identity.models import Tenant
from provisioning.actions.event_stream.v1.objects import Api, Event
from provisioning.actions.setups import draft_setup
from provisioning.engine.runner import ActionOutcome, run_action
from provisioning.links.rows import RunLinks
from provisioning.models import Action, ActionSecret
from provisioning.runs.failures import ActionCrashed, ActionError, Misconfigured
from provisioning.services.actions import create_action, deploy_action, set_secret
from tests.factories.models.provisioning import ActionFactory, ActionSecretFactory
from tests.factories.scim import TOKEN, by_verb, listing, misbehaving_server, reply, scim_error, sequence, user
from tests.factories.scim_runs import envelope


def scim_action(tenant: Tenant, base_url: str, **more: Any) -> Action:
    secrets = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN, **more.pop("secrets", {})}
    action = create_action(tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets, **more)
    return deploy_action(tenant_id=tenant.pk, action_id=action.pk)


def run(action: Action, event_type: str = "user.created", **more: Any) -> ActionOutcome:
    setup = draft_setup(action)
    arguments = {"attempt": 1, "deadline_seconds": 5.0, "correlation_id": "evt_1234567890123456789012", "links": RunLinks(setup, 1), **more}
    return run_action(setup, envelope(event_type), **arguments)


def test_an_outcome_contains_ids_and_log_lines_and_masked_exchanges(tenant: Tenant) -> None:
    with misbehaving_server(sequence(reply(201, user("77")))) as server:
        outcome = run(scim_action(tenant, server.base_url))
        assert server.received[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert (outcome.status, outcome.reason) == ("delivered", "created")
    assert outcome.detail == {"user_id": "database|anna", "scim_id": "77"}
    assert [line["message"] for line in outcome.log_lines] == ["sync ok"]
    assert [(kept["verb"], kept["path"], kept["status"]) for kept in outcome.exchanges] == [("POST", "/Users", 201)]
    assert outcome.exchanges[0]["request_headers"]["Authorization"] == "***"


def test_the_base_url_is_masked_but_numbers_and_connection_names_are_not(tenant: Tenant) -> None:
    secrets = {"SCIM_TIMEOUT_MS": "1500", "SCIM_MAX_RETRIES": "1", "SCIM_CONNECTION_ALLOWLIST": "people"}
    with misbehaving_server(
        lambda request: reply(201, user("1", meta={"location": f"{server.base_url}/Users/1", "note": "1500 people"}))
    ) as server:
        outcome = run(scim_action(tenant, server.base_url, secrets=secrets))
        assert server.base_url not in json.dumps(outcome.exchanges)
    assert outcome.detail == {"user_id": "database|anna", "scim_id": "1"}
    assert "1500 people" in outcome.exchanges[0]["response_body"]
    assert "***/Users/1" in outcome.exchanges[0]["response_body"]


def test_a_failure_contains_class_and_status_and_detail_and_log_lines_and_exchanges(tenant: Tenant) -> None:
    with misbehaving_server(by_verb(POST=scim_error(409, "uniqueness", "taken"), GET=listing())) as server:
        with pytest.raises(ActionError) as raised:
            run(scim_action(tenant, server.base_url))
    failure = raised.value
    assert (failure.class_name, failure.kind, failure.status, failure.scim_type, failure.detail) == (
        "Conflict",
        "data",
        409,
        "uniqueness",
        "taken",
    )
    assert str(failure) == "POST /Users answered 409 [uniqueness]"
    assert [kept["verb"] for kept in failure.exchanges] == ["POST", "GET", "GET"]
    assert failure.log_lines[-1]["message"] == "sync failed"
    assert failure.log_lines[-1]["level"] == "error"


ECHO = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"], "scimType": TOKEN, "detail": f"token {TOKEN} is unknown", TOKEN: TOKEN}


@pytest.mark.parametrize(
    "answer",
    [
        reply(401, ECHO, headers={"X-Echo": TOKEN, "WWW-Authenticate": f"Bearer {TOKEN}", "Set-Cookie": TOKEN}),
        reply(500, raw=f"<html>{TOKEN}</html>".encode()),
        reply(201, {"id": TOKEN, "echo": TOKEN}),
        reply(302, headers={"Location": f"http://elsewhere.test/?token={TOKEN}"}),
        reply(201, raw=f'{{"id": "{TOKEN}'.encode()),
    ],
    ids=["refusal", "page", "id", "redirect", "broken"],
)
def test_a_token_echoed_by_the_server_is_not_stored(
    tenant: Tenant, answer: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with misbehaving_server(by_verb(POST=answer, GET=listing())) as server:
        action = scim_action(tenant, server.base_url)
        try:
            outcome = run(action)
            kept = json.dumps([outcome.detail, outcome.log_lines, outcome.exchanges]) + repr(outcome)
        except ActionError as failure:
            kept = json.dumps([failure.log_lines, failure.exchanges, failure.detail, failure.scim_type])
            kept += "".join(traceback.format_exception(failure)) + repr(failure)
        assert TOKEN in server.received[0].headers["authorization"]
    shown = capfd.readouterr()
    assert TOKEN not in kept
    assert TOKEN not in caplog.text + shown.out + shown.err
    stored = ActionSecret.objects.filter(action=action).values_list("sealed", flat=True)
    assert TOKEN not in "".join(stored) + repr(vars(action)) + str(list(action.secrets.all()))


def test_the_user_name_of_a_second_lookup_is_masked_in_the_recorded_path(tenant: Tenant) -> None:
    with misbehaving_server(sequence(scim_error(400, "invalidFilter"), listing())) as server:
        outcome = run(scim_action(tenant, server.base_url), "user.updated")
    assert [kept["path"] for kept in outcome.exchanges] == [
        '/Users?filter=externalId eq "database|anna"',
        "/Users?filter=userName eq ***",
    ]


def test_a_secret_encrypted_with_a_removed_key_holds_the_stream(tenant: Tenant, settings: Settings) -> None:
    action = scim_action(tenant, "http://127.0.0.1:1")
    settings.ENCRYPTION_KEYS = {"new": "n" * 40}
    with pytest.raises(Misconfigured, match="cannot be decrypted"):
        run(action)


def test_a_secret_copied_from_another_action_cannot_be_decrypted(tenant: Tenant) -> None:
    first = scim_action(tenant, "http://127.0.0.1:1")
    second = ActionFactory.create(tenant_id=tenant.pk, name="other", template="scim-user-provisioning")
    for secret in first.secrets.all():
        ActionSecretFactory.create(action=second, name=secret.name, sealed=secret.sealed)
    with pytest.raises(Misconfigured, match="cannot be decrypted"):
        run(second)


def test_an_action_without_secrets_holds_the_stream(tenant: Tenant) -> None:
    action = ActionFactory.create(tenant_id=tenant.pk, name="bare", template="scim-user-provisioning")
    with pytest.raises(Misconfigured, match="missing required secret: SCIM_BASE_URL, SCIM_BEARER_TOKEN"):
        run(action)


def test_an_unknown_entry_point_holds_the_stream(tenant: Tenant) -> None:
    action = ActionFactory.create(tenant_id=tenant.pk, name="bare", template="scim-user-provisioning")
    action.template, action.entry_point = "", "provisioning.actions.event_stream.v1.Gone"
    action.save()
    with pytest.raises(Misconfigured, match="is not installed"):
        run(action)


def test_the_next_run_does_not_repeat_the_test_of_the_filters_of_a_server(tenant: Tenant) -> None:
    def exact(request: Any) -> bytes:
        if request.verb == "PUT":
            return reply(204)
        return listing({"id": "1"}) if request.filter == 'externalId eq "database|anna"' else listing()

    with misbehaving_server(exact) as server:
        action = scim_action(tenant, server.base_url)
        run(action, "user.updated")
        run(Action.objects.of(tenant.pk).get(pk=action.pk), "user.updated")
        assert server.lines == ["GET /Users"] * 6 + ["PUT /Users/1", "GET /Users", "PUT /Users/1"]


def test_plain_http_is_refused_in_a_run_after_the_setting_was_disabled(tenant: Tenant, settings: Settings) -> None:
    action = scim_action(tenant, "http://127.0.0.1:1")
    settings.OUTBOUND_ALLOW_HTTP = False
    with pytest.raises(Misconfigured, match="https://"):
        run(action)


def test_a_private_address_that_is_not_allowed_is_a_configuration_failure(tenant: Tenant, settings: Settings) -> None:
    settings.OUTBOUND_PRIVATE_NETWORKS = []
    with misbehaving_server(sequence(reply(201, user("1")))) as server:
        with pytest.raises(ActionError) as raised:
            run(scim_action(tenant, server.base_url))
        assert server.received == []
    assert raised.value.kind == "configuration"


def test_a_run_ends_at_the_given_deadline(tenant: Tenant) -> None:
    with misbehaving_server(sequence(reply(201, user("1")))) as server:
        with pytest.raises(ActionError) as raised:
            run(scim_action(tenant, server.base_url), deadline_seconds=0.0)
        assert server.received == []
    assert raised.value.kind == "transient"


class Installed:
    """An installed action that uses the cache and the log, and fails for deletions and updates."""

    def onExecuteEventStream(self, event: Event, api: Api) -> None:  # noqa: N802  (the documented name)
        data = event.message.data
        api.cache.set("seen", event.message.id)
        api.log("info", "saw", user_id=(data.object or {})["user_id"], cached=api.cache.get("seen"), secret=event.secrets["KEY"])
        if event.message.type == "user.deleted":
            api.message.fail(f"not today, {event.secrets['KEY']}")
        if event.message.type == "user.updated":
            raise ValueError(f"cannot use {event.secrets['KEY']}")


@pytest.fixture
def installed(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> Action:
    from provisioning.actions.event_stream import v1

    monkeypatch.setattr(Installed, "__module__", f"{v1.__name__}.installed")
    monkeypatch.setattr(v1, "Installed", Installed, raising=False)
    action = create_action(tenant_id=tenant.pk, name="own", entry_point_path=f"{v1.__name__}.Installed", secrets={"KEY": "canary-of-mine"})
    return deploy_action(tenant_id=tenant.pk, action_id=action.pk)


def test_an_installed_action_gets_the_event_and_the_api(installed: Action) -> None:
    outcome = run(installed)
    assert (outcome.status, outcome.reason) == ("delivered", "completed")
    assert outcome.log_lines == [
        {
            "level": "info",
            "message": "saw",
            "fields": {"user_id": "database|anna", "cached": "evt_1234567890123456789012", "secret": "***"},
        }
    ]


@pytest.mark.parametrize(
    ("event_type", "text"), [("user.deleted", "not today, ***"), ("user.updated", "the action raised ValueError: cannot use ***")]
)
def test_an_installed_action_can_fail_by_calling_fail_or_by_raising_an_error(installed: Action, event_type: str, text: str) -> None:
    with pytest.raises(ActionCrashed, match=text.replace("*", r"\*")) as raised:
        run(installed, event_type)
    assert raised.value.kind == "action"
    assert "canary-of-mine" not in "".join(traceback.format_exception(raised.value)) + json.dumps(raised.value.log_lines)


def test_a_replaced_secret_is_used_by_the_next_run(tenant: Tenant) -> None:
    with misbehaving_server(sequence(reply(201, user("1")))) as server:
        action = scim_action(tenant, server.base_url)
        set_secret(tenant_id=tenant.pk, action_id=action.pk, name="SCIM_BEARER_TOKEN", value="rotated")
        run(action)
        assert server.received[0].headers["authorization"] == "Bearer rotated"
