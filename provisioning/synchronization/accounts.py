"""Finds accounts on the server that have our key but no user in this service. Deletes these accounts only if the plan requests this."""

from __future__ import annotations

from typing import Any

from provisioning.links.rows import head_position
from provisioning.mapping.table import Person
from provisioning.models.synchronizations import SynchronizationRow
from provisioning.runs.failures import ConfigurationFailure, DataFailure, InvalidResponseShape, TransientFailure
from provisioning.synchronization import phases
from provisioning.synchronization.findings import Finding, Outcome
from provisioning.synchronization.run import MOST_TRIES, Run, Stopped
from provisioning.synchronization.state import account_counts, save, save_deletion

_ROWS_AT_ONCE = 50


def note_accounts(run: Run) -> None:
    """Read accounts of the server until the worker must stop. Store each account that has the id of a user who does not exist."""
    if not run.remote.is_keyed_by_user_id:
        _leave_out(run, "externalId is not mapped from user_id, so accounts without a user cannot be determined.")
        return
    start: int | None = run.job.parameters.get("start", 1)
    while start is not None and not run.is_over():
        run.keep_pace()
        try:
            page = run.remote.page(start)
            _note_filter(run, page.users)
        except TransientFailure as failure:
            _rest_or_stop(run, failure)
            return
        except (DataFailure, InvalidResponseShape) as failure:
            _leave_out(run, f"The accounts of the server could not be listed: {failure}")
            return
        start = page.next_start
        _note(run, page.users, start)
    if start is None:
        save(run.job, **phases.following(run.job))


def delete_accounts(run: Run) -> None:
    """Delete the stored accounts until the worker must stop; look up and verify each account again. If there are more accounts than the
    limit, first wait for approval.
    """
    found, limit = account_counts(run.job).get(Outcome.EXTRA, 0), run.plan.most_deletions(run.job.parameters.get("managed", 0))
    if "after_account" not in run.job.parameters and not run.job.parameters.get("is_confirmed") and found > limit:
        text = f"{found:,} accounts without a user here would be deleted, more than the limit of {limit:,}. Confirm or decline."
        phases.wait_for_person(run.job, phases.CONFIRMATION, text)
        return
    while not run.is_over():
        after = run.job.parameters.get("after_account", 0)
        rows = SynchronizationRow.objects.filter(job=run.job, outcome=Outcome.EXTRA, pk__gt=after).order_by("pk")[:_ROWS_AT_ONCE]
        accounts = list(rows)
        if not accounts:
            save(run.job, **phases.following(run.job))
            return
        for account in accounts:
            run.keep_pace()
            if run.is_over() or not _delete(run, account):
                return


def _note(run: Run, users: list[dict[str, Any]], start: int | None) -> None:
    providers = run.people.providers()
    ours = {key: user for user in users if (key := _key_of_ours(user, providers))}
    held = run.remote.held_by_others([str(user["id"]) for user in ours.values()])
    elsewhere = run.people.elsewhere(ours.keys())
    managed = {key: user for key, user in ours.items() if str(user["id"]) not in held and key not in elsewhere}
    here = run.people.existing(managed.keys())
    accounts = [Finding(Outcome.EXTRA, key, str(managed[key]["id"])) for key in sorted(managed.keys() - here)]
    progress: dict[str, Any] = {"start": start} if start is not None else {}
    there = {key: str(managed[key]["id"]) for key in here}
    progress["managed"] = run.job.parameters.get("managed", 0) + len(managed)
    save(run.job, accounts=accounts, there=there, tries=0, **progress)


def _note_filter(run: Run, users: list[dict[str, Any]]) -> None:
    """Search once for a listed account by its key. If the filter does not find the account, later lookups also use the user name."""
    if run.job.parameters.get("filter_is_tried"):
        return
    providers = run.people.providers()
    sample = next((user for user in users if _key_of_ours(user, providers)), None)
    if sample is None:
        return
    missed = run.remote.note_missed(sample)
    text = "The externalId filter of this server misses accounts that its listing contains. Lookups also use userName."
    notes = [*run.job.parameters.get("notes", ()), *([text] if missed else [])]
    save(run.job, filter_is_tried=True, notes=notes)


def _key_of_ours(user: dict[str, Any], providers: frozenset[str]) -> str:
    key = user.get("externalId")
    provider, bar, rest = key.partition("|") if isinstance(key, str) else ("", "", "")
    return str(key) if bar and rest and provider in providers else ""


def _delete(run: Run, account: SynchronizationRow) -> bool:
    """Delete one account; return False if the job must pause now."""
    # Read the position of the log before the checks, so that an event which is recorded during the checks is newer than this deletion.
    position = head_position(run.job.tenant_id)
    if run.people.existing([account.user_id]):
        save_deletion(run.job, account, is_deleted=False, reason="a user with this id exists again")
        return True
    try:
        person = Person(account.user_id, "")
        is_deleted = run.examiner.delete(person, account.user_id, position, account.scim_id)
    except TransientFailure as failure:
        _rest_or_stop(run, failure)
        return False
    except ConfigurationFailure as failure:
        raise Stopped(str(failure)) from failure
    except (DataFailure, InvalidResponseShape) as failure:
        save_deletion(run.job, account, is_deleted=False, reason=run.failed(account.user_id, failure).reason)
        return True
    save_deletion(run.job, account, is_deleted=is_deleted, reason="" if is_deleted else "the account no longer exists")
    return True


def _rest_or_stop(run: Run, failure: TransientFailure) -> None:
    if run.job.parameters.get("tries", 0) + 1 >= MOST_TRIES:
        raise Stopped(str(failure)) from failure
    run.rest(failure, [])


def _leave_out(run: Run, reason: str) -> None:
    if run.plan.deletes_missing and run.plan.writes:
        raise Stopped(reason)
    save(run.job, notes=[reason], **phases.following(run.job))
