"""What staff can do with dead letters: buttons, forms, required permissions, and the service calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.http import HttpRequest

from identity.admin.object_actions import ObjectAction
from identity.admin.scope import actor_of, staff_of
from provisioning.admin.outcomes.redelivery_feedback import queued
from provisioning.admin.rights import Right
from provisioning.dead_letters import triage
from provisioning.dead_letters.redelivery import Order, Redelivered, redeliver_letters, redeliver_one
from provisioning.models import DeadLetter
from provisioning.runs.current_profile import can_be_rebuilt

State = DeadLetter.State
DECISIONS = {
    State.ACKNOWLEDGED: "Acknowledge",
    State.IGNORED: "Ignore",
    State.RESOLVED: "Resolve",
    State.OPEN: "Open again",
}
_MEANINGS = {
    State.ACKNOWLEDGED: "Marks the dead letter as being worked on. Alerts do not count it. “Redeliver all shown” sends it.",
    State.IGNORED: "Alerts do not count the dead letter. “Redeliver all shown” sends it only if the list has the filter “Ignored”. "
    "The dead letter is deleted when the retention of deliveries ends.",
    State.RESOLVED: "Marks the dead letter as resolved in another way, such as a manual change on the server. The event is not sent. "
    "The dead letter is deleted when the retention of deliveries ends.",
    State.OPEN: "Marks the dead letter as open again, so that alerts count it.",
}


# The option of redeliveries of several dead letters.
FORCE_LABEL = "Send outdated events, too (by force)"
FORCE_HELP = (
    "An event is outdated if a newer event of the same user was delivered. An outdated event overwrites a newer profile, or deletes a user "
    "that was created again. If this is off, outdated events are not sent."
)


class ReasonForm(forms.Form):
    """The form with the reason of a decision."""

    reason = forms.CharField(
        max_length=triage.LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 2}), help_text="Stored with the dead letter."
    )


class AuditedReasonForm(ReasonForm):
    """The form with the reason of a decision. Only the audit log stores this reason."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].help_text = "Stored in the audit log."


class RedeliveryForm(forms.Form):
    """The form with the reason of a redelivery."""

    reason = forms.CharField(required=False, max_length=triage.LONGEST_REASON, help_text="Stored with the dead letter.")


class ForcedRedeliveryForm(RedeliveryForm):
    """The form of a redelivery of several dead letters. With its option, events are sent even if a newer event was already written."""

    force = forms.BooleanField(
        required=False,
        label=FORCE_LABEL,
        help_text=FORCE_HELP,
    )


def order_of(request: HttpRequest, reason: str, *, force: bool, with_current_profile: bool = False) -> Order:
    """Return the parameters of a redelivery, with the staff account as the actor."""
    return Order(actor_of(request), reason, staff=staff_of(request), force=force, with_current_profile=with_current_profile)


def redeliver_many(request: HttpRequest, letters: Iterable[DeadLetter], *, reason: str, force: bool) -> Redelivered:
    """Redeliver dead letters with the staff account as the actor."""
    order = order_of(request, reason, force=force)
    done = [redeliver_letters(tenant_id=tenant_id, letter_ids=ids, order=order) for tenant_id, ids in _by_tenant(letters).items()]
    return Redelivered(sum(one.count for one in done), sum(one.blocked for one in done))


def decide_many(request: HttpRequest, letters: Iterable[DeadLetter], *, state: str, reason: str) -> int:
    """Decide about dead letters with the staff account as the actor. Return the number of changed dead letters."""
    told = {"state": state, "reason": reason, "actor": actor_of(request)}
    return sum(triage.decide(tenant_id=tenant_id, letter_ids=ids, **told) for tenant_id, ids in _by_tenant(letters).items())


def _by_tenant(letters: Iterable[DeadLetter]) -> dict[str, list[int]]:
    ids: dict[str, list[int]] = defaultdict(list)
    for letter in letters:
        ids[letter.tenant_id].append(letter.pk)
    return ids


def is_unsettled(letter: DeadLetter) -> bool:
    """Tell whether the destination does not have the event: the dead letter is open, acknowledged or ignored."""
    return letter.state in triage.UNSETTLED


