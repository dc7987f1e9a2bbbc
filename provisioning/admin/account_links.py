"""Admin pages of account links, and the confirmation of links that are proven by a user name alone."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest

from foundation.admin.badges import badge
from identity.admin.bulk_actions import bulk_action
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.people.labels import NamesUsers, label_of
from identity.admin.scope import staff_of
from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.models import AccountLink, Action
from provisioning.services import account_links
from provisioning.services.row_acts import CONFIRM_LINKS

_CONFIRM = (
    "After the confirmation, events of the user can change and delete the account. First check that each account belongs to its user, "
    "for example with a comparison of the stream: a suspect link is based on the userName alone, which can belong to another user."
)


def _confirm(_request: HttpRequest, row: AccountLink, _values: dict[str, Any]) -> str:
    account_links.confirm_links(tenant_id=row.tenant_id, link_ids=[row.pk])
    return f"The account {row.remote_id} is linked to {row.user_id}."


def _forget(_request: HttpRequest, row: AccountLink, _values: dict[str, Any]) -> str:
    account_links.forget_link(tenant_id=row.tenant_id, link_id=row.pk)
    return "The link was deleted. Nothing was sent to the server."


class AccountLinkAdmin(NamesUsers, ReadOnlyAdmin[AccountLink], ObjectActionsAdmin[AccountLink]):
    user_column = "user_id"
    list_display = ("about_user", "remote_id", "state", "origin", "action", "tenant_id")
    list_filter = ("is_suspect",)
    sortable_by = ()
    ordering = ("-pk",)
    search_fields = ("=user_id", "=remote_id")
    search_help_text = "A user id (database|…) or the id of an account on the server."
    actions = (bulk_action(CONFIRM_LINKS, permission="confirm", effect=_CONFIRM, is_dangerous=True),)
    fields = ("tenant_id", "action", "about_user", "remote_id", "state", "origin", "user_names", "keys", "birth", "ended", "updated_at")
    readonly_fields = ("action", "about_user", "state")
    empty_text = (
        "No links yet. The service stores a link when a delivery creates the account of a user or finds the account by its externalId."
    )
    object_actions = (
        ObjectAction(
            name="confirm",
            label="Confirm link",
            explain=lambda *_: _CONFIRM,
            run=_confirm,
            is_offered=lambda row: row.is_unconfirmed,
            is_dangerous=True,
        ),
        ObjectAction(
            name="forget",
            label="Forget link",
            explain=lambda *_: (
                "Deletes the link. The account on the server does not change. The next delivery of the user searches for the account by "
                "its externalId. If the server finds no account, the event and the settings of the action decide what happens: the "
                "event is skipped, becomes a dead letter, or creates an account."
            ),
            run=_forget,
            is_dangerous=True,
        ),
    )

    def has_confirm_permission(self, request: HttpRequest) -> bool:
        """Tell whether the staff account may confirm selected links."""
        staff = staff_of(request)
        return staff is not None and staff.has_perm("provisioning.change_accountlink")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[AccountLink]:
        """Annotate the name of the action, which is empty if the action was deleted."""
        names = Action.all_tenants.filter(pk=models.OuterRef("action_id")).values("name")[:1]
        return super().get_queryset(request).annotate(action_name=models.Subquery(names))

    def heading_of(self, row: AccountLink) -> str:
        user = self.user_of(row)
        linked = f"to the account {row.remote_id}" if row.remote_id else "without an account"
        return f"Account link of {row.user_id if user is None else label_of(user)} {linked}"

    @admin.display(description="Action")
    def action(self, row: AccountLink) -> str:
        return getattr(row, "action_name", None) or "Deleted"

    @admin.display(description="State")
    def state(self, row: AccountLink) -> str:
        """Return the state of the link as a word."""
        if row.ended is not None:
            return badge("Ended", "quiet")
        if row.is_suspect:
            return badge("Suspect", "warn")
        if row.doubt is not None:
            return badge("In doubt", "warn")
        if not row.remote_id:
            return badge("No account", "quiet")
        return badge("Missing", "warn") if row.is_missing else badge("Linked", "good")
