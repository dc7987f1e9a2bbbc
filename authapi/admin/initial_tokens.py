"""Admin pages of initial access tokens, with which applications register themselves. A token is shown once."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from authapi.models import InitialAccessToken
from authapi.protocols.oauth.registration.information import PATH
from authapi.services import initial_tokens
from foundation.admin.badges import badge
from identity.admin.object_actions import ObjectAction
from identity.admin.service_admin import ServiceAdmin
from identity.admin.service_form import ServiceForm
from identity.hosts import address_beside


class InitialAccessTokenForm(ServiceForm):
    days = forms.IntegerField(
        min_value=1,
        max_value=initial_tokens.MOST_DAYS,
        initial=7,
        label="Days until the token expires",
        help_text=f"At most {initial_tokens.MOST_DAYS}. Applications that registered with the token remain after the token expires.",
    )

    class Meta:
        model = InitialAccessToken
        fields = ("name", "most_uses")


def _revoke(_request: HttpRequest, row: InitialAccessToken, _values: dict[str, Any]) -> str:
    initial_tokens.revoke_initial_token(tenant_id=row.tenant_id, token_id=row.pk)
    return f"Initial access token {row} revoked."


class InitialAccessTokenAdmin(ServiceAdmin[InitialAccessToken]):
    form = InitialAccessTokenForm
    grows = False
    list_display = ("name", "state", "use_count", "most_uses", "last_used_at", "expires_at", "tenant")
    list_select_related = ("tenant",)
    search_fields = ("name",)
    sortable_by = ()
    ordering = ("-pk",)
    proof_for = frozenset({"add"})
    empty_text = (
        "No initial access tokens. In Sign-in settings, under Protocol, turn on “Let applications register themselves”. Then add a token."
    )
    deletion_effect = "Applications can no longer register with the token. Applications that have registered with it remain."
    object_actions = (
        ObjectAction(
            "revoke",
            "Revoke token",
            lambda _request, row: f"Applications can no longer register with {row}. Applications that have registered with it remain.",
            _revoke,
            is_offered=lambda row: row.revoked_at is None,
            is_dangerous=True,
        ),
    )

    def get_fieldsets(self, request: HttpRequest, obj: InitialAccessToken | None = None) -> Any:
        if obj is None:
            return [(None, {"fields": ["name", "days", "most_uses"]})]
        shown = ["name", "tenant", "state", "use_count", "most_uses", "last_used_at", "expires_at", "revoked_at", "created_at"]
        return [(None, {"fields": shown})]

    def has_change_permission(self, request: HttpRequest, obj: InitialAccessToken | None = None) -> bool:
        return False

    @admin.display(description="State")
    def state(self, row: InitialAccessToken) -> str:
        if row.is_usable:
            return badge("Valid", "good")
        return badge("Revoked", "bad") if row.revoked_at is not None else badge("Expired or used up", "quiet")

    def create(self, request: HttpRequest, form: Any) -> InitialAccessToken:
        values = form.cleaned_data
        row, token = initial_tokens.create_initial_token(
            tenant_id=self.tenant_for_new(request), name=values["name"], days=values["days"], most_uses=values["most_uses"]
        )
        # The token is kept for the response to this request only: a Django message would be stored until the next page.
        request._new_token = token  # type: ignore[attr-defined]
        return row

    def response_add(self, request: HttpRequest, obj: InitialAccessToken, post_url_continue: str | None = None) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": f"Initial access token {obj}",
            "subtitle": None,
            "token": getattr(request, "_new_token", ""),
            "address": f"{address_beside(request.get_host(), obj.tenant_id)}{PATH}",
            "opts": self.opts,
            "media": self.media,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/initial_token.html", context)
