"""Admin pages of APIs."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from authapi.admin.applications.resource_acts import ADD_PERMISSION, acts_of
from authapi.admin.applications.resource_tabs import GRANT
from authapi.api.resource_servers import ResourceServerToChange
from authapi.details.types import problems_of
from authapi.models import ApiResource
from authapi.models.resources import MAX_TOKEN_SECONDS
from authapi.services import api_resources, resource_changes
from foundation.admin.badges import badge
from foundation.admin.body_errors import sentence_of
from foundation.admin.json_fields import ShapedJSONField
from foundation.admin.line_fields import LinesField
from identity.admin.row_pages import RowPagesAdmin
from identity.admin.service_admin import ServiceAdmin
from identity.admin.service_form import ServiceForm

_DIALECTS = (
    (ApiResource.Dialect.ACCESS_TOKEN, "JWT"),
    (ApiResource.Dialect.ACCESS_TOKEN_AUTHZ, "JWT, with permissions"),
    (ApiResource.Dialect.RFC9068_PROFILE, "JWT of RFC 9068"),
    (ApiResource.Dialect.RFC9068_PROFILE_AUTHZ, "JWT of RFC 9068, with permissions"),
)
_DIALECTS_IN_WORDS = {str(value): text for value, text in _DIALECTS}
_USER_POLICIES = (
    ("allow_all", "All applications"),
    ("require_client_grant", "Only applications with a client grant for their users"),
    ("deny_all", "No application"),
)
_CLIENT_POLICIES = (("require_client_grant", "Only applications with a client grant"), ("deny_all", "No application"))
_MECHANISMS = (
    ("", "Nothing: a stolen token can be used"),
    ("dpop", "A key: each request must contain a DPoP proof"),
    ("mtls", "A client certificate (needs a custom domain whose TLS proxy forwards the certificate)"),
)
_REQUIRED_FOR = (
    ("", "None: applications may bind their tokens"),
    ("all_clients", "All applications"),
    ("public_clients", "Public clients, which do not authenticate"),
)
_ALGORITHMS = (
    ("", "RS256, and PS256 for clients with a compliance level"),
    ("RS256", "RS256"),
    ("PS256", "PS256"),
    ("RS512", "RS512"),
    ("HS256", "HS256: the API knows the secret"),
)
_EXAMPLE_TYPES = (
    '[{"type": "payment", "title": "Payment", "sentence": "Pay {amount} {currency} to {payee}", "schema": {"type": "object", '
    '"properties": {"type": {}, "amount": {"type": "number"}, "currency": {"type": "string"}, "payee": {"type": "string"}}, '
    '"required": ["amount", "currency", "payee"], "additionalProperties": false}}]'
)
_COLUMNS = ("identifier", "name", "token_lifetime", "token_dialect")
_SWITCHES = ("enforce_policies", "allow_offline_access", "skip_consent_for_verifiable_first_party_clients")


class ScopeLines(LinesField):
    """Scopes with their purpose, one per line: `read:orders Read orders`."""

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        return "\n".join(f"{scope['value']} {scope.get('description') or ''}".strip() for scope in value or [])

    def to_python(self, value: Any) -> Any:
        if isinstance(value, list) and all(isinstance(scope, dict) for scope in value):
            return [{"value": scope["value"], "description": scope.get("description") or ""} for scope in value]
        parts = [line.partition(" ") for line in super().to_python(value)]
        return [{"value": name, "description": text.strip()} for name, _, text in parts]


class ApiResourceForm(ServiceForm):
    identifier = forms.CharField(
        max_length=600,
        widget=forms.TextInput(attrs={"size": 60}),
        help_text="The audience of tokens for the API: its address, or any other text. It cannot be changed later.",
    )
    name = forms.CharField(required=False, max_length=200, help_text="Shown to users on the consent page.")
    scopes = ScopeLines(
        rows=6,
        # The form also contains the scopes that it showed. Otherwise saving would remove a scope that was added while the form was open.
        show_hidden_initial=True,
        help_text="One per line: the scope, a space, and its purpose, such as “read:orders Read orders”. If you remove a scope, all "
        "grants, roles and users lose it.",
    )
    token_lifetime = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_TOKEN_SECONDS,
        label="Lifetime of tokens",
        help_text="Seconds. If this is empty, the default of the platform applies.",
    )
    token_lifetime_for_web = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_TOKEN_SECONDS,
        label="Lifetime of tokens in the browser",
        help_text="Seconds. Applies to tokens that an application receives in the browser (implicit and hybrid flows).",
    )
    token_dialect = forms.ChoiceField(
        choices=_DIALECTS,
        initial=ApiResource.Dialect.ACCESS_TOKEN,
        label="Format of tokens",
        help_text="In a format “with permissions”, a token for a user also contains the permissions that the user has for this API.",
    )
    signing_alg = forms.ChoiceField(
        required=False,
        choices=_ALGORITHMS,
        label="Signature of tokens",
        help_text="The algorithm that signs tokens for this API. With HS256, the API checks them with the secret below, otherwise with the "
        "published keys. With the secret, this API could create such tokens itself, so the userinfo endpoint and other APIs refuse "
        "tokens with HS256.",
    )
    signing_secret = forms.CharField(
        required=False,
        min_length=16,
        max_length=512,
        label="Secret for HS256",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Only for HS256. At least 16 characters. Never shown again. Leave empty to keep the saved secret.",
    )
    enforce_policies = forms.BooleanField(
        required=False,
        label="Role-based access control",
        help_text="Tokens for a user contain only those scopes that the user has as permissions, directly or from roles. If this is "
        "off, the permissions of the user do not limit the scopes.",
    )
    allow_offline_access = forms.BooleanField(
        required=False,
        label="Allow refresh tokens",
        help_text="Applications can request the scope offline_access, and then get new tokens without the user.",
    )
    skip_consent_for_verifiable_first_party_clients = forms.BooleanField(
        required=False,
        initial=True,
        label="Skip consent for your own applications",
        help_text="If this is off, users must consent to first-party applications, too.",
    )
    user_policy = forms.ChoiceField(choices=_USER_POLICIES, initial="allow_all", label="Applications that get tokens for users")
    client_policy = forms.ChoiceField(
        choices=_CLIENT_POLICIES, initial="require_client_grant", label="Applications that get tokens without a user"
    )

    possession_mechanism = forms.ChoiceField(
        required=False,
        choices=_MECHANISMS,
        label="Tokens are bound to",
        help_text="A bound token is useless to a thief who does not have the key or certificate of the application.",
    )
    possession_required_for = forms.ChoiceField(
        required=False,
        choices=_REQUIRED_FOR,
        label="Applications that must bind tokens",
        help_text="These applications get tokens for this API only with a DPoP proof or a client certificate.",
    )

    authorization_details = ShapedJSONField(
        shape=list,
        label="Types of authorization details",
        widget=forms.Textarea(attrs={"rows": 14, "cols": 80, "spellcheck": "false", "class": "json-input"}),
        help_text=format_html(
            "Details that applications can request in addition to scopes, such as a payment. A JSON list. Each type has a name (“type”), "
            "and a title and a sentence for the consent page. In the sentence, {{amount}} is replaced with the value of the member "
            "“amount”. The schema is a JSON Schema: details that do not match the schema are refused. Example:<br><code>{}</code>",
            _EXAMPLE_TYPES,
        ),
    )

    class Meta:
        model = ApiResource
        fields = ()

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        if not self.instance._state.adding:
            self.initial = {**_form_values(self.instance), **(named.get("initial") or {})}

    def columns(self) -> dict[str, Any]:
        """Return the columns to save: all columns of a new row, otherwise the changed columns."""
        values, changed, is_new = self.cleaned_data, set(self.changed_data), self.instance._state.adding
        found = {name: values[name] for name in (*_COLUMNS, "scopes") if name in values and (is_new or name in changed)}
        settings = {name: values[name] for name in (*_SWITCHES, "token_lifetime_for_web") if name in values and (is_new or name in changed)}
        if "signing_alg" in changed:
            settings["signing_alg"] = values["signing_alg"] or None
        if is_new or changed & {"user_policy", "client_policy"}:
            settings["subject_type_authorization"] = {
                "user": {"policy": values["user_policy"]},
                "client": {"policy": values["client_policy"]},
            }
        if changed & {"possession_mechanism", "possession_required_for"}:
            settings["proof_of_possession"] = _possession(values["possession_mechanism"], values["possession_required_for"])
        if "authorization_details" in changed:
            settings["authorization_details"] = values["authorization_details"] or None
        return found | ({"settings": settings} if settings else {})

    def shown_scopes(self) -> list[dict[str, str]]:
        """Return the scopes that the page showed when it was opened."""
        found: list[dict[str, str]] = self.fields["scopes"].to_python(self.data.get(self.add_initial_prefix("scopes"), "")) or []
        return found

    def clean_authorization_details(self) -> list[Any]:
        """Check the types with the request body of the management interface, then with the rules of the service."""
        entries: list[Any] = self.cleaned_data["authorization_details"]
        judge = ResourceServerToChange(data={"authorization_details": entries})
        if not judge.is_valid():
            raise forms.ValidationError(_sentences(judge.errors["authorization_details"]))
        problems = problems_of(entries)
        if problems:
            raise forms.ValidationError(problems)
        return entries

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("possession_required_for") and not values.get("possession_mechanism"):
            self.add_error("possession_mechanism", "Choose the key or certificate to which tokens are bound.")
        return values


def _possession(mechanism: str, required_for: str) -> dict[str, Any] | None:
    if not mechanism:
        return None
    return {"mechanism": mechanism, "required": bool(required_for), **({"required_for": required_for} if required_for else {})}


def _sentences(errors: Any) -> list[str]:
    """Return the errors of the management interface, with the position of the type in the list."""
    if not isinstance(errors, dict):
        return [sentence_of(str(error)) for error in errors]
    return [
        f"Type {int(place) + 1}: {name}: {sentence_of(str(text))}"
        for place, members in errors.items()
        for name, texts in (members.items() if isinstance(members, dict) else [("type", members)])
        for text in (texts if isinstance(texts, list) else [texts])
    ]


def _form_values(resource: ApiResource) -> dict[str, Any]:
    policies = resource.settings.get("subject_type_authorization") or {}
    possession = resource.settings.get("proof_of_possession") or {}
    return {
        **{name: getattr(resource, name) for name in (*_COLUMNS, "scopes")},
        "token_lifetime_for_web": resource.settings.get("token_lifetime_for_web"),
        "signing_alg": resource.settings.get("signing_alg") or "",
        **{name: resource.settings.get(name, name == _SWITCHES[2]) for name in _SWITCHES},
        "user_policy": (policies.get("user") or {}).get("policy", "allow_all"),
        "client_policy": (policies.get("client") or {}).get("policy", "require_client_grant"),
        "authorization_details": resource.settings.get("authorization_details") or [],
        "possession_mechanism": possession.get("mechanism", ""),
        "possession_required_for": possession.get("required_for", "all_clients") if possession.get("required") else "",
    }


class ApiResourceAdmin(RowPagesAdmin[ApiResource], ServiceAdmin[ApiResource]):
    form = ApiResourceForm
    grows = False
    list_display = ("title", "identifier", "format_of_tokens", "access_control", "is_system", "tenant")
    list_select_related = ("tenant",)
    sortable_by = ("title",)
    search_fields = ("name", "=identifier", "=id")
    empty_text = "No APIs yet. The management interface appears here when its first client grant or token is created."
    deletion_effect = (
        "The permissions and the client grants of the API are deleted, too. Clients with a grant for the API lose all their access tokens "
        "for APIs, also for other APIs."
    )
    change_form_template = "admin/sign_in_form.html"
    first_tab = "Settings"
    id_field = "identifier"

    def __init__(self, model: type[ApiResource], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.object_actions = acts_of(self)

    def primary_of(self, row: ApiResource) -> str:
        return GRANT if row.is_system else ADD_PERMISSION

    def badge_of(self, row: ApiResource) -> str:
        """Return a badge that tells whether the permissions of users limit the scopes of tokens. If the API is part of the service, the
        badge shows this instead.
        """
        if row.is_system:
            return badge("System", "quiet")
        return badge("Access control on", "good") if row.settings.get("enforce_policies") else badge("Access control off", "quiet")

    def get_fieldsets(self, request: HttpRequest, obj: ApiResource | None = None) -> Any:
        # If an account sees only one tenant, the header of every page shows this tenant. Other accounts see the tenant in this form.
        kept_first = [] if obj is None else ["id", *([] if self.is_bound(request) else ["tenant"])]
        # If the account may not change APIs, Django shows stored values. The stored scopes are JSON, so show `scopes_in_lines` instead.
        is_shown = obj is not None and not self.has_change_permission(request, obj)
        own = [*kept_first, "identifier", "name", "scopes_in_lines" if is_shown else "scopes"]
        tokens = ["token_lifetime", "token_lifetime_for_web", "token_dialect", "signing_alg", "signing_secret", "allow_offline_access"]
        access = ["enforce_policies", "user_policy", "client_policy", "skip_consent_for_verifiable_first_party_clients"]
        kept = (
            [] if obj is None else [("Set by the service", {"fields": ["is_system", "created_at", "updated_at"], "classes": ["collapse"]})]
        )
        bound = ("Bound tokens", {"fields": ["possession_mechanism", "possession_required_for"], "classes": ["collapse"]})
        details = ("Rich authorization requests", {"fields": ["authorization_details"], "classes": ["collapse"]})
        return [
            (None, {"fields": own}),
            ("Tokens", {"fields": tokens}),
            ("Access", {"fields": access}),
            details,
            bound,
            *kept,
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: ApiResource | None = None) -> Any:
        return () if obj is None else ("id", "tenant", "identifier", "scopes_in_lines", "is_system", "created_at", "updated_at")

    def wants_proof(self, request: HttpRequest, object_id: str | None) -> bool:
        """Require a proof for a new secret, and for a new algorithm, because a new algorithm can delete the secret. The action that
        replaces the secret requires a proof, too.
        """
        if super().wants_proof(request, object_id):
            return True
        row = None if object_id is None else self.get_object(request, unquote(object_id))
        is_allowed = self.has_add_permission(request) if object_id is None else self.has_change_permission(request, row)
        if request.method != "POST" or not is_allowed:
            return False
        algorithm = "" if row is None else row.settings.get("signing_alg") or ""
        return bool(request.POST.get("signing_secret")) or request.POST.get("signing_alg", "") != algorithm

    def has_change_permission(self, request: HttpRequest, obj: ApiResource | None = None) -> bool:
        # The management interface is part of the release and cannot be changed.
        return super().has_change_permission(request, obj) and not (obj is not None and obj.is_system)

    def has_delete_permission(self, request: HttpRequest, obj: ApiResource | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not (obj is not None and obj.is_system)

    @admin.display(description="Name", ordering="name")
    def title(self, row: ApiResource) -> str:
        return str(row)

    @admin.display(description="Scopes")
    def scopes_in_lines(self, row: ApiResource) -> str:
        lines = ((scope["value"], scope.get("description") or "") for scope in row.scopes)
        return format_html_join("", "<div><code>{}</code> {}</div>", lines)

    @admin.display(description="Format of tokens")
    def format_of_tokens(self, row: ApiResource) -> str:
        return _DIALECTS_IN_WORDS.get(row.token_dialect, row.token_dialect)

    @admin.display(description="Access control")
    def access_control(self, row: ApiResource) -> str:
        return badge("On", "good") if row.settings.get("enforce_policies") else badge("Off", "quiet")

    def create(self, request: HttpRequest, form: Any) -> ApiResource:
        secret = form.cleaned_data.get("signing_secret") or None
        return api_resources.create_api_resource(tenant_id=self.tenant_for_new(request), signing_secret=secret, **form.columns())

    def change(self, request: HttpRequest, row: ApiResource, form: Any) -> None:
        secret = form.cleaned_data.get("signing_secret") or None
        resource_changes.update_shown_api_resource(
            tenant_id=row.tenant_id,
            resource_id=row.pk,
            changes=form.columns(),
            shown_scopes=form.shown_scopes(),
            signing_secret=secret,
        )
