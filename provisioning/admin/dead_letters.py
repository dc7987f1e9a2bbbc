"""Admin pages of dead letters: why each died, and sending it again."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.timesince import timesince

from identity.admin.badges import Tone, badge, json_block
from identity.admin.json_fields import pretty
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.scope import staff_of
from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.admin.deliveries import attempts_of
from provisioning.models import Attempt, DeadLetter
from provisioning.redelivery import redeliver

# One confirmation freezes so many letters; more are chosen by asking again.
MOST_AT_ONCE = 1000
_NAMED = 20
_STATES: dict[str, Tone] = {"open": "bad", "redelivered": "warn", "resolved": "good"}


class RedeliveryForm(forms.Form):
    """What a redelivery may be told."""

    reason = forms.CharField(required=False, max_length=500, help_text="Kept with the dead letter.")
    force = forms.BooleanField(
        required=False,
        label="Although a newer event was written",
        help_text="Overwrites what the newer event of the same user has written. Without it such an old event ends as superseded.",
    )


def redeliver_letters(request: HttpRequest, letters: Iterable[DeadLetter], *, reason: str, force: bool) -> int:
    """Redeliver letters in the name of the signed-in account; return how many were open."""
    staff = staff_of(request)
    by_tenant: dict[str, list[int]] = defaultdict(list)
    for letter in letters:
        by_tenant[letter.tenant_id].append(letter.pk)
    actor = staff.email if staff else ""
    return sum(
        redeliver(tenant_id=tenant_id, letter_ids=ids, actor=actor, staff=staff, reason=reason, force=force)
        for tenant_id, ids in by_tenant.items()
    )


def _redeliver_one(request: HttpRequest, letter: DeadLetter, values: dict[str, Any]) -> str:
    count = redeliver_letters(request, [letter], reason=values["reason"], force=values["force"])
    return "The event goes back to its place and is delivered in a moment." if count else "The event is already being redelivered."


def _explain(_request: HttpRequest, letter: DeadLetter) -> str:
    return (
        f"{letter.event_type} of {letter.key} is sent again, with a fresh series of attempts, before newer events of the same user. "
        f"It failed with: {letter.reason}"
    )


@admin.action(description="Redeliver selected dead letters", permissions=["view"])
def redeliver_selected(model_admin: DeadLetterAdmin, request: HttpRequest, rows: models.QuerySet[DeadLetter]) -> HttpResponse | None:
    """Show what is chosen, frozen to its ids; on confirmation redeliver it."""
    form = RedeliveryForm(request.POST if request.POST.get("confirmed") else None)
    letters = list(rows.filter(state=DeadLetter.State.OPEN).defer("body").order_by("pk")[:MOST_AT_ONCE])
    if request.POST.get("confirmed") and form.is_valid():
        count = redeliver_letters(request, letters, **form.cleaned_data)
        for letter in letters:
            model_admin.log_change(request, letter, "Redelivered")
        model_admin.message_user(request, f"{count} dead letters are being redelivered.", messages.SUCCESS)
        return None
    if not letters:
        model_admin.message_user(request, "None of the selected dead letters is open.", messages.WARNING)
        return None
    context = {
        **model_admin.admin_site.each_context(request),
        "title": f"Redeliver {len(letters)} dead letters?",
        "subtitle": None,
        "letters": letters,
        "named": letters[:_NAMED],
        "unnamed": max(len(letters) - _NAMED, 0),
        "is_cut": len(letters) == MOST_AT_ONCE,
        "form": form,
        "opts": model_admin.opts,
        "action_checkbox_name": ACTION_CHECKBOX_NAME,
        "media": model_admin.media,
    }
    request.current_app = model_admin.admin_site.name
    return TemplateResponse(request, "admin/redeliver_letters.html", context)


class DeadLetterAdmin(ReadOnlyAdmin[DeadLetter], ObjectActionsAdmin[DeadLetter]):
    list_display = (
        *("event_type", "key", "state_badge", "short_reason", "error_class", "error_status", "attempts", "age"),
        *("stream_id", "tenant_id", "redeliver_button"),
    )
    list_filter = ("state", "error_class", "error_status", "event_type", "created_at")
    sortable_by = ()
    search_fields = ("=event_id", "=key", "=stream_id", "=fingerprint")
    search_help_text = "An event id (evt_…), an entity (user:database|…), a stream id (est_…) or a fingerprint."
    fields = (
        *("tenant_id", "stream_id", "key", "event_type", "event_id", "state_badge", "reason", "error_class", "error_status"),
        *("error_scim_type", "fingerprint", "attempts", "created_at", "redelivered_at", "redelivery_actor", "redelivery_reason"),
        *("resolved_at", "resolution", "delivery", "last_exchanges", "event"),
    )
    readonly_fields = ("state_badge", "last_exchanges", "event")
    actions = (redeliver_selected,)
    object_actions = (
        ObjectAction(
            name="redeliver",
            label="Redeliver",
            explain=_explain,
            run=_redeliver_one,
            is_offered=lambda letter: letter.state == DeadLetter.State.OPEN,
            form_class=RedeliveryForm,
        ),
    )
    empty_text = "No dead letters. Events that a destination did not take after every attempt appear here."

    def __init__(self, model: type[DeadLetter], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.panels.append(lambda _request, row: attempts_of(self.admin_site, row.delivery_id))

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[DeadLetter]:
        return super().get_queryset(request).select_related("delivery").defer("body")

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return ("-tenant_id", "-pk") if self.is_bound(request) else ("-pk",)

    def _place_after(self, request: HttpRequest, object_id: str) -> str:
        if "list" in request.GET:
            return reverse(f"{self.admin_site.name}:provisioning_deadletter_changelist")
        return super()._place_after(request, object_id)

    @admin.display(description="State")
    def state_badge(self, row: DeadLetter) -> str:
        return badge(row.get_state_display(), _STATES[row.state])

    @admin.display(description="Reason")
    def short_reason(self, row: DeadLetter) -> str:
        return row.reason if len(row.reason) <= 120 else f"{row.reason[:117]}…"

    @admin.display(description="Age")
    def age(self, row: DeadLetter) -> str:
        return timesince(row.created_at, depth=1)

    @admin.display(description="")
    def redeliver_button(self, row: DeadLetter) -> str:
        """Return a button of the list's own form: it posts, with the form's token, without asking again."""
        if row.state != DeadLetter.State.OPEN:
            return ""
        place = reverse(f"{self.admin_site.name}:provisioning_deadletter_action", args=(quote(row.pk), "redeliver"))
        label = f"Redeliver {row.event_type} of {row.key}"
        return format_html('<button type="submit" class="button" formaction="{}?list" aria-label="{}">Redeliver</button>', place, label)

    @admin.display(description="Last exchanges")
    def last_exchanges(self, row: DeadLetter) -> str:
        last = Attempt.objects.filter(delivery_id=row.delivery_id).order_by("-number").first()
        return json_block(pretty(last.exchanges)) if last is not None and last.exchanges else "None kept."

    @admin.display(description="Event")
    def event(self, row: DeadLetter) -> str:
        if row.body is None:
            return "The log had already dropped the event."
        return json_block(pretty(json.loads(bytes(row.body))))
