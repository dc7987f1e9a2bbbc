"""The first phase of a synchronization: examines every user of this service in the order of the keys."""

from __future__ import annotations

from dataclasses import replace

from foundation import failpoints
from provisioning.runs.failures import ActionError, ConfigurationFailure, Misconfigured, TransientFailure
from provisioning.synchronization import phases
from provisioning.synchronization.findings import Finding, Outcome
from provisioning.synchronization.people import LocalUser
from provisioning.synchronization.run import MOST_TRIES, Run, Stopped
from provisioning.synchronization.state import save

_PAGE_USERS = 100
# Users per save. After a crash, at most this number of users is processed again.
_SAVED_TOGETHER = 20
# Failures that would affect all users.
_AGAINST_SERVER = (ConfigurationFailure, Misconfigured, TransientFailure)
_IN_A_ROW = 3
# Maximum repeats of the write of one user. If the user changes during each of these writes, its events deliver the last change.
_MOST_ROUNDS = 3


def examine_users(run: Run) -> None:
    """Examine the users after the last saved key, until the worker must stop or the job must pause."""
    if "total" not in run.job.summary:
        save(run.job, total=run.people.count())
    turn = _UserTurn(run)
    while not run.is_over() or turn.failures_in_a_row:
        page = run.people.page(turn.after, _PAGE_USERS)
        if not page:
            turn.save()
            save(run.job, **phases.following(run.job))
            return
        for user in page:
            if run.is_over() and not turn.failures_in_a_row:
                break
            if not turn.bring(user):
                return
    turn.save()


class _UserTurn:
    """Findings since the last save. Consecutive failures that the server has caused are kept separately.

    If these failures stop the job, they are not saved, and their users are examined again when the job is resumed.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.after: int = run.job.parameters.get("after", 0)
        self._findings: list[Finding] = []
        self._row: list[tuple[LocalUser, Finding]] = []

    @property
    def failures_in_a_row(self) -> int:
        return len(self._row)

    def bring(self, user: LocalUser) -> bool:
        """Examine one user; return False if the job must pause now. Raises `Stopped` after three consecutive failures that the server has
        caused."""
        try:
            # No request is sent for a user outside the scope, so do not wait for the rate limit.
            finding = self._run.examiner.outside(user.document) or self._settled(user)
        except TransientFailure as failure:
            self._write()
            if self._run.job.parameters.get("tries", 0) + 1 < MOST_TRIES:
                self._end_row()
                self._run.rest(failure, self._findings, after=self.after)
                return False
            return self._failed(user, failure)
        except ActionError as failure:
            return self._failed(user, failure)
        self._end_row()
        self._note(user, finding)
        failpoints.reach("synchronized")
        if len(self._findings) >= _SAVED_TOGETHER:
            self.save()
        return True

    def save(self) -> None:
        """Save all findings."""
        self._end_row()
        self._write()

    def _write(self) -> None:
        if self._findings:
            # The server answers, so reset the count of tries.
            save(self._run.job, self._findings, after=self.after, tries=0)
        self._findings = []

    def _settled(self, user: LocalUser) -> Finding:
        """Repeat the write until the user does not change during it.

        If the user changes during a write, the event of the change may be delivered first. The write then sends older values.
        """
        self._run.keep_pace()
        found = finding = self._run.examiner.examine(user.document, user.position)
        for _ in range(_MOST_ROUNDS):
            if not found.is_written:
                return finding
            now = self._run.people.now(user.key)
            if now is None and self._run.people.existing([user.user_id]):
                # The user was deleted and created again; the event of the creation provisions the new user.
                return replace(finding, outcome=Outcome.SKIPPED, reason="changed meanwhile")
            if now is None:
                return self._run.examiner.withdraw(user.document, user.position)
            if now.document == user.document:
                return finding
            user = now
            found = self._run.examiner.examine(user.document, user.position)
            finding = replace(finding, scim_id=found.scim_id or finding.scim_id)
        return finding

    def _failed(self, user: LocalUser, failure: ActionError) -> bool:
        finding = self._run.failed(user.user_id, failure)
        if not isinstance(failure, _AGAINST_SERVER):
            self._end_row()
            self._note(user, finding)
            return True
        self._row.append((user, finding))
        if len(self._row) < _IN_A_ROW:
            return True
        # These users are examined again when the job is resumed.
        self._row = []
        self.save()
        raise Stopped(f"{_IN_A_ROW} consecutive users failed, the last one with: {finding.reason}")

    def _end_row(self) -> None:
        for user, finding in self._row:
            self._note(user, finding)
        self._row = []

    def _note(self, user: LocalUser, finding: Finding) -> None:
        self._findings.append(finding)
        self.after = user.key
