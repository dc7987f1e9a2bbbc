"""Admin pages of token exchange profiles. A profile defines the issuer whose tokens can be exchanged for a login."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from authapi.models import TokenExchangeProfile
from authapi.services.token_exchange import create_profile, update_profile
from foundation.admin.badges import badge
from foundation.admin.json_fields import ShapedJSONField
from identity.admin.service_admin import ServiceAdmin
from identity.admin.service_form import ServiceForm

_WIDE = forms.TextInput(attrs={"size": 60})
_CLAIMS = (
    (TokenExchangeProfile.UserClaim.SUBJECT, "sub: the id of the user at the connection"),
    (TokenExchangeProfile.UserClaim.EMAIL, "email: an email address that both the issuer and this service have verified"),
)
_ABOUT = ("name", "subject_token_type")
_TOKENS = ("issuer", "audience", "jwks_uri", "public_keys", "is_single_use")
_USERS = ("connection", "user_claim", "creates_users")


class ProfileForm(ServiceForm):
    name = forms.CharField(min_length=3, max_length=50, help_text="A name by which administrators recognize the profile.")
    subject_token_type = forms.CharField(
        min_length=8,
        max_length=100,
        label="Type of the tokens",
        widget=_WIDE,
        help_text="A URI that you choose, such as urn:acme:portal-token. Applications send it with each token, as “subject_token_type”.",
    )
    issuer = forms.CharField(
        max_length=2048, widget=_WIDE, help_text="The issuer of the tokens: the claim “iss” of each token must be exactly this value."
    )
    audience = forms.CharField(
        max_length=600,
        widget=_WIDE,
        help_text="The claim “aud” of each token must contain this value. Reserve the value for exchanges: if tokens for another "
        "service contain the same value, those tokens log users in, too.",
    )
    jwks_uri = forms.CharField(
        required=False,
        max_length=2048,
        label="Address of the key set",
        widget=_WIDE,
        help_text="The address at which the issuer publishes its public keys (JWKS).",
    )
    public_keys = ShapedJSONField(
        shape=list, label="Public keys", help_text="Instead of an address: the public keys of the issuer as a JSON list of JWKs."
    )
    user_claim = forms.ChoiceField(choices=_CLAIMS, label="Claim that identifies the user")
    creates_users = forms.BooleanField(
        required=False,
        label="Create users",
        help_text="If a token is about an unknown user, the service creates the user. This works only with the claim “sub”, and not at "
        "database connections.",
    )
    is_single_use = forms.BooleanField(
        required=False, initial=True, label="Accept each token once", help_text="A stolen token that was already exchanged is then useless."
    )

    class Meta:
        model = TokenExchangeProfile
        fields = ("connection",)

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        if not self.instance._state.adding:
            own = {name: getattr(self.instance, name) for name in (*_ABOUT, *_TOKENS, "user_claim", "creates_users")}
            self.initial = {**self.initial, **own, **(named.get("initial") or {})}

    def columns(self) -> dict[str, Any]:
        """Return the columns to save: all columns of a new row, otherwise the changed columns."""
        values, is_new = self.cleaned_data, self.instance._state.adding
        names = (*_ABOUT, *_TOKENS, *_USERS)
        found = {name: values[name] for name in names if name in values and (is_new or name in self.changed_data)}
        connection = found.pop("connection", None)
        return found | ({"connection_id": connection.pk} if connection is not None else {})


class TokenExchangeProfileAdmin(ServiceAdmin[TokenExchangeProfile]):
    form = ProfileForm
    grows = False
    list_display = ("name", "subject_token_type", "issuer", "connection", "accounts", "tenant")
    list_select_related = ("connection", "tenant")
    sortable_by = ("name",)
    search_fields = ("name", "=subject_token_type", "=id")
    empty_text = "No token exchange profiles yet. Add one to log users in with tokens of another issuer."
    deletion_effect = "Tokens of this type no longer log users in. Existing sessions and tokens stay valid."
    change_form_template = "admin/sign_in_form.html"

    def get_fieldsets(self, request: HttpRequest, obj: TokenExchangeProfile | None = None) -> Any:
        own = [] if obj is None else ["id", "tenant"]
        kept = [] if obj is None else [("Set by the service", {"fields": ["created_at", "updated_at"], "classes": ["collapse"]})]
        return [
            (None, {"fields": [*own, *_ABOUT]}),
            ("Accepted tokens", {"fields": _TOKENS}),
            ("Users", {"fields": _USERS}),
            *kept,
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: TokenExchangeProfile | None = None) -> Any:
        return () if obj is None else ("id", "tenant", "created_at", "updated_at")

    @admin.display(description="Unknown users")
    def accounts(self, row: TokenExchangeProfile) -> str:
        return badge("Created", "warn") if row.creates_users else badge("Refused", "quiet")

    def create(self, request: HttpRequest, form: Any) -> TokenExchangeProfile:
        return create_profile(tenant_id=self.tenant_for_new(request), **form.columns())

    def change(self, request: HttpRequest, row: TokenExchangeProfile, form: Any) -> None:
        columns = form.columns()
        if columns:
            update_profile(tenant_id=row.tenant_id, profile_id=row.pk, changes=columns)
