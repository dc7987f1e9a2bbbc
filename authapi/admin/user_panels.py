"""Panels below the form of a user: sessions, refresh tokens, blocks, and the last lines of the sign-in log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from authapi.accounts.access import revoke_access
from authapi.accounts.user_blocks import blocks_of_user, lift_blocks_of_user
from authapi.admin.factors.panels import FACTOR_BUTTONS, FactorPanels
from authapi.logs.browsing import Question, browse
from authapi.logs.sign_in_types import in_words
from authapi.models import RefreshToken, Session
from foundation.admin.panels import Cell, Panel
from foundation.admin.returning import returning
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.people.labels import label_of
from identity.admin.users import SECURITY
from identity.models import User

_SHOWN = 10
_ROWS = tuple[Cell, ...]


class LogoutForm(forms.Form):
    keeps_refresh_tokens = forms.BooleanField(
        required=False,
        label="Keep refresh tokens",
        help_text="Applications with a refresh token keep their access. If this is off, the refresh tokens are revoked.",
    )


def _log_out(_request: HttpRequest, row: User, values: dict[str, Any]) -> str:
    revoke_access(user=row, keeps_refresh_tokens=values["keeps_refresh_tokens"])
    return f"{label_of(row)} is logged out everywhere."


def _lift(_request: HttpRequest, row: User, _values: dict[str, Any]) -> str:
    lift_blocks_of_user(row)
    return f"{label_of(row)} can try to log in again."


def _is_logged_in(row: User) -> bool:
    own = {"user": row.pk}
    return (
        Session.objects.of(row.tenant_id).filter(**own).exists()
        or RefreshToken.objects.of(row.tenant_id).filter(**own, revoked=None).exists()
    )


_BUTTONS = (
    ObjectAction(
        "log-out",
        "Log out everywhere",
        lambda _request, row: (
            f"All sessions of {label_of(row)} end, in all browsers. Applications with a back-channel logout address are notified."
        ),
        _log_out,
        is_offered=_is_logged_in,
        form_class=LogoutForm,
        is_dangerous=True,
        permission="authapi.change_session",
    ),
    ObjectAction(
        "lift-blocks",
        "Lift blocks",
        lambda _request, row: f"All failed logins of {label_of(row)} from all IP addresses are deleted. The user can try to log in again.",
        _lift,
        is_offered=lambda row: bool(blocks_of_user(row)),
        permission="authapi.change_loginfailures",
    ),
)


class UserPanels:
    """The user panels of one admin site. An account sees only the panels whose rows it may see."""

    def __init__(self, site: admin.AdminSite) -> None:
        self._site = site

    def add_to(self, page: ObjectActionsAdmin[User]) -> None:
        factors = FactorPanels(self._site)
        page.tabs[SECURITY] += [self.sessions, self.refresh_tokens, factors.factors, factors.remembered_browsers, self.blocks, self.log]
        page.object_actions = (*page.object_actions, *_BUTTONS, *FACTOR_BUTTONS)

    def sessions(self, request: HttpRequest, user: User) -> Panel | None:
        if not request.user.has_perm("authapi.view_session"):
            return None
        found = Session.objects.of(user.tenant_id).filter(user=user).order_by("-created_at", "pk")[:_SHOWN]
        rows = [
            (
                Cell(row.pk, self._page("session", row.pk)),
                Cell(" ".join(part for part in (row.last_ip, row.last_user_agent[:60]) if part)),
                Cell(_moment(row.last_interacted_at)),
                Cell(_moment(row.expires_at)),
                self._button(request, "session", row.pk, "end", "End"),
            )
            for row in found
        ]
        columns = ("Session", "Device", "Last used (UTC)", "Ends (UTC)", "")
        return self._panel("Sessions", columns, rows, "No active sessions.", "session", user.user_id)

    def refresh_tokens(self, request: HttpRequest, user: User) -> Panel | None:
        if not request.user.has_perm("authapi.view_refreshtoken"):
            return None
        found = RefreshToken.objects.of(user.tenant_id).filter(user=user, revoked=None).select_related("application").order_by("-created")
        rows = [
            (
                Cell(row.wire_id, self._page("refreshtoken", row.pk)),
                Cell(str(row.application)),
                Cell(row.audience or "Profile of the user"),
                Cell(_moment(row.last_exchanged_at or row.created)),
            )
            for row in found[:_SHOWN]
        ]
        empty = "No refresh tokens."
        return Panel("Refresh tokens", ("Token", "Client", "API", "Last used (UTC)"), rows, empty)

    def blocks(self, request: HttpRequest, user: User) -> Panel | None:
        if not request.user.has_perm("authapi.view_loginfailures"):
            return None
        rows = [
            (
                Cell(row.identifier, self._page("loginfailures", row.pk)),
                Cell(row.ip or "All addresses"),
                Cell(_moment(row.last_failed_at)),
                self._button(request, "loginfailures", row.pk, "lift", "Lift"),
            )
            for row in blocks_of_user(user)
        ]
        return Panel("Blocks", ("Entered name", "IP address", "Last failed login (UTC)", ""), rows, "No block after failed logins.")

    def log(self, request: HttpRequest, user: User) -> Panel | None:
        if not request.user.has_perm("authapi.view_signin"):
            return None
        found = browse(Question(tenant_id=user.tenant_id, user=user.user_id)).rows[:_SHOWN]
        rows = [
            (
                Cell(_moment(row.created_at), self._page("signin", row.pk)),
                Cell(in_words(row.type)),
                Cell(row.description),
                Cell(row.client_name),
                Cell(row.ip or ""),
            )
            for row in found
        ]
        more = f"{reverse(f'{self._site.name}:authapi_signin_changelist')}?{urlencode({'user': user.user_id})}"
        columns = ("When (UTC)", "What", "Reason", "Client", "IP address")
        return Panel("Newest entries of the sign-in log", columns, rows, "No entries yet.", more, "Show all in the sign-in log")

    def _panel(self, title: str, columns: tuple[str, ...], rows: Iterable[_ROWS], empty: str, model: str, searched: str) -> Panel:
        more = f"{reverse(f'{self._site.name}:authapi_{model}_changelist')}?{urlencode({'q': searched})}"
        return Panel(title, columns, list(rows), empty, more, "Show all")

    def _button(self, request: HttpRequest, model: str, key: int | str, action: str, label: str) -> Cell:
        """Return a link to an action on one row; an empty cell for accounts without the permission."""
        if not request.user.has_perm(f"authapi.change_{model}"):
            return Cell("")
        return Cell(label, returning(request, reverse(f"{self._site.name}:authapi_{model}_action", args=(quote(key), action))))

    def _page(self, model: str, key: int | str) -> str:
        return reverse(f"{self._site.name}:authapi_{model}_change", args=(quote(key),))


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
