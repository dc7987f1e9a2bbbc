"""Admin pages of client grants."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import quote, unquote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from authapi.models import ClientGrant
from authapi.services import client_grants
from authapi.services.grant_terms import IMPERSONATION
from foundation.admin.badges import badge
from foundation.admin.field_labels import SentenceChoicesFilter
from foundation.admin.line_fields import LinesField
from foundation.admin.list_filters import worded
from identity.admin.service_admin import ServiceAdmin
from identity.admin.service_form import ServiceForm

# The pages of clients and of APIs open the form of a grant, with the key of the client or API in a query parameter. This table has the name
# of the parameter for each of the two models. The form field that the parameter fills in has the same name.
_PARAMETERS = {"client": "client", "apiresource": "api_resource"}
_SUBJECTS_IN_WORDS = {"client": "The application itself", "user": "Users of the application"}
_USES = (
    ("", "Not set: the same as denied"),
    ("deny", "Denied: requests that name an organization are refused"),
    ("allow", "Allowed: requests may name an organization"),
    ("require", "Required: requests must name an organization"),
)
_EXCHANGES = (
    ("", "Delegation: the new token names the client as the actor (act)"),
    (IMPERSONATION, "Impersonation: the new token does not name the client"),
)
_GRANT_SETTINGS = ("authorization_details_types", "organization_usage", "allow_any_organization", "token_exchange")


class ClientGrantForm(ServiceForm):
    subject_type = forms.ChoiceField(choices=list(_SUBJECTS_IN_WORDS.items()), initial="client", label="Tokens for")
    scopes = LinesField(rows=6, help_text="Scopes of the API that the client may request, one per line.")
    allows_all_scopes = forms.BooleanField(
        required=False, label="All scopes", help_text="All scopes of the API, including scopes that are added later."
    )
    authorization_details_types = LinesField(
        label="Types of authorization details",
        help_text="Types of the API, one per line, that the client can request in “authorization_details”. Empty: none. A grant for "
        "users limits the types only if the API requires a client grant for users.",
    )
    organization_usage = forms.ChoiceField(
        required=False,
        choices=_USES,
        label="Tokens for organizations",
        help_text="Defines whether the application can request tokens for an organization. Applies only to tokens for the application "
        "itself.",
    )
    allow_any_organization = forms.BooleanField(
        required=False,
        label="Valid in all organizations",
        help_text="If this is off, the grant is valid only in the organizations to which you add it through the management interface.",
    )
    token_exchange = forms.ChoiceField(
        required=False,
        choices=_EXCHANGES,
        label="Tokens from an exchange",
        help_text="Applies if the client exchanges a token of a user for a token of this API.",
    )

    class Meta:
        model = ClientGrant
        fields = ("client", "api_resource")

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        if not self.instance._state.adding:
            settings = self.instance.settings
            own = {name: getattr(self.instance, name) for name in ("subject_type", "scopes", "allows_all_scopes")}
            own |= {name: settings.get(name) for name in _GRANT_SETTINGS}
            self.initial = {**self.initial, **own}

    def columns(self) -> dict[str, Any]:
        """Return the new values of the columns whose fields were changed in the form."""
        values, changed = self.cleaned_data, set(self.changed_data)
        found = {name: values[name] for name in ("scopes", "allows_all_scopes") if name in changed}
        settings = {name: values[name] or None for name in _GRANT_SETTINGS if name in changed}
        return found | ({"settings": settings} if settings else {})


class ClientGrantAdmin(ServiceAdmin[ClientGrant]):
    titled = "Grant of {row.client} for {row.api_resource}"
    form = ClientGrantForm
    grows = False
    list_display = ("id", "client", "api_resource", "tokens_for", "scope_list", "updated_at", "tenant")
    list_select_related = ("client", "api_resource", "tenant")
    list_filter = (
        ("subject_type", worded(SentenceChoicesFilter, {value.capitalize(): words for value, words in _SUBJECTS_IN_WORDS.items()})),
    )
    sortable_by = ("updated_at",)
    search_fields = ("=id", "=client__client_id", "client__name")
    autocomplete_fields = ("client",)
    empty_text = "No client grants yet. An application needs a grant for each API that it calls without a user."
    deletion_effect = "The client can no longer get tokens for this API, and all its access tokens for APIs are revoked."
    change_form_template = "admin/sign_in_form.html"

    def get_fieldsets(self, request: HttpRequest, obj: ClientGrant | None = None) -> Any:
        first = ["client", "api_resource", "subject_type", "scopes", "allows_all_scopes", "authorization_details_types"]
        inside = ("Organizations", {"fields": ["organization_usage", "allow_any_organization"], "classes": ["collapse"]})
        exchange = ("Token exchange", {"fields": ["token_exchange"], "classes": ["collapse"]})
        if obj is None:
            return [(None, {"fields": first}), inside, exchange]
        shown = ["tokens_for" if name == "subject_type" else name for name in first]
        return [(None, {"fields": ["id", "tenant", *shown, "created_at", "updated_at"]}), inside, exchange]

    def get_readonly_fields(self, request: HttpRequest, obj: ClientGrant | None = None) -> Any:
        return () if obj is None else ("id", "tenant", "client", "api_resource", "subject_type", "tokens_for", "created_at", "updated_at")

    def badge_of(self, row: ClientGrant) -> str:
        """Return a badge that tells whether a client gets, with this grant, tokens for itself or tokens for its users."""
        return badge("Tokens for the application" if row.subject_type == ClientGrant.SubjectType.CLIENT else "Tokens for its users")

    @admin.display(description="Tokens for")
    def tokens_for(self, row: ClientGrant) -> str:
        return _SUBJECTS_IN_WORDS.get(row.subject_type, row.subject_type)

    @admin.display(description="Scopes")
    def scope_list(self, row: ClientGrant) -> str:
        if row.allows_all_scopes:
            return "All"
        return ", ".join(row.scopes[:4]) + (f" and {len(row.scopes) - 4} more" if len(row.scopes) > 4 else "") or "-"

    def response_post_save_add(self, request: HttpRequest, obj: ClientGrant) -> HttpResponseRedirect:
        return self._back(request, obj) or super().response_post_save_add(request, obj)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Delete the grant. Return to the page from which the form was opened."""
        row = self.get_object(request, unquote(object_id))
        answer = super().delete_view(request, object_id, extra_context)
        is_deleted = isinstance(answer, HttpResponseRedirect) and not self.get_queryset(request).filter(pk=row.pk).exists()
        return (self._back(request, row) if is_deleted else None) or answer

    def _back(self, request: HttpRequest, row: ClientGrant) -> HttpResponseRedirect | None:
        """Return a redirect to the page of the client or API that opened this form; None if another page opened it."""
        for name, key, tab in (("client", row.client_id, "apis"), ("apiresource", row.api_resource_id, "clients")):
            if request.GET.get(_PARAMETERS[name]) == str(key):
                page = reverse(f"{self.admin_site.name}:authapi_{name}_change", args=(quote(key),))
                return HttpResponseRedirect(f"{page}?tab={tab}")
        return None

    def create(self, request: HttpRequest, form: Any) -> ClientGrant:
        values = form.cleaned_data
        return client_grants.create_client_grant(
            tenant_id=self.tenant_for_new(request),
            client_id=values["client"].client_id,
            api_resource=values["api_resource"],
            subject_type=values["subject_type"],
            **form.columns(),
        )

    def change(self, request: HttpRequest, row: ClientGrant, form: Any) -> None:
        columns = form.columns()
        if columns:
            client_grants.change_client_grant(tenant_id=row.tenant_id, grant_id=row.pk, changes=columns)
