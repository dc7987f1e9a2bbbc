"""The connection test and its write check, with a real SCIM server and with servers that each have one fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from config.launcher.tls import server_certificate
from identity.models import Tenant
from identity.services.failures import Conflict, NotSupported
from provisioning.actions.setups import draft_setup
from provisioning.models import Action, Delivery, Trial
from provisioning.services.actions import create_action, update_action
from provisioning.trials.connection_test import run_connection_test
from provisioning.trials.trials import TrialReport
from tests.factories.models.provisioning import ActionFactory, TrialFactory
from tests.factories.scim import (
    HANG_UP,
    TOKEN,
    Handler,
    RealServer,
    Received,
    Wire,
    listing,
    misbehaving_server,
    reply,
    scim_error,
    user,
)
from tests.foundation.outbound.test_session import tls_server
from tests.management import Management


class ScimServer:
    """A small SCIM server without faults. Subclasses change one behavior."""

    def __init__(self, *existing: dict[str, Any]) -> None:
        self.users: dict[str, dict[str, Any]] = {item["id"]: item for item in existing}

    def __call__(self, request: Received) -> Wire:
        identifier = request.path.removeprefix("/scim/v2/Users").removeprefix("/")
        if request.path.endswith("/ServiceProviderConfig"):
            return reply(200, {"patch": {"supported": True}, "filter": {"supported": True, "maxResults": 10}})
        if request.path.endswith("/Schemas"):
            return reply(200, {"Resources": [{"id": "urn:ietf:params:scim:schemas:core:2.0:User"}]})
        if request.verb == "POST":
            return self.create(request)
        if request.verb == "GET" and not identifier:
            return self.search(request)
        if identifier not in self.users:
            return scim_error(404)
        return {"GET": self.read, "PUT": self.put, "PATCH": self.patch, "DELETE": self.delete}[request.verb](request, identifier)

    def create(self, request: Received) -> Wire:
        made = {**request.json, "id": str(len(self.users) + 1)}
        self.users[made["id"]] = made
        return reply(201, made)

    def search(self, request: Received) -> Wire:
        attribute, _, value = request.filter.partition(" eq ")
        found = [item for item in self.users.values() if not value or item.get(attribute) == json.loads(value)]
        if "count=1" in request.target:
            start = int(request.target.partition("startIndex=")[2].partition("&")[0]) - 1
            page = found[start : start + 1]
            return reply(200, {"totalResults": len(found), "Resources": page})
        return listing(*found)

    def read(self, request: Received, identifier: str) -> Wire:
        return reply(200, self.users[identifier])

    def put(self, request: Received, identifier: str) -> Wire:
        self.users[identifier] = {**request.json, "id": identifier}
        return reply(204)

    def patch(self, request: Received, identifier: str) -> Wire:
        for operation in request.json["Operations"]:
            value = operation["value"]
            self.users[identifier] |= {operation["path"]: value} if "path" in operation else value
        return reply(204)

    def delete(self, request: Received, identifier: str) -> Wire:
        del self.users[identifier]
        return reply(204)


ANNA = user("7", externalId="database|anna", userName="anna@example.test")
BEN = user("8", externalId="database|ben", userName="ben@example.test")


def probed(action: Action, *, with_write_check: bool = False) -> TrialReport:
    return run_connection_test(draft_setup(action), actor="somebody", with_write_check=with_write_check)


def states(report: TrialReport) -> dict[str, str]:
    return {step.name: step.finding.state for step in report.steps.taken}


def at(report: TrialReport, name: str) -> Any:
    return next(step.finding for step in report.steps.taken if step.name == name)


def test_the_connection_test_succeeds_on_the_real_server_and_writes_nothing(action: Action, server: RealServer) -> None:
    server.add(externalId="database|anna", userName="anna@example.test")
    server.add(externalId="database|ben", userName="ben@example.test")
    report = probed(action)
    assert [(step.name, step.finding.state) for step in report.steps.taken] == [
        ("settings", "ok"),
        ("address", "ok"),
        ("connection", "warning"),  # The check for TLS has no result `ok`, because the server of the test does not use TLS.
        ("authentication", "ok"),
        ("paging", "ok"),
        ("filter", "ok"),
        ("user_name_filter", "ok"),
        ("configuration", "ok"),
        ("schemas", "ok"),
    ]
    assert all(step.duration_ms >= 0 and step.finding.text for step in report.steps.taken)
    assert len(server.users()) == 2


def test_the_write_check_recommends_put_on_the_real_server_and_leaves_no_user(action: Action, server: RealServer) -> None:
    report = probed(action, with_write_check=True)
    assert not report.steps.first_failure, report.document
    assert report.findings["recommended_update_mode"] == "put"
    names = ("create", "find", "put", "patch", "patch_per_attribute", "delete", "recommendation")
    assert [states(report)[name] for name in names] == ["ok"] * 7
    assert server.users() == []
    assert not Delivery.objects.filter(tenant_id=action.tenant_id).exists()


def test_the_result_is_stored_with_the_action_and_as_a_trial(action: Action) -> None:
    report = probed(action, with_write_check=True)
    action.refresh_from_db()
    kept = action.capabilities["connection test"]
    assert (kept["recommended_update_mode"], kept["steps"]["filter"]) == ("put", "ok")
    trial = Trial.objects.get(action=action)
    assert (str(trial.pk), trial.kind, trial.outcome, trial.actor) == (report.id, "canary", "passed", "somebody")
    assert [step["name"] for step in trial.steps][:2] == ["settings", "address"]
    assert trial.ended_at is not None


def test_the_source_addresses_of_requests_are_reported(action: Action, settings: Settings) -> None:
    settings.OUTBOUND_ADDRESSES = ["eu=203.0.113.7"]
    assert probed(action).document["outbound_addresses"] == ["eu=203.0.113.7"]


def always(answer: Wire) -> Handler:
    return lambda request: answer


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (scim_error(401), "SCIM_BEARER_TOKEN"),
        (scim_error(403), "permission"),
        (reply(404, raw=b"<html>"), "/scim/v2"),
        (reply(301, headers={"Location": "https://elsewhere.test/"}), "redirects"),
        (scim_error(429), "rate"),
        (scim_error(500), "log"),
        (reply(200, raw=b"<html>hello</html>"), "does not comply with RFC 7644"),
        (reply(200, {"totalResults": 0}), "does not comply with RFC 7644"),
        (HANG_UP, ""),
    ],
    ids=["token", "permission", "path", "redirect", "rate", "failure", "page", "shape", "hang-up"],
)
def test_an_unusable_server_fails_at_its_step_with_advice(make_action: Callable[..., Action], answer: Wire, advice: str) -> None:
    with misbehaving_server(always(answer)) as server:
        report = probed(make_action(server.base_url), with_write_check=True)
        assert {request.verb for request in server.received} == {"GET"}
    assert (states(report)["connection"], states(report)["authentication"]) == ("warning", "failed")
    assert advice in at(report, "authentication").advice
    assert {states(report)[name] for name in ("paging", "filter", "configuration", "schemas", "create")} == {"skipped"}
    assert report.document["outcome"] == "failed"


def test_a_forbidden_address_is_reported_with_advice(make_action: Callable[..., Action], settings: Settings) -> None:
    action = make_action("http://127.0.0.1:9")
    settings.OUTBOUND_PRIVATE_NETWORKS = []
    report = probed(action)
    assert (states(report)["address"], states(report)["connection"]) == ("failed", "skipped")
    assert "OUTBOUND_PRIVATE_NETWORKS" in at(report, "address").advice


def test_a_closed_port_and_an_unknown_host_are_reported(make_action: Callable[..., Action], tenant: Tenant) -> None:
    report = probed(make_action("http://127.0.0.1:9"))
    assert (states(report)["address"], states(report)["connection"], states(report)["authentication"]) == ("ok", "failed", "skipped")
    assert "firewall" in at(report, "connection").advice
    Action.objects.of(tenant.pk).delete()
    unknown = probed(make_action("http://nobody.invalid"))
    assert (states(unknown)["address"], "DNS" in at(unknown, "address").advice) == ("failed", True)


def test_a_certificate_of_an_unknown_authority_is_reported_and_the_token_is_not_sent(
    make_action: Callable[..., Action], tmp_path: Path, settings: Settings
) -> None:
    certificate = server_certificate(tmp_path)
    with tls_server(certificate, []) as port:
        action = make_action(f"https://localhost:{port}/scim/v2")
        report = probed(action)
        assert (states(report)["address"], states(report)["connection"]) == ("ok", "failed")
        assert "certificate" in at(report, "connection").advice
    with tls_server(certificate, []) as port:
        settings.OUTBOUND_CA_FILE = str(certificate.authority)
        moved = {"SCIM_BASE_URL": f"https://localhost:{port}/scim/v2", "SCIM_BEARER_TOKEN": TOKEN}
        update_action(tenant_id=action.tenant_id, action_id=action.pk, secrets=moved)
        report = probed(Action.objects.of(action.tenant_id).get(pk=action.pk))
        assert states(report)["connection"] == "ok"
        assert at(report, "connection").details["tls"].startswith("TLSv1")
        assert at(report, "connection").details["certificate_until"].endswith("GMT")


def test_missing_secrets_cause_a_failed_step_and_no_error(tenant: Tenant) -> None:
    bare = ActionFactory.create(tenant_id=tenant.pk, name="bare", template="scim-user-provisioning")
    report = probed(bare)
    assert states(report) == {"settings": "failed"}
    assert "SCIM_BASE_URL, SCIM_BEARER_TOKEN" in report.summary


class IgnoresFilters(ScimServer):
    def search(self, request: Received) -> Wire:
        return listing(*self.users.values()) if request.filter else super().search(request)


class ReadsPatterns(ScimServer):
    def search(self, request: Received) -> Wire:
        if not request.filter:
            return super().search(request)
        alternatives = json.loads(request.filter.partition(" eq ")[2]).split("|")
        return listing(*(item for item in self.users.values() if any(part in str(item.get("externalId")) for part in alternatives)))


class FindsNobody(ScimServer):
    def search(self, request: Received) -> Wire:
        return listing() if request.filter else super().search(request)


class RefusesFilters(ScimServer):
    def search(self, request: Received) -> Wire:
        return scim_error(400, "invalidFilter") if request.filter else super().search(request)


class SendsAll(ScimServer):
    def search(self, request: Received) -> Wire:
        return super().search(request) if request.filter else listing(*self.users.values())


class RepeatsPages(ScimServer):
    def search(self, request: Received) -> Wire:
        return super().search(request) if request.filter else reply(200, {"totalResults": 2, "Resources": [ANNA]})


class HasNoDiscovery(ScimServer):
    def __call__(self, request: Received) -> Wire:
        return reply(404, raw=b"<html>") if "Users" not in request.path else super().__call__(request)


class OffersNoPatch(ScimServer):
    def __call__(self, request: Received) -> Wire:
        return reply(200, {"patch": {"supported": False}}) if "Config" in request.path else super().__call__(request)


@pytest.mark.parametrize(
    ("server_class", "step", "state", "text"),
    [
        (IgnoresFilters, "filter", "failed", "ignored"),
        (IgnoresFilters, "user_name_filter", "warning", "returned users"),
        (ReadsPatterns, "filter", "failed", "unused externalId"),
        (FindsNobody, "filter", "failed", "does not find that user"),
        (RefusesFilters, "filter", "warning", "refuses the filter"),
        (RefusesFilters, "user_name_filter", "warning", "refuses the filter"),
        (SendsAll, "paging", "warning", "returned 2 users instead of 1"),
        (RepeatsPages, "paging", "warning", "Both pages are equal"),
        (HasNoDiscovery, "configuration", "warning", "Not readable"),
        (HasNoDiscovery, "schemas", "warning", "Not readable"),
        (OffersNoPatch, "configuration", "warning", "no support for PATCH"),
    ],
)
def test_the_failure_of_each_step_of_a_connection_test_has_its_own_reason(
    make_action: Callable[..., Action], server_class: type[ScimServer], step: str, state: str, text: str
) -> None:
    with misbehaving_server(server_class(ANNA, BEN)) as server:
        report = probed(make_action(server.base_url, options={"update_mode": "patch"}))
    found = at(report, step)
    assert (found.state, text in found.text) == (state, True), found
    assert found.advice


def test_a_server_without_the_enterprise_schema_is_reported_if_the_mapping_uses_it(make_action: Callable[..., Action]) -> None:
    with misbehaving_server(ScimServer()) as server:
        report = probed(make_action(server.base_url, options={"enterprise": True}))
    assert "enterprise" in at(report, "schemas").text


class DoublesLists(ScimServer):
    """A server on which a PATCH without a path appends to lists, as on SCIMMY. It does not support PUT."""

    def put(self, request: Received, identifier: str) -> Wire:
        return reply(501)

    def patch(self, request: Received, identifier: str) -> Wire:
        before = dict(self.users[identifier])
        answer = super().patch(request, identifier)
        if "path" not in request.json["Operations"][0]:
            self.users[identifier]["emails"] = before["emails"] + self.users[identifier]["emails"]
        return answer


class DropsExternalId(ScimServer):
    def create(self, request: Received) -> Wire:
        made = {name: value for name, value in request.json.items() if name != "externalId"}
        return super().create(replace(request, body=json.dumps(made).encode()))


class ChangesNothing(ScimServer):
    def put(self, request: Received, identifier: str) -> Wire:
        return reply(204)

    def patch(self, request: Received, identifier: str) -> Wire:
        return reply(204)


class KeepsForEver(ScimServer):
    def delete(self, request: Received, identifier: str) -> Wire:
        return reply(204)


class CannotDelete(ScimServer):
    def delete(self, request: Received, identifier: str) -> Wire:
        return scim_error(403)


class LosesTheAnswer(ScimServer):
    def create(self, request: Received) -> Wire:
        super().create(request)
        return reply(201, {"schemas": [], "displayName": "no id"})


def flown(make_action: Callable[..., Action], server: ScimServer) -> TrialReport:
    with misbehaving_server(server) as running:
        return probed(make_action(running.base_url), with_write_check=True)


def test_a_patch_that_duplicates_email_addresses_is_detected_and_another_mode_is_recommended(make_action: Callable[..., Action]) -> None:
    report = flown(make_action, server := DoublesLists())
    assert [states(report)[mode] for mode in ("put", "patch", "patch_per_attribute")] == ["warning", "warning", "ok"]
    assert "emails (2 instead of 1)" in at(report, "patch").text
    assert report.findings["recommended_update_mode"] == "patch_per_attribute"
    assert "update_mode" in at(report, "recommendation").advice
    assert server.users == {}


class RefusesPut(ScimServer):
    def put(self, request: Received, identifier: str) -> Wire:
        return scim_error(405)


def test_a_mode_that_can_remove_attributes_is_preferred(make_action: Callable[..., Action]) -> None:
    report = flown(make_action, RefusesPut())
    assert [states(report)[mode] for mode in ("put", "patch", "patch_per_attribute")] == ["warning", "ok", "ok"]
    assert report.findings["recommended_update_mode"] == "patch_per_attribute"


def test_attributes_that_the_server_does_not_store_are_reported(make_action: Callable[..., Action]) -> None:
    report = flown(make_action, server := DropsExternalId())
    assert (states(report)["create"], at(report, "create").details["not_kept"]) == ("warning", ["externalId"])
    assert states(report)["find"] == "failed"
    assert server.users == {}


def test_a_server_that_accepts_updates_without_storing_them_has_no_working_mode(make_action: Callable[..., Action]) -> None:
    report = flown(make_action, server := ChangesNothing())
    assert "recommended_update_mode" not in report.findings
    assert states(report)["recommendation"] == "failed"
    assert server.users == {}


def test_a_failed_deletion_reports_the_remaining_user(make_action: Callable[..., Action], tenant: Tenant) -> None:
    for server_class in (KeepsForEver, CannotDelete):
        report = flown(make_action, server_class())
        assert states(report)["delete"] == "failed"
        assert "identity-canary" in at(report, "delete").advice
        Action.objects.of(tenant.pk).delete()


def test_a_user_created_with_an_invalid_response_is_found_and_deleted(make_action: Callable[..., Action]) -> None:
    report = flown(make_action, server := LosesTheAnswer())
    assert (states(report)["create"], states(report)["delete"]) == ("failed", "ok")
    assert server.users == {}


def test_a_second_test_is_refused_until_the_running_test_counts_as_lost(action: Action) -> None:
    running = TrialFactory.create(action=action)
    with pytest.raises(Conflict, match="running"):
        probed(action)
    Trial.objects.filter(pk=running.pk).update(started_at=timezone.now() - timedelta(minutes=2))
    assert not probed(action).steps.first_failure
    running.refresh_from_db()
    assert running.outcome == "lost"


def test_an_action_with_an_installed_class_has_no_connection_test(tenant: Tenant) -> None:
    path = "provisioning.actions.event_stream.v1.ScimUserProvisioning"
    with pytest.raises(NotSupported):
        probed(create_action(tenant_id=tenant.pk, name="own", entry_point_path=path))


def test_a_token_that_the_server_echoes_is_never_shown(make_action: Callable[..., Action], tenant: Tenant) -> None:
    echo = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"], "scimType": TOKEN, "detail": f"{TOKEN} is unknown"}
    with misbehaving_server(always(reply(401, echo, headers={"X-Echo": TOKEN}))) as server:
        action = make_action(server.base_url)
        answer = Management(tenant).post(f"actions/actions/{action.pk}/test", {"payload": {"canary": True}})
    assert answer.json["payload"]["outcome"] == "failed"
    kept = Trial.objects.get(action=action)
    assert TOKEN not in answer.body.decode() + json.dumps(kept.steps) + kept.summary


def test_a_test_over_the_management_interface_shows_its_steps_and_is_an_execution(
    action: Action, tenant: Tenant, server: RealServer
) -> None:
    api = Management(tenant)
    answer = api.post(f"actions/actions/{action.pk}/test", {"payload": {"test": "connection", "canary": True}})
    assert answer.status == 200
    payload = answer.json["payload"]
    assert (payload["outcome"], payload["recommended_update_mode"], payload["steps"][0]["name"]) == ("passed", "put", "settings")
    execution = api.get(f"actions/executions/{payload['execution_id']}").json
    assert (execution["status"], execution["results"][0]["action_name"]) == ("final", "to scim")
    assert server.users() == []
