"""Admin pages of provisioning: streams, actions, deliveries and dead letters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.http import HttpRequest

from events.models import Event, EventStream, LogEntry
from foundation.admin.panels import Panel
from identity.admin.jobs import extend_jobs
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.tenant_page import PagesSite
from identity.models import Job
from provisioning.admin.account_links import AccountLinkAdmin
from provisioning.admin.action_history import ActionVersionAdmin, TrialAdmin
from provisioning.admin.actions import ActionAdmin, ActionSecretAdmin
from provisioning.admin.dead_letters import DeadLetterAdmin
from provisioning.admin.decisions import AlertAdmin, IgnoredKindAdmin
from provisioning.admin.deletion_guards import DeletionGuardAdmin
from provisioning.admin.deliveries import AttemptAdmin, DeliveryAdmin, deliveries_of
from provisioning.admin.guided_setup import ConnectPage
from provisioning.admin.lanes import BreakerAdmin, LaneAdmin, SweeperAdmin
from provisioning.admin.outcomes.redelivery_progress import redelivery_progress
from provisioning.admin.streams import StreamAdmin
from provisioning.admin.synchronizations import JOB_ACTIONS, SynchronizationRowAdmin, report_of
from provisioning.admin.user_pages import show_user_pages
from provisioning.admin.user_tables import show_user_tables
from provisioning.models import (
    AccountLink,
    Action,
    ActionSecret,
    ActionVersion,
    Alert,
    Attempt,
    Breaker,
    DeadLetter,
    DeletionGuard,
    Delivery,
    IgnoredKind,
    Lane,
    Sweeper,
    SynchronizationRow,
    Trial,
)
from provisioning.services import row_acts  # noqa: F401  (registers bulk acts)
from provisioning.synchronization.service import TYPES


def register(site: PagesSite) -> None:
    """Register every model of this app with `site`, and add the guided setup of streams."""
    if site.is_registered(EventStream):
        site.unregister(EventStream)
    site.register(EventStream, StreamAdmin)
    site.register(Action, ActionAdmin)
    site.register(ActionSecret, ActionSecretAdmin)
    site.register(ActionVersion, ActionVersionAdmin)
    site.register(Trial, TrialAdmin)
    site.register(Delivery, DeliveryAdmin)
    site.register(Attempt, AttemptAdmin)
    _show_deliveries(site)
    site.register(DeadLetter, DeadLetterAdmin)
    site.register(IgnoredKind, IgnoredKindAdmin)
    site.register(Alert, AlertAdmin)
    site.register(AccountLink, AccountLinkAdmin)
    site.register(Lane, LaneAdmin)
    site.register(Breaker, BreakerAdmin)
    site.register(Sweeper, SweeperAdmin)
    site.register(DeletionGuard, DeletionGuardAdmin)
    site.register(SynchronizationRow, SynchronizationRowAdmin)
    site.register_page(ConnectPage)
    reports: dict[str, Callable[[HttpRequest, Job], Panel]] = {
        Job.Type.EVENT_REDELIVERY: partial(redelivery_progress, site),
        **dict.fromkeys(TYPES, partial(report_of, site)),
    }
    extend_jobs(site, reports, JOB_ACTIONS, primary=("confirm-deletions", "resume", "write"))
    show_user_pages(site)
    show_user_tables(site)


def _show_deliveries(site: PagesSite) -> None:
    """Show the deliveries of an event on the page of its log entry, or on the page of the event if the event is not in the log."""
    entries, events = site.get_model_admin(LogEntry), site.get_model_admin(Event)
    if isinstance(entries, ObjectActionsAdmin):
        entries.panels.append(lambda request, entry: deliveries_of(site, request, entry.event))
    if isinstance(events, ObjectActionsAdmin):
        events.panels.append(lambda request, event: deliveries_of(site, request, event))
