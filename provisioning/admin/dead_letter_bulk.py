"""The actions of staff on dead letters that are selected in the list.

A confirmation page shows these dead letters, and submits their ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest, HttpResponse

from foundation.admin.panels import Panel
from identity.admin.assurance import needs_proof
from identity.admin.chosen_rows import NAMED, Chosen, answers, ask
from provisioning.admin.audit import note_act
from provisioning.admin.dead_letter_actions import DecisionForm, ForcedRedeliveryForm, RedeliveryForm, decide_many, redeliver_many
from provisioning.admin.outcomes.redelivery_feedback import all_queued, outlook_panel, waits_of
from provisioning.admin.outcomes.sample_changes import CHANGES, MOST_TRIED, names_of, sample_changes
from provisioning.admin.rights import Right, may
from provisioning.dead_letters.redelivery_outlook import outlook_of
from provisioning.dead_letters.triage import UNSETTLED
from provisioning.models import DeadLetter

# Largest number of dead letters per confirmation. For more dead letters, "Redeliver all shown" starts a job.
MOST_AT_ONCE = 1000
_REDELIVERY = "Each event is sent before newer events of the same user, with a new series of attempts. Other dead letters are not sent."
_DECISION = (
    "A decision does not send events. Acknowledged and ignored dead letters can still be redelivered. Ignored and resolved dead letters "
    "are deleted when the retention of deliveries ends."
)


@admin.action(description="Redeliver selected dead letters", permissions=["redeliver"])
@needs_proof
def redeliver_selected(model_admin: Any, request: HttpRequest, rows: models.QuerySet[DeadLetter]) -> HttpResponse | None:
    """Show the selected dead letters; redeliver them after the confirmation."""
    may_force = may(request, Right.FORCE)
    form_class = ForcedRedeliveryForm if may_force else RedeliveryForm
    letters = _frozen(rows.filter(state__in=UNSETTLED))
    form = form_class(initial=request.POST.dict()) if CHANGES in request.POST else form_class(answers(request))
    if letters and form.is_valid():
        _redeliver(model_admin, request, letters, form)
        return None
    outlook, left_out = outlook_of(letters), rows.exclude(state__in=UNSETTLED).count()
    told = [*outlook.sentences, *([outlook.sentence_about_force] if may_force else []), *([_not_included(left_out)] if left_out else [])]
    panels, may_try = [outlook_panel(outlook)], may(request, Right.VIEW_BODIES)
    if letters and may_try and CHANGES in request.POST:
        note_act(request, "Dry run", ids=[letter.pk for letter in letters[:MOST_TRIED]])
        panels.append(sample_changes(model_admin.admin_site, request, letters))
    further = [(CHANGES, "Show the changes")] if may_try else []
    effect = " ".join(filter(None, [*told, _REDELIVERY]))
    waits = waits_of(len(letters), letters)
    return _asked(model_admin, request, letters, form, verb="Redeliver", effect=effect, caution=waits, panels=panels, further=further)


def _redeliver(model_admin: Any, request: HttpRequest, letters: list[DeadLetter], form: forms.Form) -> None:
    reason, force = form.cleaned_data["reason"], form.cleaned_data.get("force", False)
    done = redeliver_many(request, letters, reason=reason, force=force)
    note_act(request, "Redelivered", reason=reason, ids=[letter.pk for letter in letters], force=force, blocked=done.blocked)
    level, text = all_queued(done.count, letters)
    model_admin.message_user(request, text, level)
    if done.blocked:
        text = (
            "1 deletion was not sent: its user exists again. Redeliver it by force to delete this user."
            if done.blocked == 1
            else f"{done.blocked:,} deletions were not sent: their users exist again. Redeliver them by force to delete these users."
        )
        model_admin.message_user(request, text, messages.WARNING)


@admin.action(description="Acknowledge, ignore or resolve selected dead letters", permissions=["triage"])
def decide_selected(model_admin: Any, request: HttpRequest, rows: models.QuerySet[DeadLetter]) -> HttpResponse | None:
    """Show the selected dead letters, and ask for the decision and its reason."""
    letters = _frozen(rows)
    form = DecisionForm(answers(request))
    if letters and form.is_valid():
        count = decide_many(request, letters, **form.cleaned_data)
        note_act(request, "Decided", ids=[letter.pk for letter in letters], changed=count, **form.cleaned_data)
        model_admin.message_user(request, f"{count:,} dead letter{'' if count == 1 else 's'} changed.", messages.SUCCESS)
        return None
    return _asked(model_admin, request, letters, form, verb="Change the state of", effect=_DECISION)


def _not_included(count: int) -> str:
    if count == 1:
        return "1 selected dead letter is not included: it is resolved, or its event is already being redelivered."
    return f"{count:,} selected dead letters are not included: they are resolved, or their events are already being redelivered."


def _frozen(rows: models.QuerySet[DeadLetter]) -> list[DeadLetter]:
    return list(rows.select_related("delivery").defer("body", "rebuilt_body").order_by("pk")[:MOST_AT_ONCE])


def _asked(
    model_admin: Any,
    request: HttpRequest,
    letters: list[DeadLetter],
    form: forms.Form,
    *,
    verb: str,
    effect: str,
    caution: str = "",
    panels: Sequence[Panel] = (),
    further: Sequence[tuple[str, str]] = (),
) -> HttpResponse | None:
    if not letters:
        text = "The selected dead letters cannot be changed: they are resolved, already being redelivered, or deleted."
        model_admin.message_user(request, text, messages.WARNING)
        return None
    count = len(letters)
    users = names_of(model_admin.admin_site, request, letters[:NAMED])
    names = [f"{letter.event_type} of {users[letter.pk]}: {letter.reason}" for letter in letters[:NAMED]]
    note = f"These are the first {count}. Select the remaining dead letters afterwards." if count == MOST_AT_ONCE else ""
    chosen = Chosen(count, names, [letter.pk for letter in letters])
    title = f"{verb} {count:,} dead letter{'' if count == 1 else 's'}?"
    shown: dict[str, Any] = {"effect": effect, "note": note, "caution": caution, "panels": panels, "further": further}
    return ask(model_admin, request, chosen, form, title=title, verb=verb, **shown)
