"""What can be done with one dead letter, and who may: buttons of its page, forms, and the calls behind them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.http import HttpRequest

from identity.admin.object_actions import ObjectAction
from identity.admin.scope import actor_of, staff_of
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
    State.ACKNOWLEDGED: "Somebody takes care of it. It stays in the list, is redelivered with the others, and no alert counts it.",
    State.IGNORED: "Nobody wants to hear of it. It stays listed until its retention ends, and is redelivered only when it is asked for.",
    State.RESOLVED: "It was dealt with in another way, such as by hand on the server. Its event is not sent.",
    State.OPEN: "It waits for somebody again, and alerts count it.",
}


class ReasonForm(forms.Form):
    """What is asked before a decision."""

    reason = forms.CharField(max_length=triage.LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 2}), help_text="Kept with the letter.")


class RedeliveryForm(forms.Form):
    """What a redelivery may be told."""

    reason = forms.CharField(required=False, max_length=triage.LONGEST_REASON, help_text="Kept with the dead letter.")


class ForcedRedeliveryForm(RedeliveryForm):
    """The same for several letters, with the way around the protection of newer events."""

    force = forms.BooleanField(
        required=False,
        label="Although a newer event was written",
        help_text="Overwrites what the newer event of the same user has written, and deletes users that exist again. "
        "Without it such an old event ends as superseded.",
    )


def order_of(request: HttpRequest, reason: str, *, force: bool, with_current_profile: bool = False) -> Order:
    """Return the order to redeliver in the name of the signed-in account."""
    return Order(actor_of(request), reason, staff=staff_of(request), force=force, with_current_profile=with_current_profile)


def redeliver_many(request: HttpRequest, letters: Iterable[DeadLetter], *, reason: str, force: bool) -> Redelivered:
    """Redeliver letters in the name of the signed-in account."""
    order = order_of(request, reason, force=force)
    done = [redeliver_letters(tenant_id=tenant_id, letter_ids=ids, order=order) for tenant_id, ids in _by_tenant(letters).items()]
    return Redelivered(sum(one.count for one in done), sum(one.blocked for one in done))


def decide_many(request: HttpRequest, letters: Iterable[DeadLetter], *, state: str, reason: str) -> int:
    """Decide about letters in the name of the signed-in account; return how many changed."""
    told = {"state": state, "reason": reason, "actor": actor_of(request)}
    return sum(triage.decide(tenant_id=tenant_id, letter_ids=ids, **told) for tenant_id, ids in _by_tenant(letters).items())


def _by_tenant(letters: Iterable[DeadLetter]) -> dict[str, list[int]]:
    ids: dict[str, list[int]] = defaultdict(list)
    for letter in letters:
        ids[letter.tenant_id].append(letter.pk)
    return ids


def is_unsettled(letter: DeadLetter) -> bool:
    """Tell whether the event is neither there nor on its way, nor declared done with."""
    return letter.state in triage.UNSETTLED


def _redeliver(*, force: bool = False, with_current_profile: bool = False) -> Callable[[HttpRequest, DeadLetter, dict[str, Any]], str]:
    def run(request: HttpRequest, letter: DeadLetter, values: dict[str, Any]) -> str:
        order = order_of(request, values["reason"], force=force, with_current_profile=with_current_profile)
        if not redeliver_one(tenant_id=letter.tenant_id, letter_id=letter.pk, order=order):
            return "The event is already being redelivered."
        return "The event goes back to its place and is delivered in a moment."

    return run


def _explain(_request: HttpRequest, letter: DeadLetter) -> str:
    return (
        f"{letter.event_type} of {letter.key} is sent again, with a fresh series of attempts, before newer events of the same user. "
        "If a newer event of this user was written meanwhile, it ends as superseded and nothing is sent. "
        f"It failed with: {letter.reason}"
    )


def _explain_current(_request: HttpRequest, letter: DeadLetter) -> str:
    return (
        f"{letter.event_type} of {letter.key} is sent with the profile that the user has now, under the same event id. This helps where "
        "later updates were skipped because the user was never created there. The attempt is marked, and the recorded event is kept."
    )


def _explain_forced(_request: HttpRequest, letter: DeadLetter) -> str:
    return (
        f"{letter.event_type} of {letter.key} is sent exactly as it was recorded, whatever was written since: a newer profile is turned "
        "back, and a user that exists again is deleted. Nothing undoes it."
    )


def _decision(state: State) -> ObjectAction:
    def run(request: HttpRequest, letter: DeadLetter, values: dict[str, Any]) -> str:
        changed = decide_many(request, [letter], state=state, reason=values["reason"])
        return f"The dead letter is {State(state).label.lower()} now." if changed else "Nothing changed: it is dealt with already."

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
    """Return what an account needs for an action: every decision needs the same."""
    return RIGHTS.get(action.name, (Right.TRIAGE,))


class DecisionForm(ReasonForm):
    """A decision about several letters."""

    state = forms.ChoiceField(choices=[(state.value, label) for state, label in DECISIONS.items()], label="Decision")
    field_order = ("state", "reason")
