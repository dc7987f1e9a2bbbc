from __future__ import annotations

import uuid
from typing import Any

import pytest

from events.models import EventStream
from identity.models import Tenant
from identity.services.failures import AlreadyExists, Invalid, NotFound
from provisioning.actions.secrets import open_secrets
from provisioning.models import Action, ActionSecret, ActionVersion
from provisioning.services.action_warnings import warnings_of
from provisioning.services.actions import (
    ActionInUse,
    create_action,
    delete_action,
    deploy_action,
    deploy_version,
    set_secret,
    update_action,
)
from tests.factories.models.identity import TenantFactory

TEMPLATE = "scim-user-provisioning"


def make(tenant: Tenant, **more: Any) -> Action:
    return create_action(tenant_id=tenant.pk, **{"name": "to scim", "template": TEMPLATE, **more})


def test_a_new_action_has_the_default_mapping_and_is_not_deployed(tenant: Tenant) -> None:
    action = make(tenant)
    assert (action.mapping, action.options, action.is_deployed, action.status) == (None, {}, False, "built")


@pytest.mark.parametrize("name", ["SCIM_BASE_URL", "SCIM_BEARER_TOKEN"])
def test_an_action_without_a_required_secret_cannot_be_deployed(tenant: Tenant, name: str) -> None:
    secrets = {"SCIM_BASE_URL": "https://scim.example.test/v2", "SCIM_BEARER_TOKEN": "token"}
    action = make(tenant, secrets={key: value for key, value in secrets.items() if key != name})
    with pytest.raises(Invalid) as refused:
        deploy_action(tenant_id=tenant.pk, action_id=action.pk)
    assert [text.split()[0] for text in refused.value.errors["secrets"]] == [name]
    with pytest.raises(Invalid):
        make(tenant, name="at once", deploy=True)
    assert not ActionVersion.objects.filter(action__tenant_id=tenant.pk).exists()
    assert not Action.objects.of(tenant.pk).filter(is_deployed=True).exists()
    assert not Action.objects.of(tenant.pk).filter(name="at once").exists()

    update_action(tenant_id=tenant.pk, action_id=action.pk, secrets=secrets)
    assert deploy_action(tenant_id=tenant.pk, action_id=action.pk).is_deployed


def test_a_version_that_lacks_a_required_secret_cannot_be_deployed_again(tenant: Tenant) -> None:
    secrets = {"SCIM_BASE_URL": "https://scim.example.test/v2", "SCIM_BEARER_TOKEN": "token"}
    action = make(tenant, secrets=secrets, deploy=True)
    version = ActionVersion.objects.get(action=action)
    version.secrets = [secret for secret in version.secrets if secret["name"] != "SCIM_BEARER_TOKEN"]
    version.save(update_fields=["secrets"])
    with pytest.raises(Invalid, match="SCIM_BEARER_TOKEN"):
        deploy_version(tenant_id=tenant.pk, action_id=action.pk, version_id=version.pk)
    assert ActionVersion.objects.filter(action=action).count() == 1


def test_names_of_actions_are_unique_only_within_a_tenant(tenant: Tenant) -> None:
    make(tenant)
    with pytest.raises(AlreadyExists):
        make(tenant)
    other = TenantFactory.create(id=f"{tenant.pk}-b", name="other", host=f"{tenant.pk}-b.example.test")
    assert make(other).name == "to scim"


