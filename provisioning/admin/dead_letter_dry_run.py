"""The dry run of a dead letter: the request that a redelivery would send, and the current state on the server."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.utils import quote, unquote
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

from foundation.differences import value_text
from identity.admin.refusals import as_text, refusals
from provisioning.admin.audit import note_act
from provisioning.admin.dead_letter_actions import is_unsettled
from provisioning.admin.dead_letter_page import DeadLetterPage
from provisioning.admin.outcomes.exchanges import exchange_blocks, laid_out
from provisioning.admin.rights import Right, may
from provisioning.dead_letters.redelivery_preview import preview
from provisioning.models import DeadLetter
from provisioning.runs.current_profile import can_be_rebuilt

_RIGHTS = (Right.REDELIVER, Right.VIEW_BODIES)


class DryRunPage(DeadLetterPage):
    """Asks for a confirmation, because a dry run sends requests. Then it shows the request and the current state."""

    def urls(self) -> list[URLPattern]:
        return [self.route("<path:object_id>/dry-run/", self.dry_run, "dry_run", *_RIGHTS)]

    def buttons(self, request: HttpRequest, row: DeadLetter) -> list[dict[str, Any]]:
        if not (is_unsettled(row) and may(request, *_RIGHTS)):
            return []
        return [{"label": "Dry run", "url": self.address("dry_run", quote(row.pk)), "is_dangerous": False}]

    def dry_run(self, request: HttpRequest, object_id: str) -> HttpResponse:
        letter: Any = self.owner.get_object(request, unquote(object_id))
        context: dict[str, Any] = {"original": letter, "can_be_rebuilt": can_be_rebuilt(letter.event_type)}
        if request.method == "POST":
            is_current = request.POST.get("profile") == "current"
            note_act(request, "Dry run", ids=[letter.pk], about=str(letter), profile="current" if is_current else "exact")
            try:
                shown = preview(letter, current_profile=is_current)
            except refusals() as refusal:
                context["refusal"] = as_text(refusal)
            else:
                context |= {
                    "shown": shown,
                    "is_current": is_current,
                    "changes": [{**change, **{side: value_text(change[side]) for side in ("before", "after")}} for change in shown.changes],
                    "sent": "" if shown.sent is None else laid_out(shown.sent),
                    "before": "" if shown.before is None else laid_out(shown.before),
                    "exchanges": exchange_blocks(shown.exchanges) if shown.exchanges else "",
                }
        return self.page(request, "admin/dead_letter_dry_run.html", "Dry run", **context)
