"""For any behavior of a SCIM server, no request changes or deletes an account of another user (docs/adr/0072).

The users belong to two tenants, each with two streams to one faulty server. At random, users change, workers are killed, responses are
lost, other people get accounts, the server restores old backups, and old events are redelivered.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import pytest

from provisioning.scim.links import Link, same_name, server_of
from tests.factories.bad_scim_server import Account, BadServer, Fate, Manners, WorkerDied
from tests.factories.links import MemoryLinks
from tests.factories.scim_runs import Findings, run_event

BASE_URL = "https://scim.example.test/scim"
ADDRESSES = ["ann@example.test", "Bob@example.test", "data@example.test"]
TENANTS = ("one", "two")
# If the first id were used as a pattern, it would also match the second id. The second id contains a quote.
USERS = ("database|{tenant}", 'database|{tenant}"2')
MANNERS: dict[str, list[Any]] = {
    "key_filter": ["exact", "ignored", "pattern", "user_name", "nothing", "refused"],
    "name_filter": ["exact", "folded", "ignored", "pattern"],
    "keys": ["kept", "hidden", "dropped", "echoed"],
    "created": ["real", "constant", "absent", "unsteady", "rounded"],
    "ids": ["counted", "given_again", "names"],
    "has_unique_names": [False, True],
    "refuses_quotes": [False, True],
    "lowers_names": [False, True],
    "answers_writes_with_204": [False, True],
    "only_deactivates": [False, True],
}
OPTIONS: dict[str, list[Any]] = {
    "upsert": [False, True],
    "adopt_on_conflict": [False, True],
    "update_mode": ["put", "patch"],
    "user_name_proof": ["never", "verified"],
}
WORLDS, STEPS = 60, 60
Event = tuple[int, str, dict[str, Any]]
Lane = tuple[str, str, str]


class World:
    """Two tenants and a server that checks every write. The streams deliver events in order, crash, and deliver old events again."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.server = BadServer(Manners(**self.one_of_each(MANNERS)), is_excused=self.is_excused)
        self.options = self.one_of_each(OPTIONS)
        # Whether the email addresses of all users are verified. A verified address can prove that the account with this name is the user's.
        self.is_verified = chance.random() < 0.4
        self.links = MemoryLinks()
        self.findings: dict[tuple[str, str], Findings] = defaultdict(Findings)
        self.events: dict[tuple[str, str], list[Event]] = defaultdict(list)
        self.next: Counter[Lane] = Counter()
        self.attempts: Counter[Lane] = Counter()
        self.newest: Counter[str] = Counter()
        self.renewals: Counter[tuple[str, str]] = Counter()
        self.acting = ("", "")
        self.steps: list[str] = []

    def one_of_each(self, choices: dict[str, list[Any]]) -> dict[str, Any]:
        return {name: self.chance.choice(values) for name, values in choices.items()}

    def step(self) -> None:
        rare = {self.replace_account: 1, self.back_up: 1, self.renew_action: 1}
        acts = {self.write_user: 4, self.deliver: 8, self.send_again: 2, self.stranger_joins: 2, **rare}
        (act,) = self.chance.choices(list(acts), list(acts.values()))
        act()

    def write_user(self) -> None:
        """Record an event of a random user: create the user, or change or delete the user if it exists."""
        tenant = self.chance.choice(TENANTS)
        user_id = self.chance.choice(USERS).format(tenant=tenant)
        events = self.events[tenant, user_id]
        is_there = bool(events) and events[-1][1] != "user.deleted"
        kind = self.chance.choice(["user.updated", "user.updated", "user.deleted"]) if is_there else "user.created"
        address = self.chance.choice(ADDRESSES)
        self.newest[tenant] += 1
        document = {"user_id": user_id, "email": address, "email_verified": self.is_verified, "name": address.upper()}
        events.append((self.newest[tenant], kind, document))

    def deliver(self) -> None:
        """Run the next event of a user in one of the two streams. A failed event is run again, and dropped after its third attempt."""
        waiting = [
            (tenant, user_id, action)
            for (tenant, user_id), events in self.events.items()
            for action in "AB"
            if self.next[tenant, user_id, action] < len(events)
        ]
        if not waiting:
            return
        lane = self.chance.choice(waiting)
        tenant, user_id, action = lane
        fate = Fate()
        if self.chance.random() < 0.3:
            kind = self.chance.choice(["lost", "death", "error"])
            fate = Fate(at=self.chance.randrange(4), kind=kind, has_acted=self.chance.random() < 0.6)
        attempt = self.attempts[lane] + 1
        is_done = self.run(tenant, action, self.events[tenant, user_id][self.next[lane]], attempt, fate)
        self.attempts[lane] = 0 if is_done or attempt == 3 else attempt
        self.next[lane] += not self.attempts[lane]

    def send_again(self) -> None:
        """Run an event again that was delivered or dropped before, like a forced redelivery."""
        settled = [(lane, place) for lane, count in self.next.items() for place in range(count)]
        if settled:
            (tenant, user_id, action), place = self.chance.choice(settled)
            self.run(tenant, action, self.events[tenant, user_id][place], 4, Fate())

    def stranger_joins(self) -> None:
        self.server.add_stranger(self.chance.choice(ADDRESSES), self.chance.choice([None, None, "hr|1", "database|ann"]))
        self.steps.append("a stranger joins")

    def replace_account(self) -> None:
        """Delete an account, as an administrator of the server does, and create an account for another person, maybe with the same name."""
        if self.server.accounts:
            gone = self.server.accounts.pop(self.chance.choice(sorted(self.server.accounts)))
            self.steps.append(f"the server loses {gone}")
            self.server.add_stranger(self.chance.choice([gone["userName"], *ADDRESSES]), None)

    def renew_action(self) -> None:
        """Delete an action and create it again, as an administrator of the service does. The links of the old action remain."""
        tenant, action = self.chance.choice(TENANTS), self.chance.choice("AB")
        self.renewals[tenant, action] += 1
        self.steps.append(f"{tenant} makes {action} anew")

    def back_up(self) -> None:
        if self.chance.random() < 0.5:
            self.server.back_up()
        else:
            self.server.restore()
            self.steps.append("the server is restored")

    def run(self, tenant: str, action: str, event: Event, attempt: int, fate: Fate) -> bool:
        position, kind, document = event
        at = self.links.at(position, tenant_id=tenant, action_id=f"{tenant} {action} {self.renewals[tenant, action]}")
        self.server.begin(f"{tenant} {document['user_id']}", fate)
        self.acting = (tenant, str(document["user_id"]))
        try:
            ran = run_event(
                BASE_URL,
                kind,
                document,
                options=self.options,
                attempt=attempt,
                findings=self.findings[tenant, action],
                secrets={"SCIM_MAX_RETRIES": "0"},
                links=self.links,
                at=at,
                sender=self.server,
            )
        except WorkerDied:
            self.steps.append(f"{self.acting} {event} dies")
            return False
        self.steps.append(f"{action} {self.acting} {event} {fate}: {ran.result or ran.failure}")
        return ran.result is not None

    def is_excused(self, account: Account) -> bool:
        """Report whether the rules of the service allow a write to this account, although it belongs to another person."""
        return self.is_indistinguishable(account) or self.is_proven_by_name(account)

    def is_proven_by_name(self, account: Account) -> bool:
        """Report whether the verified name is a proof: the account has no key, and no link connects the account with another user."""
        others = [link for link in self.links.rows.values() if (link.tenant_id, link.user_id) != self.acting]
        is_free = not any(link.is_open and link.remote_id == account["id"] for link in others)
        return self.is_verified and self.options["user_name_proof"] == "verified" and not account.get("externalId") and is_free

    def is_indistinguishable(self, account: Account) -> bool:
        """Report whether the service cannot distinguish a new account with the linked id and name from the old account.

        `docs/guarantees.md` states this limit. The service cannot use the key, because the server does not store keys
        or the link has no key. The service cannot use the creation time, because the server does not return real creation times.
        """
        manners = self.server.manners
        linked = [link for link in self.links.rows.values() if (link.tenant_id, link.user_id) == self.acting]
        return any(
            link.remote_id == account["id"]
            and link.has_sent(account["userName"])
            and not account.get("externalId")
            and (manners.keys != "kept" or not link.is_keyed)
            and manners.created not in ("real", "rounded")
            for link in linked
        )


