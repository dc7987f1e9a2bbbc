"""Pages about the provisioning of one user: a timeline of events and deliveries, and a page that provisions the user now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from events.admin.stored import pages_of_events
from events.models import Event
from foundation.admin.badges import badge
from foundation.admin.beside_rows import page_beside
from foundation.admin.panels import Cell
from foundation.database.keyset_pages import PAGE_ROWS
from identity.admin.people.labels import label_of
from identity.admin.refusals import add_to_form, refusals
from identity.admin.row_pages import RowPage, RowPagesAdmin
from identity.admin.scope import staff_of
from identity.audit.entries import record
from identity.models import User
from provisioning.actions.setups import deployed_setup
from provisioning.admin.deliveries import STATES
from provisioning.admin.outcomes.verdicts import outcome_of
from provisioning.admin.stream_names import stream_cells
from provisioning.admin.trial_pages import report_context
from provisioning.models import Action, Delivery
from provisioning.models.actions import SCIM_USER_PROVISIONING
from provisioning.runs.failures import Misconfigured
from provisioning.trials.trials import TrialReport
from provisioning.trials.user_run import run_for_user

TIMELINE = "timeline"
PROVISION = "provision"
_MAY_PROVISION = "provisioning.change_action"


@dataclass(frozen=True)
class Sent:
    """One delivery of an event in the timeline."""

    stream: Cell
    state: SafeString
    url: str
    outcome: str


@dataclass(frozen=True)
class Happened:
    """One event of the user with all its deliveries."""

    event: Event
    url: str
    sent: list[Sent]


class ProvisionForm(forms.Form):
    action: Any = forms.ModelChoiceField(
        models.QuerySet(Action).none(),
        empty_label=None,
        help_text="The action that provisions the user. Only deployed actions for SCIM servers are listed.",
    )
    write = forms.BooleanField(
        required=False,
        initial=True,
        label="Write to the server",
        help_text="If this is off, nothing is written: a dry run shows the changes.",
    )

    def __init__(self, data: Any, *, tenant_id: str) -> None:
        super().__init__(data)
        field: Any = self.fields["action"]
        field.queryset = Action.objects.of(tenant_id).filter(is_deployed=True, template=SCIM_USER_PROVISIONING).order_by("name", "pk")


class UserPages:
    """The provisioning pages of users on one admin site."""

    def __init__(self, site: admin.AdminSite, owner: RowPagesAdmin[User]) -> None:
        self._site = site
        self._owner = owner

    def add(self) -> None:
        """Add these pages to the page of a user."""
        timeline = RowPage(TIMELINE, "Timeline", require_safe(self.timeline), "events.view_event")
        self._owner.row_pages += [timeline, RowPage(PROVISION, "Provision now", self.provision, _MAY_PROVISION)]

    def timeline(self, request: HttpRequest, user: User) -> HttpResponse:
        """Show events of the user with their deliveries, newest first. The query parameter `before` or `after` selects the page: it
        contains the primary key of an event.
        """
        before, after = (_key(request.GET.get(name, "")) for name in ("before", "after"))
        events, older, newer = _page_of(user, before=before, after=after)
        context = {
            "title": "Timeline",
            "happened": self._with_deliveries(request, user, events),
            "older_url": f"?before={older}" if older else "",
            "newer_url": f"?after={newer}" if newer else "",
            "newest_url": "?" if newer else "",
            "provision_url": self._owner.address_of(PROVISION, user) if request.user.has_perm(_MAY_PROVISION) else "",
        }
        return self._shown(request, user, "admin/user_timeline.html", context)

    def provision(self, request: HttpRequest, user: User) -> HttpResponse:
        """Provision the user through an action now, or show the changes in a dry run, step by step."""
        form = ProvisionForm(request.POST if request.method == "POST" else None, tenant_id=user.tenant_id)
        report: TrialReport | None = None
        if request.method == "POST" and form.is_valid():
            report = self._run(request, user, form)
        context = {
            "title": "Provision now",
            "explanation": f"Provisions {label_of(user)} in the same way as a delivery, and shows each step. "
            "While events of the user wait for delivery, only a dry run is possible.",
            "form": form,
            "outbound_addresses": settings.OUTBOUND_ADDRESSES,
            "back_url": self._owner.address_of("change", user),
            "is_without_actions": not form.fields["action"].queryset.exists(),  # type: ignore[attr-defined]  # a choice of rows
            "actions_url": reverse(f"{self._site.name}:provisioning_action_changelist"),
            **report_context(report),
        }
        return self._shown(request, user, "admin/user_provision.html", context)

    def _run(self, request: HttpRequest, user: User, form: ProvisionForm) -> TrialReport | None:
        staff, action = staff_of(request), form.cleaned_data["action"]
        setup = deployed_setup(tenant_id=user.tenant_id, action_id=action.pk)
        if staff is None or setup is None:
            raise PermissionDenied
        dry_run = not form.cleaned_data["write"]
        try:
            report = run_for_user(setup, user_id=user.user_id, actor=staff.email, dry_run=dry_run)
        except Misconfigured as error:
            form.add_error(None, str(error))
            return None
        except refusals() as refusal:
            add_to_form(form, refusal)
            return None
        record("Dry run for a user" if dry_run else "Provisioned now", about=user, action=action.name, outcome=report.summary)
        return report

    def _with_deliveries(self, request: HttpRequest, user: User, events: list[Event]) -> list[Happened]:
        sent: dict[str, list[Sent]] = {}
        if request.user.has_perm("provisioning.view_delivery"):
            found = list(
                Delivery.objects.filter(tenant_id=user.tenant_id, event_id__in=[event.event_id for event in events]).order_by("pk")
            )
            streams = stream_cells(self._site, request, tenant_id=user.tenant_id, stream_ids=(delivery.stream_id for delivery in found))
            for delivery in found:
                sent.setdefault(delivery.event_id, []).append(self._sent(delivery, streams[delivery.stream_id]))
        pages = pages_of_events(self._site, request, events)
        return [Happened(event, pages[event.pk], sent.get(event.event_id, [])) for event in events]

    def _sent(self, delivery: Delivery, stream: Cell) -> Sent:
        return Sent(
            stream=stream,
            state=badge(delivery.get_state_display(), STATES[delivery.state]),
            url=reverse(f"{self._site.name}:provisioning_delivery_change", args=(quote(delivery.pk),)),
            outcome=outcome_of(delivery),
        )

    def _shown(self, request: HttpRequest, user: User, template: str, context: dict[str, Any]) -> HttpResponse:
        return page_beside(self._owner, request, template, original=user, **context)


def _key(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _page_of(user: User, *, before: int | None, after: int | None) -> tuple[list[Event], int | None, int | None]:
    """Return one page of the user's events, newest first, and two keys.

    The first key selects the older page with `before`, the second key selects the newer page with `after`. A key is None if there is no
    such page. The query uses the index by entity.
    """
    events = Event.objects.filter(tenant_id=user.tenant_id, root=f"user:{user.user_id}").defer("body")
    if after is not None:
        found = list(events.filter(pk__gt=after).order_by("pk")[: PAGE_ROWS + 1])
        taken = found[:PAGE_ROWS][::-1]
        return taken, taken[-1].pk if taken else after + 1, taken[0].pk if len(found) > PAGE_ROWS else None
    rows = events if before is None else events.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: PAGE_ROWS + 1])
    taken = found[:PAGE_ROWS]
    newer = None if before is None else taken[0].pk if taken else before - 1
    return taken, taken[-1].pk if len(found) > PAGE_ROWS else None, newer


def show_user_pages(site: admin.AdminSite) -> None:
    """Add the timeline and the button "Provision now" to the page of a user."""
    page = site.get_model_admin(User)
    if isinstance(page, RowPagesAdmin):
        UserPages(site, page).add()
