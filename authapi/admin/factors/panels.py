"""Panels of second factors, passkeys and remembered browsers below the form of a user."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse

from authapi.accounts.setup_links import create_setup_link, kinds_for
from authapi.login.remembered_browsers import browsers_of, forget_all_browsers
from foundation.admin.panels import Cell, Panel
from foundation.admin.returning import returning
from identity.admin.factors import RESET, shown_address
from identity.admin.object_actions import ObjectAction
from identity.admin.people.labels import label_of
from identity.factors.user_factors import factors_of
from identity.hosts import address_beside
from identity.models import EnrolledFactor, User


def _forget_all(_request: HttpRequest, row: User, _values: dict[str, Any]) -> str:
    count = forget_all_browsers(row)
    return f"{label_of(row)} must use the second factor again in {count} browser{'' if count == 1 else 's'}."


def _explain_link(_request: HttpRequest, row: User) -> str:
    proof = " Before that, the user must confirm a second factor that the account already has." if factors_of(row) else ""
    return (
        f"The service emails a link to {row.email}. With the link, {label_of(row)} can set up a second factor.{proof} The link works "
        "once and does not log the user in. Do not send the link if another person can read this mailbox."
    )


def _send_link(request: HttpRequest, row: User, _values: dict[str, Any]) -> str:
    create_setup_link(user=row, adds=True, is_mailed=True, address=address_beside(request.get_host(), row.tenant_id))
    return f"Setup link sent to {row.email}."


FACTOR_BUTTONS = (
    ObjectAction(
        "send-setup-link",
        "Send setup link",
        _explain_link,
        _send_link,
        is_offered=lambda row: bool(row.email) and not row.blocked and bool(kinds_for(row)),
        permission="identity.change_enrolledfactor",
        needs_proof=True,
    ),
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
    """The factor panels of one admin site. An account sees only the panels whose rows it may see."""

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
        return Panel("Two-step verification and passkeys", columns, rows, "No second factors or passkeys yet.")

    def remembered_browsers(self, request: HttpRequest, user: User) -> Panel | None:
        if not request.user.has_perm("authapi.view_rememberedbrowser"):
            return None
        rows = [
            (
                Cell(" ".join(part for part in (row.ip, row.user_agent[:60]) if part) or "Unknown"),
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
    return f"{moment:%Y-%m-%d %H:%M}" if moment is not None else "Never"