@pytest.mark.parametrize("seed", range(12))
def test_no_request_changes_or_deletes_an_account_of_another_user(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(WORLDS):
        world = World(chance)
        for _ in range(STEPS):
            world.step()
            assert world.server.violations == [], "\n".join([str(world.server.manners), str(world.options), *world.steps])


def _life(server: BadServer, links: MemoryLinks, *events: tuple[str, dict[str, Any]], **more: Any) -> list[str]:
    ends = []
    for kind, document in events:
        server.begin(f"{more['at'].tenant_id if 'at' in more else 'acme'} {document['user_id']}", Fate())
        ran = run_event(BASE_URL, kind, document, links=links, sender=server, **more)
        ends.append(ran.result.reason if ran.result else ran.failed.class_name)
    return ends


ANN = {"user_id": "database|ann", "email": "ann@example.test", "email_verified": False}


@pytest.mark.parametrize("key_filter", ["exact", "ignored", "pattern", "user_name", "nothing", "refused"])
@pytest.mark.parametrize("keys", ["kept", "hidden", "dropped"])
def test_a_sign_up_with_the_address_of_another_person_does_not_change_their_account(key_filter: str, keys: str) -> None:
    server, links = BadServer(Manners(key_filter=key_filter, keys=keys)), MemoryLinks()
    server.add_stranger("ann@example.test", None)
    before = dict(server.accounts)
    changed = {**ANN, "name": "New", "blocked": True}
    ends = _life(server, links, ("user.created", ANN), ("user.updated", changed), ("user.deleted", ANN), ("user.deleted", ANN))
    assert ends[0] == "Conflict"
    assert (server.accounts, server.violations) == (before, [])


@pytest.mark.parametrize("ids", ["counted", "given_again", "names"])
@pytest.mark.parametrize("created", ["real", "absent"])
def test_old_events_do_not_change_an_account_created_after_a_deletion(ids: str, created: str) -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped", ids=ids, created=created)), MemoryLinks()
    verified = {**ANN, "email_verified": True}
    assert _life(server, links, ("user.created", verified), ("user.deleted", verified)) == ["created", "deleted"]
    server.add_stranger("ann@example.test", None)
    before = dict(server.accounts)
    for kind in ("user.created", "user.updated", "user.deleted"):
        assert _life(server, links, (kind, verified), position=1) == ["older than the account"]
    assert server.accounts == before


def test_a_renamed_user_is_found_on_a_server_that_does_not_store_keys() -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped")), MemoryLinks()
    renamed = {**ANN, "email": "new@example.test"}
    ends = _life(server, links, ("user.created", ANN), ("user.updated", renamed), ("user.updated", renamed), ("user.deleted", renamed))
    assert ends == ["created", "updated", "updated", "deleted"]
    assert server.accounts == {}


@pytest.mark.parametrize("key_filter", ["refused", "nothing", "exact"])
@pytest.mark.parametrize(("keys", "created"), [("echoed", "real"), ("dropped", "rounded"), ("echoed", "rounded")])
def test_a_link_stays_valid_if_a_response_echoes_unstored_data(key_filter: str, keys: str, created: str) -> None:
    server, links = BadServer(Manners(key_filter=key_filter, keys=keys, created=created)), MemoryLinks()
    renamed = {**ANN, "email": "new@example.test"}
    changes = [("user.updated", renamed), ("user.updated", {**renamed, "name": "New"}), ("user.deleted", renamed)]
    assert _life(server, links, ("user.created", ANN), *changes) == ["created", "updated", "updated", "deleted"]
    assert (server.accounts, server.violations) == ({}, [])


def test_a_link_stores_the_creation_time_that_the_last_read_returned() -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped", created="rounded")), MemoryLinks()
    _life(server, links, ("user.created", ANN))
    assert links.only().created_there.endswith(".123456+00:00")
    _life(server, links, ("user.updated", ANN))
    assert links.only().created_there.endswith(".123Z")


def test_a_key_counts_as_stored_only_after_a_read_has_returned_the_key() -> None:
    server, links = BadServer(Manners()), MemoryLinks()
    _life(server, links, ("user.created", ANN))
    assert not links.only().is_keyed
    _life(server, links, ("user.updated", ANN))
    assert links.only().is_keyed


def test_a_link_whose_account_was_replaced_under_the_same_id_is_refused() -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped", ids="given_again")), MemoryLinks()
    _life(server, links, ("user.created", ANN))
    server.accounts.clear()
    server.add_stranger("ann@example.test", None)
    assert _life(server, links, ("user.updated", ANN), ("user.deleted", ANN)) == ["UnverifiableMatch", "UnverifiableMatch"]
    assert server.violations == []


FIRST = {**ANN, "user_id": "email|1", "email_verified": True}
SECOND = {**ANN, "user_id": "database|2", "email_verified": True}
CHANGES = (("user.updated", SECOND), ("user.deleted", SECOND))


@pytest.mark.parametrize("created", ["real", "constant", "absent", "unsteady"])
@pytest.mark.parametrize("other", ["acme", "another"])
def test_an_account_is_not_assigned_to_a_second_user_with_the_same_proven_name(created: str, other: str) -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped", created=created)), MemoryLinks()
    assert _life(server, links, ("user.created", FIRST)) == ["created"]
    options = {"adopt_on_conflict": True}
    for kind, document in (("user.created", SECOND), *CHANGES):
        at = links.at(links.newest + 1, tenant_id=other, action_id=other)
        (end,) = _life(server, links, (kind, document), at=at, options=options)
        assert end in ("Conflict", "ForeignAccount")
    assert [account["owner"] for account in server.accounts.values()] == ["acme email|1"]
    assert server.violations == []


def renewed(links: MemoryLinks, name: str, **more: Any) -> Any:
    """Return the links as the next run of another action of the tenant reads them."""
    return links.at(links.newest + 1, action_id=name, **more)


def test_another_action_of_the_tenant_continues_to_use_the_accounts_of_a_deleted_action() -> None:
    for key_filter in ("refused", "nothing"):
        server, links = BadServer(Manners(key_filter=key_filter, keys="dropped")), MemoryLinks()
        assert _life(server, links, ("user.created", ANN)) == ["created"]
        for document in ({**ANN, "name": "New"}, {**ANN, "email": "new@example.test"}, {**ANN, "email": "last@example.test"}):
            assert _life(server, links, ("user.updated", document), at=renewed(links, "anew")) == ["updated"]
        assert _life(server, links, ("user.deleted", ANN), at=renewed(links, "anew")) == ["deleted"]
        assert (server.accounts, server.violations) == ({}, [])


def test_an_event_older_than_the_account_of_another_action_writes_nothing() -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped")), MemoryLinks()
    assert _life(server, links, ("user.created", ANN), position=5) == ["created"]
    assert _life(server, links, ("user.deleted", ANN), at=links.at(3, action_id="anew")) == ["older than the account"]
    assert len(server.accounts) == 1


def test_a_single_404_does_not_assign_an_account_to_another_user() -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped")), MemoryLinks()
    _life(server, links, ("user.created", FIRST))
    server.back_up()
    server.accounts.clear()
    assert _life(server, links, ("user.updated", FIRST)) == ["no user to update"]
    server.restore()
    assert _life(server, links, *CHANGES) == ["ForeignAccount", "ForeignAccount"]
    assert _life(server, links, ("user.updated", FIRST), ("user.deleted", FIRST))[-1] == "deleted"


def test_a_deleted_account_counts_as_missing_until_a_witness_proves_that_it_is_back() -> None:
    server, links = BadServer(Manners(key_filter="nothing", keys="dropped")), MemoryLinks()
    _life(server, links, ("user.created", ANN))
    server.back_up()
    server.accounts.clear()
    assert _life(server, links, ("user.updated", ANN)) == ["no user to update"]
    assert links.only().is_missing
    server.restore()
    assert _life(server, links, ("user.updated", ANN)) == ["updated"]
    assert not links.only().is_missing


def test_a_deletion_after_a_create_with_a_lost_response_is_never_skipped() -> None:
    server, links = BadServer(Manners(key_filter="nothing", keys="dropped")), MemoryLinks()
    server.begin("acme database|ann", Fate(at=0))
    assert run_event(BASE_URL, "user.created", ANN, links=links, sender=server, secrets={"SCIM_MAX_RETRIES": "0"}).failed.is_uncertain
    assert _life(server, links, ("user.deleted", ANN)) == ["DeletionInDoubt"]


def test_a_refused_create_removes_the_doubt() -> None:
    server, links = BadServer(Manners()), MemoryLinks()
    server.add_stranger("ann@example.test", None)
    assert _life(server, links, ("user.created", ANN), ("user.deleted", ANN)) == ["Conflict", "no user to delete"]


def test_a_refused_name_is_not_a_witness() -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped", created="absent")), MemoryLinks()
    server.add_stranger("taken@example.test", None)
    assert _life(server, links, ("user.created", ANN), ("user.updated", {**ANN, "email": "taken@example.test"})) == ["created", "Conflict"]
    assert not links.only().has_sent("taken@example.test")


def test_a_key_that_users_can_choose_proves_only_a_linked_account() -> None:
    table = [{"path": "externalId", "source": "user_metadata.number"}, {"path": "userName", "source": "email"}]
    server, links = BadServer(Manners()), MemoryLinks()
    server.add_stranger("boss@example.test", "7")
    mallory = {**ANN, "user_metadata": {"number": "7"}}
    assert _life(server, links, ("user.updated", mallory), ("user.deleted", mallory), mapping=table) == ["UnverifiableMatch"] * 2
    ends = _life(server, links, ("user.created", {**ANN, "user_metadata": {"number": "8"}}), mapping=table)
    ends += _life(server, links, ("user.updated", {**ANN, "user_metadata": {"number": "8"}}), mapping=table)
    assert (ends, server.violations) == (["created", "updated"], [])


def test_two_tenants_with_the_same_user_id_never_write_to_each_others_accounts() -> None:
    server, links = BadServer(Manners(has_unique_names=False)), MemoryLinks()
    for tenant in TENANTS:
        server.begin(f"{tenant} database|ann", Fate())
        run = links.at(1, tenant_id=tenant, action_id=tenant)
        assert run_event(BASE_URL, "user.created", ANN, links=links, at=run, sender=server).reason == "created"
    for tenant in TENANTS:
        server.begin(f"{tenant} database|ann", Fate())
        run = links.at(2, tenant_id=tenant, action_id=tenant)
        assert run_event(BASE_URL, "user.deleted", ANN, links=links, at=run, sender=server).reason == "deleted"
    assert (server.violations, server.accounts) == ([], {})


def test_an_account_whose_create_response_was_lost_is_not_assigned_to_another_tenant() -> None:
    server, links = BadServer(Manners()), MemoryLinks()
    server.begin("one database|ann", Fate(at=0, kind="death"))
    with pytest.raises(WorkerDied):
        run_event(BASE_URL, "user.created", ANN, links=links, at=links.at(1, tenant_id="one", action_id="one"), sender=server)
    server.begin("two database|ann", Fate())
    for kind in ("user.created", "user.updated", "user.deleted"):
        run = links.at(2, tenant_id="two", action_id="two")
        assert run_event(BASE_URL, kind, ANN, links=links, at=run, sender=server).failed.kind == "data"
    assert [account["owner"] for account in server.accounts.values()] == ["one database|ann"]
    assert server.violations == []


@pytest.mark.parametrize(("proof", "ends"), [("never", "UnverifiableMatch"), ("verified", "updated"), ("always", "updated")])
def test_an_option_determines_whether_a_verified_name_is_a_proof(proof: str, ends: str) -> None:
    server, links = BadServer(Manners(key_filter="refused", name_filter="folded", keys="dropped")), MemoryLinks()
    server.add_stranger("ANN@example.test", None)
    server.is_excused = lambda account: True
    verified = {**ANN, "email_verified": True}
    assert _life(server, links, ("user.updated", verified), options={"user_name_proof": proof}) == [ends]
    assert [link.is_suspect for link in links.rows.values()] == ([True] if ends == "updated" else [])


def test_only_ascii_letters_of_names_are_compared_without_regard_to_case() -> None:
    assert same_name("ANN@x.test", "ann@X.TEST")
    assert not same_name("\u212anut@x.test", "knut@x.test")


CHOSEN_KEY = [{"path": "externalId", "source": "user_metadata.employee"}, {"path": "userName", "source": "email"}]


@pytest.mark.parametrize("kind", ["user.updated", "user.deleted"])
def test_a_key_that_a_user_can_choose_proves_nothing_if_the_server_hides_keys(kind: str) -> None:
    server, links = BadServer(Manners(keys="hidden")), MemoryLinks()
    server.add_stranger("boss@example.test", "E-1")
    mallory = {**ANN, "user_metadata": {"employee": "E-1"}}
    assert _life(server, links, (kind, mallory), mapping=CHOSEN_KEY) == ["UnverifiableMatch"]
    assert server.violations == []


def test_a_key_set_by_administrators_is_a_proof_like_the_id_of_the_user() -> None:
    table = [{"path": "externalId", "source": "app_metadata.employee"}, {"path": "userName", "source": "email"}]
    server, links = BadServer(Manners()), MemoryLinks()
    server.add_stranger("ann@example.test", "E-1")
    server.is_excused = lambda account: True
    assert _life(server, links, ("user.updated", {**ANN, "app_metadata": {"employee": "E-1"}}), mapping=table) == ["updated"]


def test_the_link_to_an_account_with_an_unproven_key_is_a_suspect() -> None:
    server, links = BadServer(Manners()), MemoryLinks()
    server.add_stranger("ann@example.test", "E-1")
    server.is_excused = lambda account: True
    ann = {**ANN, "user_metadata": {"employee": "E-1"}}
    assert _life(server, links, ("user.updated", ann), mapping=CHOSEN_KEY) == ["UnverifiableMatch"]
    ((key, row),) = links.rows.items()
    assert row.is_suspect
    links.rows[key] = replace(row, is_suspect=False)
    assert _life(server, links, ("user.updated", ann), mapping=CHOSEN_KEY) == ["updated"]


@pytest.mark.parametrize("created", ["real", "absent", "unsteady"])
def test_a_confirmed_suspect_finds_its_account_with_any_kind_of_creation_time(created: str) -> None:
    server, links = BadServer(Manners(created=created)), MemoryLinks()
    server.add_stranger("ann@example.test", "E-1")
    server.is_excused = lambda account: True
    ann = {**ANN, "user_metadata": {"employee": "E-1"}}
    assert _life(server, links, *[("user.updated", ann)] * 2, mapping=CHOSEN_KEY) == ["UnverifiableMatch"] * 2
    ((key, row),) = links.rows.items()
    assert (row.has_sent("ann@example.test"), row.keys) == (True, ("E-1",))
    links.rows[key] = replace(row, is_suspect=False, origin="adopted")
    assert _life(server, links, ("user.updated", ann), ("user.deleted", ann), mapping=CHOSEN_KEY) == ["updated", "deleted"]


def test_a_user_with_an_id_of_another_tenant_deletes_no_account_if_keys_are_hidden() -> None:
    server, links = BadServer(Manners(keys="hidden")), MemoryLinks()
    server.begin("one database|ann", Fate())
    run_event(BASE_URL, "user.created", ANN, links=links, sender=server, at=links.at(1, tenant_id="one", action_id="one"))
    ((key, row),) = links.rows.items()
    links.rows[key] = replace(row, is_suspect=True)
    server.begin("two database|ann", Fate())
    at = links.at(1, tenant_id="two", action_id="two")
    assert run_event(BASE_URL, "user.deleted", ANN, links=links, sender=server, at=at).failed.kind == "data"
    assert server.violations == []


def test_refused_requests_of_one_tenant_do_not_invalidate_keys_of_another_tenant() -> None:
    server, links = BadServer(Manners()), MemoryLinks()
    assert _life(server, links, ("user.created", ANN)) == ["created"]
    links.rows.clear()
    links.write(Link("evil", "evil", server_of(BASE_URL), "database|ann", birth=1, position=1))
    assert _life(server, links, ("user.updated", ANN)) == ["updated"]


def test_an_account_with_the_reused_id_of_a_deleted_account_is_linked() -> None:
    server, links = BadServer(Manners(ids="given_again")), MemoryLinks()
    bob = {**ANN, "user_id": "database|bob", "email": "bob@example.test"}
    _life(server, links, ("user.created", ANN))
    server.accounts.clear()
    ends = _life(server, links, ("user.updated", ANN), ("user.created", bob), ("user.updated", bob), ("user.deleted", bob))
    assert ends == ["no user to update", "created", "updated", "deleted"]


def test_workspaces_with_the_same_base_url_may_use_the_same_ids() -> None:
    links, ends = MemoryLinks(), []
    for tenant, user_id in (("one", "database|ann"), ("two", "database|bob")):
        server = BadServer(Manners())
        for position, kind in enumerate(("user.created", "user.updated", "user.deleted"), start=1):
            server.begin(f"{tenant} {user_id}", Fate())
            at = links.at(position, tenant_id=tenant, action_id=tenant)
            if tenant == "two" or position == 1:
                ends.append(run_event(BASE_URL, kind, {**ANN, "user_id": user_id}, links=links, sender=server, at=at).reason)
    assert ends == ["created", "created", "updated", "deleted"]


def test_a_later_deletion_moves_the_position_at_which_a_link_has_ended() -> None:
    server, links = BadServer(Manners()), MemoryLinks()

    def at(position: int, kind: str, **more: Any) -> str:
        (end,) = _life(server, links, (kind, {**ANN, **more}), position=position, options={"upsert": True})
        return end

    assert [at(1, "user.created"), at(2, "user.deleted"), at(10, "user.created", email=""), at(12, "user.deleted")][
        -1
    ] == "no user to delete"
    assert links.only().ended == 12
    assert at(11, "user.updated") == "older than the account"
    assert server.accounts == {}


def test_the_deletion_of_a_suspect_that_cannot_be_found_is_never_skipped() -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped")), MemoryLinks()
    server.add_stranger("ann@example.test", None)
    server.is_excused = lambda account: True
    renamed = {**ANN, "email": "new@example.test"}
    ends = _life(server, links, ("user.updated", {**ANN, "email_verified": True}), ("user.updated", renamed), ("user.deleted", renamed))
    assert ends == ["updated", "no user to update", "UnconfirmedAccount"]


def test_the_link_of_a_deleted_user_has_no_name_and_no_key() -> None:
    server, links = BadServer(Manners()), MemoryLinks()
    assert _life(server, links, ("user.created", ANN), ("user.deleted", ANN)) == ["created", "deleted"]
    assert (links.only().user_names, links.only().user_name, links.only().keys) == ((), "", ())