@pytest.mark.parametrize(
    "more",
    [
        {"template": ""},
        {"template": TEMPLATE, "entry_point_path": "provisioning.actions.event_stream.v1.ScimUserProvisioning"},
        {"template": "unknown"},
        {"template": "", "entry_point_path": "os.system"},
        {"template": "", "entry_point_path": "provisioning.engine.runner.run_action"},
        {"template": "", "entry_point_path": "provisioning.actions.event_stream.v1"},
        {"template": "", "entry_point_path": "provisioning.actions.event_stream.v1.Missing"},
        {"template": "", "entry_point_path": "provisioning.actions.event_stream.v1.scim_users.ScimTransport"},
        {"template": "", "entry_point_path": "provisioning.actions.event_stream.v1.objects.Message"},
        {"template": "", "entry_point_path": "provisioning.actions.event_stream.v12.Thing"},
        {"options": {"update_mode": "post"}},
        {"mapping": [{"path": "userName", "source": "email"}]},
        {"name": ""},
        {"name": "n" * 256},
    ],
)
def test_an_action_that_cannot_run_is_refused(tenant: Tenant, more: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        make(tenant, **more)
    assert not Action.objects.of(tenant.pk).exists()


def test_an_installed_entry_point_is_accepted(tenant: Tenant) -> None:
    path = "provisioning.actions.event_stream.v1.ScimUserProvisioning"
    assert make(tenant, template="", entry_point_path=path).entry_point == path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SCIM_TIMEOUT_MS", "0"),
        ("SCIM_TIMEOUT_MS", "soon"),
        ("SCIM_TIMEOUT_MS", 1500),
        ("SCIM_MAX_RETRIES", "-1"),
        ("SCIM_BASE_URL", "scim.example.test"),
        ("SCIM_BEARER_TOKEN", "a b"),
        ("OTHER", "x" * 4097),
        ("odd name", "x"),
        ("n" * 129, "x"),
    ],
)
def test_an_invalid_secret_is_refused_on_saving_and_nothing_is_stored(tenant: Tenant, name: str, value: Any) -> None:
    with pytest.raises(Invalid) as refused:
        make(tenant, secrets={"SCIM_BASE_URL": "https://scim.example.test", name: value})
    assert list(refused.value.errors) == ["secrets"]
    assert not Action.objects.of(tenant.pk).exists()


def test_an_action_can_have_at_most_thirty_secrets(tenant: Tenant) -> None:
    action = make(tenant, secrets={f"S{number}": "x" for number in range(30)})
    with pytest.raises(Invalid, match="at most 30"):
        set_secret(tenant_id=tenant.pk, action_id=action.pk, name="ONE_MORE", value="x")
    assert action.secrets.count() == 30


def test_a_sealed_secret_can_be_replaced_or_removed(tenant: Tenant) -> None:
    action = make(tenant, secrets={"SCIM_BEARER_TOKEN": "first"})
    assert "first" not in ActionSecret.objects.get(action=action).sealed
    set_secret(tenant_id=tenant.pk, action_id=action.pk, name="SCIM_BEARER_TOKEN", value="second")
    assert open_secrets(action) == {"SCIM_BEARER_TOKEN": "second"}
    set_secret(tenant_id=tenant.pk, action_id=action.pk, name="SCIM_BEARER_TOKEN", value="")
    assert open_secrets(action) == {}


ADDRESS = {"SCIM_BASE_URL": "https://scim.example.test/v2", "SCIM_BEARER_TOKEN": "first"}


@pytest.mark.parametrize(
    "address",
    ["https://evil.example.test/v2", "https://scim.example.test.evil.test/v2", "https://scim.example.test:8443/v2", "https://example.test"],
)
def test_a_stored_token_is_not_sent_to_another_server(tenant: Tenant, address: str) -> None:
    action = make(tenant, secrets=ADDRESS)
    with pytest.raises(Invalid, match="enter SCIM_BEARER_TOKEN as well"):
        set_secret(tenant_id=tenant.pk, action_id=action.pk, name="SCIM_BASE_URL", value=address)
    for secrets in ({"SCIM_BASE_URL": address}, {"SCIM_BASE_URL": address, "SCIM_TIMEOUT_MS": "700"}):
        for only in (None, ["SCIM_BEARER_TOKEN", *secrets]):
            with pytest.raises(Invalid, match="enter SCIM_BEARER_TOKEN as well"):
                update_action(tenant_id=tenant.pk, action_id=action.pk, secrets=secrets, only_secrets=only)
    assert open_secrets(action) == ADDRESS


