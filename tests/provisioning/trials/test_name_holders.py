"""Users whose `userName` belongs to another account on the server. Previews and dry runs predict how the server answers a delivery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from identity.models import Connection, Tenant, User
from provisioning.actions.setups import draft_setup
from provisioning.links.name_holders import foresee
from provisioning.mapping.table import Person
from provisioning.models import Action
from provisioning.scim.options import ScimOptions
from provisioning.trials.mapping_preview import mapping_preview
from tests.factories.models.identity import UserFactory
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import RealServer, by_verb, listing, misbehaving_server, scim_error
from tests.management import Management
from tests.provisioning.trials.test_connection_test import at
from tests.provisioning.trials.test_user_run import run

NAME = "anna@example.test"


@pytest.fixture
def anna(tenant: Tenant, database_connection: Connection) -> User:
    return UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email=NAME, email_verified=True, name="Anna Berg")


def notes(action: Action, user: User, operation: Any = "create", **more: Any) -> tuple[str, ...]:
    return mapping_preview(draft_setup(action), user_id=user.user_id, operation=operation, **more).notes


def test_no_note_is_shown_if_no_other_account_has_the_name(action: Action, anna: User, server: RealServer) -> None:
    assert run(action, anna, dry_run=True).summary.startswith("Would create")
    assert notes(action, anna) == ()
    server.add(externalId=anna.user_id, userName=NAME)
    assert run(action, anna, dry_run=True).summary.startswith("Would update")
    assert notes(action, anna, "update") == ()


@pytest.mark.parametrize("external_id", ["database|stranger", None])
def test_a_dry_run_predicts_that_creating_a_user_with_a_taken_name_fails(
    action: Action, anna: User, server: RealServer, external_id: str | None
) -> None:
    holder = server.add(userName=NAME.upper(), **({"externalId": external_id} if external_id else {}))
    dry = run(action, anna, dry_run=True)
    assert dry.steps.first_failure
    assert f"409: the account {holder['id']}" in at(dry, "write").text
    (note,) = notes(action, anna)
    assert f"409: the account {holder['id']}" in note
    advice = "Check on the server to which user the account belongs." if external_id else "if the userName is proven to be the user's."
    assert note.endswith(advice)

    written = run(action, anna, dry_run=False)
    assert "409" in at(written, "write").text
    assert server.users() == [holder]


def test_a_dry_run_predicts_that_an_existing_account_is_taken_over(
    make_action: Callable[..., Action], anna: User, server: RealServer
) -> None:
    action = make_action(server.base_url, options={"adopt_on_conflict": True})
    holder = server.add(userName=NAME)
    dry = run(action, anna, dry_run=True)
    assert not dry.steps.first_failure
    assert f"the account {holder['id']}, which has this userName, is then taken over" in at(dry, "write").text
    assert run(action, anna, dry_run=False).summary == "Done: adopted."


def test_a_dry_run_predicts_that_an_update_to_a_taken_name_fails(action: Action, anna: User, server: RealServer) -> None:
    server.add(externalId=anna.user_id, userName="before@example.test")
    holder = server.add(externalId="database|stranger", userName=NAME)
    dry = run(action, anna, dry_run=True)
    assert f"409: the account {holder['id']}" in at(dry, "write").text
    assert f"409: the account {holder['id']}" in notes(action, anna, "update")[0]
    assert "409" in at(run(action, anna, dry_run=False), "write").text


class Answering:
    """A client whose search returns accounts, or fails the test if there must be no search."""

    def __init__(self, *accounts: dict[str, Any], may_search: bool = True) -> None:
        self._accounts, self._may_search = list(accounts), may_search

    def filtered(self, _attribute: str, _value: str) -> list[dict[str, Any]]:
        assert self._may_search
        return self._accounts


ANNA = Person(external_id="database|anna", user_name=NAME)


@pytest.mark.parametrize(
    ("person", "before"), [(ANNA, {"id": "7", "userName": NAME.upper()}), (replace(ANNA, user_name=""), None)], ids=["own name", "no name"]
)
def test_no_search_is_made_without_a_name_or_if_the_account_already_has_it(person: Person, before: dict[str, Any] | None) -> None:
    client: Any = Answering(may_search=False)
    assert foresee(client, person, ScimOptions(), own_id="7", before=before) is None


@pytest.mark.parametrize(
    ("account", "own_id"),
    [({"id": "7", "userName": NAME}, "7"), ({"id": "8", "userName": NAME, "externalId": ANNA.external_id}, None)],
    ids=["the account to write, without a key", "an account with the key of the user"],
)
def test_an_account_of_the_user_does_not_count_as_another_account_with_the_name(account: dict[str, Any], own_id: str | None) -> None:
    client: Any = Answering(account)
    assert foresee(client, ANNA, ScimOptions(), own_id=own_id) is None
    stranger: Any = Answering(account, {"id": "9", "userName": NAME, "externalId": "database|stranger"})
    found = foresee(stranger, ANNA, ScimOptions(), own_id=own_id)
    assert found is not None
    assert "the account 9 has this userName" in found.text


@pytest.mark.parametrize(("proves_name", "is_refused"), [(True, False), (False, True)])
def test_an_account_without_a_key_is_taken_over_only_if_the_name_is_proven(proves_name: bool, is_refused: bool) -> None:
    client: Any = Answering({"id": "9" * 100, "userName": NAME})
    found = foresee(client, replace(ANNA, proves_name=proves_name), ScimOptions(adopt_on_conflict=True), own_id=None)

    assert found is not None
    assert found.is_refused is is_refused
    assert f"the account {'9' * 64}" in found.text
    assert "9" * 65 not in found.text


def test_a_preview_notes_that_the_server_does_not_answer(make_action: Callable[..., Action], anna: User) -> None:
    with misbehaving_server(by_verb(GET=scim_error(500))) as server:
        (note,) = notes(make_action(server.base_url), anna)
    assert note.startswith("The service cannot tell whether another account has the userName")


def test_other_accounts_are_not_shown_if_the_server_ignores_the_filter(make_action: Callable[..., Action], anna: User) -> None:
    stranger = {"id": "7", "userName": "stranger@example.test", "externalId": "x"}
    with misbehaving_server(by_verb(GET=listing(stranger))) as server:
        assert notes(make_action(server.base_url), anna) == ()


def test_no_request_is_sent_without_secrets(tenant: Tenant, anna: User) -> None:
    assert notes(ActionFactory.create(tenant_id=tenant.pk, name="empty", template="scim-user-provisioning"), anna) == ()


def test_a_preview_over_the_management_interface_shows_omitted_values_and_the_server_response(
    tenant: Tenant, action: Action, anna: User, server: RealServer
) -> None:
    server.add(userName=NAME, externalId="database|stranger")
    rows = [
        {"path": "externalId", "source": "user_id"},
        {"path": "userName", "source": "email"},
        {"path": "title", "source": "email_verified"},
    ]
    payload = {"test": "mapping", "user_id": anna.user_id, "operation": "create", "mapping": rows}
    shown = Management(tenant).post(f"actions/actions/{action.pk}/test", {"payload": payload}).json["payload"]
    assert shown["left_out"] == ["title: a text is expected, not true or false."]
    assert "409" in shown["notes"][0]
    refused = Management(tenant).post(
        f"actions/actions/{action.pk}/test", {"payload": {**payload, "mapping": [*rows[:2], {"path": "active", "source": "'true'"}]}}
    )
    assert refused.status == 400