def _redeliver(*, force: bool = False, with_current_profile: bool = False) -> Callable[[HttpRequest, DeadLetter, dict[str, Any]], str]:
    def run(request: HttpRequest, letter: DeadLetter, values: dict[str, Any]) -> str:
        order = order_of(request, values["reason"], force=force, with_current_profile=with_current_profile)
        if not redeliver_one(tenant_id=letter.tenant_id, letter_id=letter.pk, order=order):
            return "The event is already being redelivered."
        return queued(letter)

    return run


def _entity_of(letter: Any) -> str:
    """Return the name of the entity. If the page has not read the name, return the id."""
    return str(letter.entity.text if hasattr(letter, "entity") else letter.key)


def _explain(_request: HttpRequest, letter: DeadLetter) -> str:
    return (
        f"Sends {letter.event_type} of {_entity_of(letter)} again, with a new series of attempts, before newer events of the same user. "
        "If a newer event of this user was already written, nothing is sent, and the delivery ends as superseded. "
        f"The last error was: {letter.reason}"
    )


def _explain_current(_request: HttpRequest, letter: DeadLetter) -> str:
    return (
        f"Sends {letter.event_type} of {_entity_of(letter)} with the current profile of the user and the same event id. "
        "Use this if later updates were skipped because the user was never created on the server. "
        "The attempt is marked as an attempt with the current profile. The recorded event is kept."
    )


def _explain_forced(_request: HttpRequest, letter: DeadLetter) -> str:
    return (
        f"Sends {letter.event_type} of {_entity_of(letter)} exactly as recorded, even if newer events were written. The event can "
        "overwrite a newer profile, or delete a user that was created again after the event. This cannot be undone."
    )


def _decision(state: State) -> ObjectAction:
    def run(request: HttpRequest, letter: DeadLetter, values: dict[str, Any]) -> str:
        changed = decide_many(request, [letter], state=state, reason=values["reason"])
        return (
            f"The dead letter is now {State(state).label.lower()}."
            if changed
            else "Not changed: the dead letter is being redelivered, or it is resolved."
        )

    def is_offered(letter: DeadLetter) -> bool:
        if state == State.OPEN:
            return letter.state in (State.ACKNOWLEDGED, State.IGNORED) or letter.resolution == triage.BY_HAND
        return is_unsettled(letter) and letter.state != state

    name = DECISIONS[state].lower().replace(" ", "_")
    return ObjectAction(
        name=name, label=DECISIONS[state], explain=lambda *_: _MEANINGS[state], run=run, is_offered=is_offered, form_class=ReasonForm
    )


ACTIONS = (
    ObjectAction(
        name="redeliver", label="Redeliver", explain=_explain, run=_redeliver(), is_offered=is_unsettled, form_class=RedeliveryForm
    ),
    ObjectAction(
        name="redeliver_current",
        label="Redeliver with the current profile",
        explain=_explain_current,
        run=_redeliver(with_current_profile=True),
        is_offered=lambda letter: is_unsettled(letter) and can_be_rebuilt(letter.event_type),
        form_class=RedeliveryForm,
    ),
    ObjectAction(
        name="redeliver_forced",
        label="Redeliver by force",
        explain=_explain_forced,
        run=_redeliver(force=True),
        is_offered=is_unsettled,
        form_class=ReasonForm,
        is_dangerous=True,
    ),
    *(_decision(state) for state in DECISIONS),
)
RIGHTS: dict[str, tuple[Right, ...]] = {
    "redeliver": (Right.REDELIVER,),
    "redeliver_current": (Right.REDELIVER,),
    "redeliver_forced": (Right.REDELIVER, Right.FORCE),
}


def rights_for(action: ObjectAction) -> tuple[Right, ...]:
    """Return the permissions that this button needs. All decisions need the same permissions."""
    return RIGHTS.get(action.name, (Right.TRIAGE,))


class DecisionForm(ReasonForm):
    """The form of a decision about several dead letters."""

    state = forms.ChoiceField(choices=[(state.value, label) for state, label in DECISIONS.items()], label="Decision")
    field_order = ("state", "reason")
