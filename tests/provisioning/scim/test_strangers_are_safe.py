"""No request changes or deletes an account that is not the user's, whatever a server does (`design` 6.1).

Random users of two tenants, each with two streams, against one server with bad manners, with workers that die at any request,
answers that are lost, accounts of strangers, old backups, and old events that are sent again.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from provisioning.scim.links import Link, same_name
from tests.factories.bad_scim_server import Account, BadServer, Fate, Manners, WorkerDied
from tests.factories.links import MemoryLinks
from tests.factories.scim_runs import Findings, run_event

BASE_URL = "https://scim.example.test/scim"
ADDRESSES = ["ann@example.test", "Bob@example.test", "data@example.test"]
TENANTS = ("one", "two")
# One id is a pattern that finds the other, which holds a quote that not every server reads.
USERS = ("database|{tenant}", 'database|{tenant}"2')
MANNERS = st.builds(
    Manners,
    key_filter=st.sampled_from(["exact", "ignored", "pattern", "user_name", "nothing", "refused"]),
    name_filter=st.sampled_from(["exact", "folded", "ignored", "pattern"]),
    keys=st.sampled_from(["kept", "hidden", "dropped"]),
    created=st.sampled_from(["real", "constant", "absent"]),
    ids=st.sampled_from(["counted", "given_again", "names"]),
    has_unique_names=st.booleans(),
    refuses_quotes=st.booleans(),
    lowers_names=st.booleans(),
    answers_writes_with_204=st.booleans(),
    only_deactivates=st.booleans(),
)
FATES = st.just(Fate()) | st.builds(
    Fate, at=st.integers(min_value=0, max_value=4), kind=st.sampled_from(["lost", "death", "error"]), has_acted=st.booleans()
)
OPTIONS = st.fixed_dictionaries(
    {
        "upsert": st.booleans(),
        "adopt_on_conflict": st.booleans(),
        "update_mode": st.sampled_from(["put", "patch"]),
        "user_name_proof": st.sampled_from(["never", "verified"]),
    }
)
Event = tuple[int, str, dict[str, Any]]


class Provisioning(RuleBasedStateMachine):
    """Streams deliver the events of users in order, crash, and send old ones again; the server judges every write."""

    @initialize(manners=MANNERS, options=OPTIONS)
    def begin(self, manners: Manners, options: dict[str, Any]) -> None:
        self.server = BadServer(manners, is_excused=self.is_indistinguishable)
        self.options = options
        self.links = MemoryLinks()
        self.findings = {(tenant, action): Findings() for tenant in TENANTS for action in "AB"}
        self.events: dict[tuple[str, str], list[Event]] = {}
        self.next: dict[tuple[str, str, str], int] = {}
        self.attempts: dict[tuple[str, str, str], int] = {}
        self.newest = dict.fromkeys(TENANTS, 0)
        self.running: Link | None = None

    @rule(tenant=st.sampled_from(TENANTS), user=st.sampled_from(USERS), address=st.sampled_from(ADDRESSES), is_change=st.booleans())
    def write_user(self, tenant: str, user: str, address: str, is_change: bool) -> None:
        """Create a user who is not there, or change or delete one who is; no address is verified."""
        user_id = user.format(tenant=tenant)
        events = self.events.setdefault((tenant, user_id), [])
        is_there = bool(events) and events[-1][1] != "user.deleted"
        kind = "user.created" if not is_there else "user.updated" if is_change else "user.deleted"
        document = {"user_id": user_id, "email": address, "email_verified": False, "name": address.upper()}
        self.newest[tenant] += 1
        events.append((self.newest[tenant], kind, document))

    @rule(tenant=st.sampled_from(TENANTS), user=st.sampled_from(USERS), action=st.sampled_from("AB"), fate=FATES, count=st.integers(1, 3))
    def deliver(self, tenant: str, user: str, action: str, fate: Fate, count: int) -> None:
        """Run the next events of a user; one that fails is tried again and then given up."""
        user_id = user.format(tenant=tenant)
        lane = (tenant, user_id, action)
        for _ in range(count):
            events, place = self.events.get((tenant, user_id), []), self.next.get(lane, 0)
            if place >= len(events):
                return
            attempt = self.attempts.get(lane, 0) + 1
            is_done = self.run_one(tenant, action, events[place], attempt, fate)
            self.attempts[lane] = 0 if is_done or attempt == 3 else attempt
            if not self.attempts[lane]:
                self.next[lane] = place + 1
            fate = Fate()

    @rule(tenant=st.sampled_from(TENANTS), user=st.sampled_from(USERS), action=st.sampled_from("AB"), place=st.integers(0, 5))
    def redeliver_by_force(self, tenant: str, user: str, action: str, place: int) -> None:
        """Run an event once more that has been given up or settled."""
        user_id = user.format(tenant=tenant)
        events = self.events.get((tenant, user_id), [])[: self.next.get((tenant, user_id, action), 0)]
        if events:
            self.run_one(tenant, action, events[place % len(events)], 4, Fate())

    @rule(address=st.sampled_from(ADDRESSES), key=st.sampled_from([None, None, "hr|1", "database|ann"]))
    def stranger_joins(self, address: str, key: str | None) -> None:
        self.server.add_stranger(address, key)

    @rule(place=st.integers(0, 9), address=st.sampled_from(ADDRESSES))
    def account_is_replaced(self, place: int, address: str) -> None:
        """An administrator of the server deletes an account, and a stranger gets one, perhaps under the same id."""
        if self.server.accounts:
            del self.server.accounts[sorted(self.server.accounts)[place % len(self.server.accounts)]]
        self.server.add_stranger(address, None)

    @rule(is_made=st.booleans())
    def backup(self, is_made: bool) -> None:
        if is_made:
            self.server.back_up()
        else:
            self.server.restore()

    @invariant()
    def no_account_of_another_was_touched(self) -> None:
        assert not getattr(self, "server", None) or self.server.violations == []

    def run_one(self, tenant: str, action: str, event: Event, attempt: int, fate: Fate) -> bool:
        position, kind, document = event
        run = self.links.at(position, tenant_id=tenant, action_id=f"{tenant} {action}")
        self.server.begin(f"{tenant} {document['user_id']}", fate)
        self.acting = (f"{tenant} {action}", str(document["user_id"]))
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
                at=run,
                sender=self.server,
            )
        except WorkerDied:
            return False
        return ran.result is not None

    def is_indistinguishable(self, account: Account) -> bool:
        """Tell whether rule 6 names the case: the linked id was given again to an account of the same name, and nothing else tells.

        Nothing else means: the server has never shown a key of the link, and no creation time that could differ.
        """
        manners = self.server.manners
        linked = [link for link in self.links.rows.values() if (link.action_id, link.user_id) == self.acting]
        return any(
            link.remote_id == account["id"]
            and link.has_sent(account["userName"])
            and not account.get("externalId")
            and (manners.keys != "kept" or not link.is_keyed)
            and manners.created != "real"
            for link in linked
        )


def test_no_request_changes_or_deletes_an_account_that_is_not_the_users() -> None:
    run_state_machine_as_test(
        Provisioning,
        settings=settings(
            max_examples=200,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


def _life(server: BadServer, links: MemoryLinks, *events: tuple[str, dict[str, Any]], **more: Any) -> list[str]:
    ends = []
    for kind, document in events:
        server.begin(f"acme {document['user_id']}", Fate())
        ran = run_event(BASE_URL, kind, document, links=links, sender=server, **more)
        ends.append(ran.result.reason if ran.result else ran.failed.class_name)
    return ends


ANN = {"user_id": "database|ann", "email": "ann@example.test", "email_verified": False}


@pytest.mark.parametrize("key_filter", ["exact", "ignored", "pattern", "user_name", "nothing", "refused"])
@pytest.mark.parametrize("keys", ["kept", "hidden", "dropped"])
def test_the_account_of_a_stranger_whose_address_a_user_signs_up_with_stays(key_filter: str, keys: str) -> None:
    server, links = BadServer(Manners(key_filter=key_filter, keys=keys)), MemoryLinks()
    server.add_stranger("ann@example.test", None)
    before = dict(server.accounts)
    changed = {**ANN, "name": "New", "blocked": True}
    ends = _life(server, links, ("user.created", ANN), ("user.updated", changed), ("user.deleted", ANN), ("user.deleted", ANN))
    assert ends[0] == "Conflict"
    assert (server.accounts, server.violations) == (before, [])


@pytest.mark.parametrize("ids", ["counted", "given_again", "names"])
@pytest.mark.parametrize("created", ["real", "absent"])
def test_the_stranger_made_after_our_deletion_is_not_touched_by_old_events(ids: str, created: str) -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped", ids=ids, created=created)), MemoryLinks()
    verified = {**ANN, "email_verified": True}
    assert _life(server, links, ("user.created", verified), ("user.deleted", verified)) == ["created", "deleted"]
    server.add_stranger("ann@example.test", None)
    before = dict(server.accounts)
    for kind in ("user.created", "user.updated", "user.deleted"):
        assert _life(server, links, (kind, verified), position=1) == ["older than the account"]
    assert server.accounts == before


def test_a_user_is_followed_through_a_rename_where_the_server_keeps_no_key() -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped")), MemoryLinks()
    renamed = {**ANN, "email": "new@example.test"}
    ends = _life(server, links, ("user.created", ANN), ("user.updated", renamed), ("user.updated", renamed), ("user.deleted", renamed))
    assert ends == ["created", "updated", "updated", "deleted"]
    assert server.accounts == {}


def test_a_link_whose_account_was_replaced_under_the_same_id_is_refused() -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped", ids="given_again")), MemoryLinks()
    _life(server, links, ("user.created", ANN))
    server.accounts.clear()
    server.add_stranger("ann@example.test", None)
    assert _life(server, links, ("user.updated", ANN), ("user.deleted", ANN)) == ["UnverifiableMatch", "UnverifiableMatch"]
    assert server.violations == []


def test_a_link_that_the_server_says_is_gone_is_missing_until_a_witness_revives_it() -> None:
    server, links = BadServer(Manners(key_filter="nothing", keys="dropped")), MemoryLinks()
    _life(server, links, ("user.created", ANN))
    server.back_up()
    server.accounts.clear()
    assert _life(server, links, ("user.updated", ANN)) == ["no user to update"]
    assert links.only().is_missing
    server.restore()
    assert _life(server, links, ("user.updated", ANN)) == ["updated"]
    assert not links.only().is_missing


def test_a_deletion_after_a_create_whose_answer_was_lost_is_never_skipped() -> None:
    server, links = BadServer(Manners(key_filter="nothing", keys="dropped")), MemoryLinks()
    server.begin("acme database|ann", Fate(at=0))
    assert run_event(BASE_URL, "user.created", ANN, links=links, sender=server, secrets={"SCIM_MAX_RETRIES": "0"}).failed.is_uncertain
    assert _life(server, links, ("user.deleted", ANN)) == ["DeletionInDoubt"]


def test_a_refused_create_leaves_no_doubt() -> None:
    server, links = BadServer(Manners()), MemoryLinks()
    server.add_stranger("ann@example.test", None)
    assert _life(server, links, ("user.created", ANN), ("user.deleted", ANN)) == ["Conflict", "no user to delete"]


def test_a_name_that_was_refused_because_it_is_taken_is_no_witness() -> None:
    server, links = BadServer(Manners(key_filter="refused", keys="dropped", created="absent")), MemoryLinks()
    server.add_stranger("taken@example.test", None)
    assert _life(server, links, ("user.created", ANN), ("user.updated", {**ANN, "email": "taken@example.test"})) == ["created", "Conflict"]
    assert not links.only().has_sent("taken@example.test")


def test_a_key_that_a_user_can_choose_is_believed_only_of_a_linked_account() -> None:
    table = [{"path": "externalId", "source": "user_metadata.number"}, {"path": "userName", "source": "email"}]
    server, links = BadServer(Manners()), MemoryLinks()
    server.add_stranger("boss@example.test", "7")
    mallory = {**ANN, "user_metadata": {"number": "7"}}
    assert _life(server, links, ("user.updated", mallory), ("user.deleted", mallory), mapping=table) == ["UnverifiableMatch"] * 2
    ends = _life(server, links, ("user.created", {**ANN, "user_metadata": {"number": "8"}}), mapping=table)
    ends += _life(server, links, ("user.updated", {**ANN, "user_metadata": {"number": "8"}}), mapping=table)
    assert (ends, server.violations) == (["created", "updated"], [])


def test_two_tenants_with_one_user_id_on_one_server_never_write_to_each_other() -> None:
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


def test_a_create_of_another_tenant_whose_answer_was_lost_keeps_its_account_from_a_user_of_the_same_id() -> None:
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
def test_a_verified_name_counts_as_the_option_says(proof: str, ends: str) -> None:
    server, links = BadServer(Manners(key_filter="refused", name_filter="folded", keys="dropped")), MemoryLinks()
    server.add_stranger("ANN@example.test", None)
    server.is_excused = lambda account: True
    verified = {**ANN, "email_verified": True}
    assert _life(server, links, ("user.updated", verified), options={"user_name_proof": proof}) == [ends]
    assert [link.is_suspect for link in links.rows.values()] == ([True] if ends == "updated" else [])


def test_a_name_is_compared_by_letters_of_ascii_alone() -> None:
    assert same_name("ANN@x.test", "ann@X.TEST")
    assert not same_name("\u212anut@x.test", "knut@x.test")
