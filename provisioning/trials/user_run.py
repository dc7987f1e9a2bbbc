"""Provisions one user on demand, in visible steps: connect, scope, look up, match, map, write. A dry run shows the changes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from events.log.numbering import number_tenant
from events.models import EventStream
from identity.documents.user import user_document
from identity.models import User
from identity.services.failures import Conflict
from provisioning.actions.scope import is_in_scope
from provisioning.actions.setups import Setup
from provisioning.engine import dispatch, nudges
from provisioning.engine.lane_holds import held_lanes, waiting_deliveries
from provisioning.links.name_holders import foresee
from provisioning.links.rows import head_position
from provisioning.mapping.table import MappedUser, MappingFailed, Operation, Person, map_user, person_of
from provisioning.models import Trial
from provisioning.runs.failures import DataFailure
from provisioning.scim.client import ScimClient
from provisioning.scim.matches import Match
from provisioning.scim.name_proof import proves_name, trusted_strategies
from provisioning.scim.refusals import FilterRefused
from provisioning.scim.remote_changes import changes
from provisioning.scim.transport import encoded
from provisioning.scim.user_sync import Circumstances, UserSync
from provisioning.trials.mapping_preview import request_of, user_named
from provisioning.trials.scim_sessions import ScimSession, mask_of, open_session, require_scim
from provisioning.trials.steps import Finding, Step, Steps, counted
from provisioning.trials.trials import BUDGET_SECONDS, TrialReport, trial

# Duration of the lease of the user's lanes, in seconds: a little longer than the run may last.
_HOLD_SECONDS = BUDGET_SECONDS + 5.0


def run_for_user(setup: Setup, *, user_id: str, actor: str, dry_run: bool) -> TrialReport:
    """Provision the current state of one user in the same way as a delivery, or show the changes in a dry run.

    `user_id` is a user id, or an e-mail address that exactly one user has. A real run keeps the order of events: it raises `LaneBusy`
    while deliveries of the user wait, and new deliveries of the user wait until the run has ended. Raises `NotFound`, `NotSupported`,
    `Misconfigured`, and `Conflict` for a real run of a draft, or while another trial runs.
    """
    require_scim(setup)
    if not dry_run and setup.version is None:
        raise Conflict("Deploy the action first: only a deployed version writes users. A dry run can use the draft.")
    user = user_named(tenant_id=setup.tenant_id, user_id=user_id)
    stream_ids, key = _bound_streams(setup), f"user:{user.user_id}"
    if not dry_run:
        _deliver_to_lanes(setup.tenant_id)
    kind = Trial.Kind.DRY_RUN if dry_run else Trial.Kind.USER_RUN
    steps = Steps(mask_of(setup))
    hold: AbstractContextManager[None] = nullcontext()
    if not dry_run:
        hold = held_lanes(stream_ids, tenant_id=setup.tenant_id, key=key, seconds=_HOLD_SECONDS)
    with hold, trial(setup, kind, steps, actor=actor, user_id=user.user_id) as report:
        # Read the user while the lanes are leased, so that later events are delivered after this run. Read the position before the user, so
        # that a change between the two reads has a later position and is delivered after this write.
        position = head_position(setup.tenant_id)
        user.refresh_from_db()
        waiting = waiting_deliveries(stream_ids, tenant_id=setup.tenant_id, key=key)
        steps.run(_UserRun(setup, user, position).steps(dry_run=dry_run, waiting=waiting))
        report.summary = steps.first_failure or steps.taken[-1].finding.text
    return report


class _UserRun:
    """The steps of one run."""

    def __init__(self, setup: Setup, user: User, position: int) -> None:
        self._setup = setup
        self._position = position
        self._document = user_document(user)
        self._connection_name = user.connection.name
        self._strategy = user.connection.strategy
        self._session: ScimSession
        self._client: ScimClient
        self._person = Person("", "")
        self._match: Match | None = None
        self._before: dict[str, Any] | None = None
        self._mapped: MappedUser

    def steps(self, *, dry_run: bool, waiting: int) -> list[Step]:
        needed = partial(Step, is_needed=True, not_taken="Not run: an earlier step failed.")
        return [
            needed("connect", "Connect", self._connect),
            needed("scope", "Check the scope", self._judge),
            needed("look_up", "Search by externalId", self._look_up),
            needed("match", "Find the account", self._find),
            needed("map", "Map the attributes", self._map),
            needed("write", "Compare" if dry_run else "Write", partial(self._difference, waiting) if dry_run else self._write),
        ]

    def _connect(self) -> Finding:
        self._session = session = open_session(self._setup, mask_of(self._setup), seconds=BUDGET_SECONDS, position=self._position)
        self._client = session.client_of(str(self._document["user_id"]))
        if not session.settings.allows(self._connection_name):
            advice = "Add the connection to SCIM_CONNECTION_ALLOWLIST, or choose another user."
            return Finding(f"Users of the connection {self._connection_name} are not provisioned.", "failed", advice)
        greeting = session.sender.greet(session.settings.base_url, deadline=session.deadline)
        return Finding(f"Connected to {greeting.address}" + (f" with {greeting.tls_version}." if greeting.tls_version else " without TLS."))

    def _judge(self) -> Finding:
        scope = self._session.options.scope
        if is_in_scope(self._document, scope):
            return Finding("The user is in the scope." if scope else "The action has no scope, so it provisions all users.")
        advice = "Change the scope of the action, or the attributes of the user that the scope uses."
        return Finding("The user is outside the scope, so a delivery skips it.", "failed", advice, {"scope": scope})

    def _look_up(self) -> Finding:
        try:
            person = person_of(self._document, self._session.table)
        except MappingFailed as error:
            raise DataFailure(f"the user cannot be mapped: {error}") from error
        is_proven = proves_name(
            self._document, person, self._session.options, strategy=self._strategy, trusted_strategies=trusted_strategies()
        )
        self._person = replace(person, proves_name=is_proven)
        if not self._person.external_id or not self._person.user_name:
            missing = "userName" if self._person.external_id else "externalId"
            return Finding(
                f"The user has no {missing}, so a delivery skips it.", "failed", f"Set the user's attribute that is mapped to {missing}."
            )
        try:
            found = self._client.filtered("externalId", self._person.external_id)
        except FilterRefused as refused:
            return Finding(f"The server refuses the search by externalId: {refused}.", "warning", "The search by userName is used instead.")
        return Finding(f"The search by externalId returned {counted(len(found), 'user')}.")

    def _find(self) -> Finding:
        self._match = self._client.find(self._person)
        if self._match is None:
            return Finding("No account found: the user would be created.")
        self._before = self._client.read(self._match.id)
        return Finding(f"Found the account {self._match.id}, proven by {self._match.proof}.", details={"id": self._match.id})

    def _map(self) -> Finding:
        try:
            self._mapped = map_user(self._document, self._session.table, self._operation)
        except MappingFailed as error:
            raise DataFailure(f"the user cannot be mapped: {error}") from error
        method, body = request_of(self._mapped, self._session.options, self._operation)
        sent = {"method": method, "body": (encoded(body) or b"").decode()}
        if self._mapped.unusable:
            left = " ".join(self._mapped.left_out)
            return Finding(f"Mapped. Values that cannot be sent: {left}", "warning", "Change these rows of the mapping.", sent)
        return Finding(f"Mapped into {counted(len(self._mapped.resource) - 1, 'attribute')}.", details=sent)

    def _difference(self, waiting: int) -> Finding:
        options = self._session.options
        found = changes(
            self._before,
            self._mapped.resource,
            clears_rest=self._operation == "update" and options.update_mode == "put",
            removed=self._mapped.removed if options.update_mode == "patch_per_attribute" else (),
        )
        own_id = None if self._match is None else self._match.id
        foreseen = foresee(self._client, self._person, options, own_id=own_id, before=self._before)
        details = {"changes": found, "before": self._before}
        if foreseen is not None and foreseen.is_refused:
            return Finding(foreseen.text, "failed", foreseen.advice, details)
        verb = "create the user" if self._match is None else "update the user"
        text = f"Would {verb}: {counted(len(found), 'attribute')} differ{'s' if len(found) == 1 else ''}." if found else "No changes."
        advice = f"{counted(waiting, 'waiting delivery', 'waiting deliveries')} of this user will be sent first." if waiting else ""
        if foreseen is not None:
            text = f"{text} {foreseen.text}"
        return Finding(text, "warning" if waiting or foreseen is not None else "ok", advice, details)

    def _write(self) -> Finding:
        session = self._session
        circumstances = Circumstances("", is_repetition=False, strategy=self._strategy, trusted_strategies=trusted_strategies())
        sync = UserSync(self._client, session.table, session.options, session.log, circumstances)
        try:
            result = sync.created(self._document) if self._match is None else sync.updated(self._document)
        finally:
            session.links.store()
        details = {**result.detail, "exchanges": session.recorder.documents(), "log": session.log.lines}
        if result.status == "skipped":
            return Finding(f"Nothing was written: {result.reason}.", "warning", "A delivery would have the same result.", details)
        return Finding(f"Done: {result.reason}.", details=details)

    @property
    def _operation(self) -> Operation:
        return "create" if self._match is None else "update"


def _bound_streams(setup: Setup) -> list[str]:
    streams = EventStream.objects.of(setup.tenant_id).filter(destination_type="action", destination__action_id=str(setup.action_id))
    return list(streams.filter(status=EventStream.Status.ENABLED).values_list("pk", flat=True))


def _deliver_to_lanes(tenant_id: str) -> None:
    """Dispatch all events recorded until now, so that the lanes show the waiting deliveries."""
    number_tenant(tenant_id)
    for done in dispatch.dispatch_tenant(tenant_id):
        for key in done.new_lanes[: nudges.FIRST_MESSAGES]:
            nudges.post(nudges.DELIVER, done.stream_id, key)
