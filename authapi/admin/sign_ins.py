"""The sign-in log in the admin: searches use an index, and each page continues after the last row of the previous page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import ChangeList
from django.db import models
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from authapi.logs.browsing import LogPage, Place, Question, browse, read_place
from authapi.logs.sign_in_types import IN_WORDS, in_words
from authapi.models import Client, RefusedMessage, SignIn
from foundation.admin.badges import badge
from foundation.admin.moment_fields import Moment
from identity.admin.people.labels import NamesUsers, label_of
from identity.admin.scope import tenant_in_scope
from identity.admin.tenant_scope import ReadOnlyAdmin

_OUTCOMES = {"good": True, "bad": False}


class LogSearch(forms.Form):
    """The search of the sign-in log. All fields are optional. Times are UTC."""

    type = forms.ChoiceField(required=False, choices=[("", "Everything"), *IN_WORDS.items()], label="What happened")
    outcome = forms.ChoiceField(required=False, choices=[("", "All"), ("good", "Succeeded"), ("bad", "Failed")])
    user = forms.CharField(
        required=False, max_length=300, help_text="The id of a user, or the email address or name that was entered at the login."
    )
    client = forms.CharField(required=False, max_length=64, label="Client id")
    connection = forms.CharField(required=False, max_length=128, help_text="The name of a connection.")
    ip = forms.GenericIPAddressField(required=False, label="IP address")
    since = forms.DateTimeField(required=False, widget=Moment, label="From time")
    until = forms.DateTimeField(required=False, widget=Moment, label="To time")

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("since") and values.get("until") and values["since"] > values["until"]:
            self.add_error("until", "The end is before the start. Enter a later time.")
        return values

    @property
    def is_used(self) -> bool:
        return any(value not in ("", None) for value in self.cleaned_data.values())

    def question(self, tenant_id: str | None) -> Question:
        """Return the search as a query on the log lines of one tenant or of all tenants."""
        values = self.cleaned_data
        return Question(
            tenant_id=tenant_id,
            type=values["type"],
            is_success=_OUTCOMES.get(values["outcome"]),
            user=values["user"],
            client_id=values["client"],
            connection=values["connection"],
            ip=values["ip"],
            since=_utc(values["since"]),
            until=_utc(values["until"]),
        )


class LogChangeList(ChangeList):
    """Django's list page, with the rows and the search of the log. A page begins after the row with a given key, so no query uses an offset
    or counts all rows."""

    search: LogSearch
    page: LogPage

    def get_queryset(self, request: HttpRequest, *_arguments: Any, **_named: Any) -> Any:
        self.search = LogSearch(request.GET, label_suffix="")
        is_valid = self.search.is_valid()
        self.page = browse(self.search.question(tenant_in_scope(request)), _place_of(request)) if is_valid else LogPage([])
        self.filter_specs, self.has_filters, self.clear_all_filters_qs = [], False, "?"
        self.has_active_filters = not is_valid or self.search.is_used
        return self.root_queryset.none()

    def get_results(self, request: HttpRequest) -> None:
        self.result_list = self.page.rows
        self.result_count = self.full_result_count = len(self.page.rows)
        self.show_full_result_count = self.show_admin_actions = self.can_show_all = self.multi_page = False
        self.paginator = self.model_admin.get_paginator(request, self.root_queryset.none(), self.list_per_page)

    def address_of(self, **place: str) -> str:
        """Return the URL of the page that begins after the row with this key and has the same search; empty for an empty key."""
        if "" in place.values():
            return ""
        asked = {field: value for field, value in self.search.data.items() if field in self.search.fields and value}
        return f"?{urlencode({**asked, **place})}"


class SignInAdmin(NamesUsers, ReadOnlyAdmin[SignIn]):
    user_column = "user_id"
    list_display = ("when", "what", "who", "why", "client_name", "connection", "ip", "tenant")
    list_display_links = ("when",)
    list_select_related = ("tenant",)
    sortable_by = ()
    change_list_template = "admin/sign_in_log.html"
    empty_text = "No entries yet. Logins, logouts, sign-ups and password changes appear here at once."
    readonly_fields = ("what", "who", "client_page", "message")
    fields = (
        "created_at", "what", "type", "description", "user_name", "who", "client_page", "connection", "ip", "user_agent", "details",
        "message", "id", "tenant",
    )  # fmt: skip

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LogChangeList

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        changelist = super().get_changelist_instance(request)
        changelist.title = "Sign-in log"
        return changelist

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        response = super().changelist_view(request, extra_context)
        listed = getattr(response, "context_data", None)
        if listed and "cl" in listed:
            changes: LogChangeList = listed["cl"]
            listed["older_url"] = changes.address_of(before=changes.page.older)
            listed["newer_url"] = changes.address_of(after=changes.page.newer)
            listed["newest_url"] = changes.address_of() if changes.page.newer else ""
        return response

    def badge_of(self, row: SignIn) -> str:
        return self.what(row)

    @admin.display(description="When (UTC)")
    def when(self, row: SignIn) -> str:
        return f"{row.created_at:%Y-%m-%d %H:%M:%S}"

    @admin.display(description="Reason")
    def why(self, row: SignIn) -> str:
        return row.description or "-"

    @admin.display(description="What")
    def what(self, row: SignIn) -> str:
        return badge(in_words(row.type), "good" if row.is_success else "bad")

    @admin.display(description="User")
    def who(self, row: SignIn) -> str:
        """Return the name of the user, with a link to all log lines of the user. For an unknown user, return the name that was entered."""
        named = row.user_id or row.user_name
        if not named:
            return "-"
        user = self.user_of(row)
        text = label_of(user) if user is not None else row.user_name or row.user_id
        return format_html('<a href="{}?{}">{}</a>', self._list(), urlencode({"user": named}), text)

    @admin.display(description="Client")
    def client_page(self, row: SignIn) -> str:
        found = Client.objects.of(row.tenant_id).filter(client_id=row.client_id).values_list("pk", flat=True).first()
        if found is None:
            return row.client_name or "-"
        return format_html(
            '<a href="{}">{}</a>', reverse(f"{self.admin_site.name}:authapi_client_change", args=(quote(found),)), row.client_name
        )

    @admin.display(description="Message of the provider")
    def message(self, row: SignIn) -> str:
        """Return the message of an external provider in a collapsed element, because it contains personal data."""
        found = RefusedMessage.objects.of(row.tenant_id).filter(line_id=row.pk).values_list("text", flat=True).first()
        if found is None:
            return "-"
        return format_html(
            '<details><summary>Show the decoded message, without its signatures</summary><pre class="json" tabindex="0">{}</pre></details>',
            found,
        )

    def _list(self) -> str:
        return reverse(f"{self.admin_site.name}:authapi_signin_changelist")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[SignIn]:
        return super().get_queryset(request).select_related("tenant")


def _place_of(request: HttpRequest) -> Place | None:
    for name in ("before", "after"):
        place = read_place(request.GET.get(name, ""), is_newer=name == "after")
        if place is not None:
            return place
    return None


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)