def test_removing_the_url_first_does_not_bypass_the_token_check(tenant: Tenant) -> None:
    action = make(tenant, secrets=ADDRESS)
    set_secret(tenant_id=tenant.pk, action_id=action.pk, name="SCIM_BASE_URL", value=None)
    with pytest.raises(Invalid, match="enter SCIM_BEARER_TOKEN as well"):
        set_secret(tenant_id=tenant.pk, action_id=action.pk, name="SCIM_BASE_URL", value="https://evil.example.test")
    assert open_secrets(action) == {"SCIM_BEARER_TOKEN": "first"}


def test_replacing_an_undecryptable_url_requires_the_token(tenant: Tenant) -> None:
    action = make(tenant, secrets=ADDRESS)
    ActionSecret.objects.filter(action=action, name="SCIM_BASE_URL").update(sealed="garbage")
    with pytest.raises(Invalid, match="enter SCIM_BEARER_TOKEN as well"):
        set_secret(tenant_id=tenant.pk, action_id=action.pk, name="SCIM_BASE_URL", value=ADDRESS["SCIM_BASE_URL"])


@pytest.mark.parametrize(
    "secrets",
    [
        {"SCIM_BASE_URL": "https://new.example.test", "SCIM_BEARER_TOKEN": "second"},
        {"SCIM_BASE_URL": "https://new.example.test", "SCIM_BEARER_TOKEN": None},
        {"SCIM_BASE_URL": "https://SCIM.example.test:443/other/v2"},
    ],
    ids=["with the token", "without any token", "on the same server"],
)
def test_a_url_can_be_changed_with_its_token_or_within_the_same_server(tenant: Tenant, secrets: dict[str, str | None]) -> None:
    action = make(tenant, secrets=ADDRESS)
    update_action(tenant_id=tenant.pk, action_id=action.pk, secrets=secrets)
    assert open_secrets(action) == {name: value for name, value in {**ADDRESS, **secrets}.items() if value}


def test_an_update_changes_only_the_given_fields_and_secrets(tenant: Tenant) -> None:
    action = make(tenant, secrets={"A": "1", "B": "2"})
    update_action(
        tenant_id=tenant.pk, action_id=action.pk, changes={"name": "renamed", "options": {"upsert": True}}, secrets={"A": None, "C": "3"}
    )
    action.refresh_from_db()
    assert (action.name, action.options) == ("renamed", {"upsert": True})
    assert open_secrets(action) == {"B": "2", "C": "3"}


def test_an_update_refuses_unknown_fields_and_invalid_mapping_tables(tenant: Tenant) -> None:
    action = make(tenant)
    refused: list[dict[str, Any]] = [{"template": "other"}, {"mapping": []}, {"options": {"upsert": 1}}]
    for changes in refused:
        with pytest.raises(Invalid):
            update_action(tenant_id=tenant.pk, action_id=action.pk, changes=changes)


def test_an_action_that_can_exceed_the_time_budget_is_saved_with_a_warning(tenant: Tenant) -> None:
    action = make(tenant, secrets={"SCIM_MAX_RETRIES": "2"})
    assert "15750 ms" in warnings_of(action)[0]
    assert warnings_of(make(tenant, name="default")) == []


def test_an_action_of_another_tenant_is_not_found(tenant: Tenant) -> None:
    action = make(tenant)
    for tenant_id, action_id in (("another", action.pk), (tenant.pk, uuid.uuid4()), (tenant.pk, "no-uuid")):
        with pytest.raises(NotFound):
            update_action(tenant_id=tenant_id, action_id=action_id, changes={"name": "x"})


def test_an_action_that_a_stream_uses_can_be_deleted_only_by_force(tenant: Tenant) -> None:
    action = make(tenant, secrets={"A": "1"})
    destination = {"action_id": str(action.pk)}
    EventStream(tenant=tenant, name="stream", subscriptions=["user.created"], destination=destination).save()
    with pytest.raises(ActionInUse):
        delete_action(tenant_id=tenant.pk, action_id=action.pk)
    delete_action(tenant_id=tenant.pk, action_id=action.pk, force=True)
    assert not Action.objects.of(tenant.pk).exists()
    assert not ActionSecret.objects.filter(action_id=action.pk).exists()
