"""Panels of second factors, passkeys and remembered browsers below the form of a user."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse

from authapi.login.remembered_browsers import browsers_of, forget_all_browsers
from foundation.admin.panels import Cell, Panel
from foundation.admin.returning import returning
from identity.admin.factors import RESET, shown_address
from identity.admin.object_actions import ObjectAction
from identity.admin.people.labels import label_of
from identity.models import EnrolledFactor, User


def _forget_all(_request: HttpRequest, row: User, _values: dict[str, Any]) -> str:
    count = forget_all_browsers(row)
    return f"{label_of(row)} must use the second factor in {count} browsers again."


FACTOR_BUTTONS = (
    RESET,
    ObjectAction(
        "forget-browsers",
        "Forget remembered browsers",
        lambda _request, row: f"{label_of(row)} must use the second factor at the next login in every browser.",
        _forget_all,
        is_offered=lambda row: bool(browsers_of(row)),
        is_dangerous=True,
        permission="authapi.change_rememberedbrowser",
    ),
)


class FactorPanels:
    """The panels of one site. A panel is left out for accounts that may not see its rows."""

    def __init__(self, site: admin.AdminSite) -> None:
        self._site = site

    def factors(self, request: HttpRequest, user: User) -> Panel | None:
        if not request.user.has_perm("identity.view_enrolledfactor"):
            return None
        found = EnrolledFactor.objects.of(user.tenant_id).filter(user=user, is_confirmed=True).order_by("pk")
        rows = [
            (
                Cell(row.get_kind_display(), self._page("identity_enrolledfactor_change", row.pk)),
                Cell(row.name),
                Cell(shown_address(row)),
                Cell(_moment(row.created_at)),
                Cell(_moment(row.last_used_at)),
                self._button(request, "identity", "enrolledfactor", row.pk, "remove", "Remove"),
            )
            for row in found
        ]
        columns = ("Kind", "Name", "Address", "Added (UTC)", "Last used (UTC)", "")
        return Panel("Two-step verification and passkeys", columns, rows, "No second factors or passkeys.")

    def remembered_browsers(self, request: HttpRequest, user: User) -> Panel | None:
        if not request.user.has_perm("authapi.view_rememberedbrowser"):
            return None
        rows = [
            (
                Cell(" ".join(part for part in (row.ip, row.user_agent[:60]) if part) or "unknown"),
                Cell(_moment(row.last_used_at)),
                Cell(_moment(row.expires_at)),
                self._button(request, "authapi", "rememberedbrowser", row.pk, "forget", "Forget"),
            )
            for row in browsers_of(user)
        ]
        columns = ("Browser", "Last used (UTC)", "Until (UTC)", "")
        return Panel("Remembered browsers", columns, rows, "No remembered browsers.")

    def _button(self, request: HttpRequest, app: str, model: str, key: int, action: str, label: str) -> Cell:
        if not request.user.has_perm(f"{app}.change_{model}"):
            return Cell("")
        return Cell(label, returning(request, self._page(f"{app}_{model}_action", key, action)))

    def _page(self, name: str, key: int, *further: str) -> str:
        return reverse(f"{self._site.name}:{name}", args=(quote(key), *further))


def _moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment is not None else "never"
