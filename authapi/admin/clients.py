"""Admin pages of clients. A secret is shown once, in the response to the request that created it, and never stored in a session,
message or log.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import slugify

from authapi.admin.applications import kinds
from authapi.admin.applications.kinds import KINDS, Kind
from authapi.admin.applications.snippet_proofs import kind_of
from authapi.admin.client_choices import APP_TYPES, METHODS, REGISTRATION_SOURCES
from authapi.admin.client_exchange import EXCHANGE
from authapi.admin.client_form import ClientForm
from authapi.admin.compliance import shown_rules
from authapi.admin.snippets import Setup, proof_context, snippets_of
from authapi.compliance.levels import NONE as NO_LEVEL
from authapi.grants.device_code import DeviceCodeGrant
from authapi.login.connections import client_connections
from authapi.models import ApiResource, Client, ClientCredential, ClientGrant, EdgeKey
from authapi.protocols.oauth.entry import facts_of
from authapi.protocols.saml.settings import is_on as speaks_saml
from authapi.protocols.wsfed.settings import is_on as speaks_wsfed
from authapi.services import client_grants, clients, registered_clients
from authapi.services.api_resources import TenantHasNoDomain, ensure_management_api
from foundation.admin.badges import badge
from foundation.admin.beside_rows import page_beside
from foundation.admin.field_labels import SentenceChoicesFilter
from foundation.admin.list_filters import RecentValuesFilter, worded
from identity.admin.object_actions import ObjectAction, button
from identity.admin.row_pages import RowPagesAdmin
from identity.admin.scope import only_tenant
from identity.admin.service_admin import ServiceAdmin
from identity.hosts import address_beside, scheme
from identity.services.failures import Invalid

_ABOUT = ["name", "description", "app_type", "is_first_party", "logo_uri", "initiate_login_uri"]
_ADDRESSES = [
    "callbacks",
    "allowed_logout_urls",
    "web_origins",
    "allowed_origins",
    "backchannel_logout_urls",
    "frontchannel_logout_uri",
]
_PROOF = ["token_endpoint_auth_method", "grant_types", "alg"]
_REFRESH = [
    "rotation_type", "expiration_type", "token_lifetime", "infinite_token_lifetime", "idle_token_lifetime",
    "infinite_idle_token_lifetime", "leeway",
]  # fmt: skip
_HARDENING = [
    "compliance_level", "oauth_standard_errors", "oidc_conformant", "require_pushed_authorization_requests", "par_request_expiry",
    "signed_request_required", "request_keys", "jwks_uri", "require_proof_of_possession", "authorization_details_types",
]  # fmt: skip
_LEGACY = ["legacy_grants", "cross_origin_authentication", "cross_origin_loc", "allowed_clients"]
_ORGANIZATIONS = ["organization_usage", "organization_require_behavior"]

_LEGACY_WARNING = (
    "For applications that were written for older systems and cannot be changed. These settings are less secure than those above, and off "
    "by default. Turn on only what the application needs."
)

_KINDS_IN_WORDS = {value: text for value, text in APP_TYPES if value}
# For each label that Django derives from the name of an authentication method: our label, which the filter shows instead.
_METHODS_IN_WORDS = {str(method.label): dict(METHODS)[method.value] for method in Client.AuthMethod}
# Characters that are safe between quotes in the language of every snippet.
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9._~:/?#@!&'()*+,;=%-]+")
_SOME_CALLBACK = "https://app.example.com/callback"
PASTE = "Code for your application"
_GRANT = "authapi.add_clientgrant"


class ClientAdmin(RowPagesAdmin[Client], ServiceAdmin[Client]):
    form = ClientForm
    grows = False
    list_display = ("name", "client_id", "state", "kind", "party", "authentication", "created", "tenant")
    list_filter = (
        ("app_type", worded(RecentValuesFilter, _KINDS_IN_WORDS)),
        "is_first_party",
        "is_global",
        ("registration_source", worded(SentenceChoicesFilter, REGISTRATION_SOURCES)),
        ("token_endpoint_auth_method", worded(SentenceChoicesFilter, _METHODS_IN_WORDS)),
    )
    list_select_related = ("tenant",)
    sortable_by = ("name", "created")
    search_fields = ("name", "=client_id")
    change_form_template = "admin/client_form.html"
    proof_for = frozenset({"add"})
    first_tab = "Settings"
    id_field = "client_id"
    primary_action = "grant-api"
    empty_text = "No clients yet. Add one for each application that logs users in or calls APIs."
    deletion_effect = (
        "The grants and the consents of the client are deleted, too, its tokens are revoked, and its open streams close "
        "within two seconds. Users can no longer log in to the application."
    )

    def __init__(self, model: type[Client], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.object_actions = (
            ObjectAction(
                "rotate-secret",
                "Create new secret",
                lambda _request, row: (
                    f"The next page shows a new secret of {row}. The old secret and all access tokens for APIs become invalid at once, and "
                    "the open streams of the client close."
                ),
                self._rotate,
                is_offered=lambda row: has_secret(row) and row.revoked_at is None,
                is_dangerous=True,
                needs_proof=True,
            ),
            ObjectAction(
                "revoke",
                "Revoke the client",
                lambda _request, row: (
                    f"“{row}” gets no new tokens, and all its tokens are revoked. This cannot be undone. The client stays in the list."
                ),
                _revoke,
                is_offered=lambda row: row.revoked_at is None,
                is_dangerous=True,
            ),
            ObjectAction(
                "end-registration",
                "Revoke the registration token",
                lambda _request, row: (
                    f"{row} can no longer change or delete its own registration. The client keeps working, and only "
                    "administrators can change it."
                ),
                _end_registration,
                is_offered=lambda row: bool(row.registration_digest),
                is_dangerous=True,
            ),
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Client]:
        # The client of the account page belongs to the service. Its settings are on the page Sign-in settings.
        return super().get_queryset(request).filter(is_account_page=False)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Ask for the kind of application first. The form then has the fields of that kind."""
        is_chosen = request.method != "GET" or request.GET.get(kinds.PARAMETER) in (*KINDS, kinds.ALL)
        if is_chosen or not self.has_add_permission(request) or not (self.is_bound(request) or only_tenant()):
            return super().add_view(request, form_url, extra_context)
        return page_beside(self, request, "admin/client_kinds.html", "Add client", kinds=KINDS.values())

    def get_form(self, request: HttpRequest, obj: Client | None = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        kind = _kind_of(request, obj)
        if kind is not None:
            kwargs["form"] = kinds.form_of(kind, grants=request.user.has_perm(_GRANT))
        form = super().get_form(request, obj, change=change, **kwargs)
        if "api" in form.base_fields:
            form.base_fields["api"].choices = kinds.api_choices(self.scoped_choices(request, ApiResource))
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Client | None = None) -> Any:
        kind = _kind_of(request, obj)
        if kind is not None:
            return [(None, {"fields": kinds.fields_of(kind, grants=request.user.has_perm(_GRANT))})]
        further = [
            ("Addresses", {"fields": _ADDRESSES}),
            ("Authentication and grant types", {"fields": _PROOF}),
            ("Refresh tokens", {"fields": _REFRESH, "classes": ["collapse"]}),
            ("High security", {"fields": _HARDENING, "classes": ["collapse"]}),
            ("Token exchange", {"fields": EXCHANGE, "classes": ["collapse"]}),
            ("Two-step verification", {"fields": ["second_factor_policy"], "classes": ["collapse"]}),
            ("Organizations", {"fields": _ORGANIZATIONS, "classes": ["collapse"]}),
            ("Legacy", {"fields": _LEGACY, "classes": ["collapse"], "description": _LEGACY_WARNING}),
        ]
        if obj is None:
            return [
                (None, {"fields": _ABOUT}),
                *further,
                ("More settings", {"fields": ["is_global", "client_metadata"], "classes": ["collapse"]}),
            ]
        kept = ["is_global", "auth_version", "revoked_at", "created", "updated"]
        # If an account sees only one tenant, the header of every page shows this tenant. Other accounts see the tenant in this form.
        first = [*_ABOUT, *(["party"] if obj.is_self_registered else []), *([] if self.is_bound(request) else ["tenant"])]
        return [
            (None, {"fields": first}),
            *further,
            ("More settings", {"fields": ["client_metadata", *kept], "classes": ["collapse"]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Client | None = None) -> Any:
        own = ("client_id", "tenant", "state", "party", "auth_version", "revoked_at", "created", "updated")
        return own if obj is None else (*own, "is_global")

    def has_change_permission(self, request: HttpRequest, obj: Client | None = None) -> bool:
        # A revoked client is read-only, because it stays as a record.
        return super().has_change_permission(request, obj) and (obj is None or obj.revoked_at is None)

    @admin.display(description="State")
    def state(self, row: Client) -> str:
        return badge("Active", "good") if row.revoked_at is None else badge("Revoked", "bad")

    @admin.display(description="Kind", ordering="app_type")
    def kind(self, row: Client) -> str:
        return badge("Global", "warn") if row.is_global else _KINDS_IN_WORDS.get(row.app_type, row.app_type.replace("_", " "))

    @admin.display(description="Owner", ordering="is_first_party")
    def party(self, row: Client) -> str:
        if row.is_self_registered:
            return badge("Registered itself", "warn")
        return "First party" if row.is_first_party else "Third party"

    @admin.display(description="Authentication")
    def authentication(self, row: Client) -> str:
        return dict(METHODS).get(str(row.auth_method), str(row.auth_method))

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        row = context.get("original")
        if row is None:
            kind = _kind_of(request, None)
            context["kind_of_client"] = kind
            if kind is not None:
                # After a client is saved, every button leads to a page about this client. So the button "Save and add another" would have
                # no effect.
                context["show_save_and_add_another"] = False
            return super().render_change_form(request, context, *args, **kwargs)
        shown = next(tab.label for tab in self._tabs_of(request) if tab.is_current)
        if shown == PASTE:
            context |= self._paste(request, row)
        elif shown == self.first_tab:
            # Read the client from the database, because the form has written submitted values to `row`.
            context["level_rules"] = shown_rules(Client.objects.of(row.tenant_id).get(pk=row.pk))
        return super().render_change_form(request, context, *args, **kwargs)

    def _paste(self, request: HttpRequest, row: Client) -> dict[str, Any]:
        """Return the content of the tab with the snippets."""
        setup = setup_of(row, request.get_host())
        may_connect = request.user.has_perm("identity.change_connection") and row.revoked_at is None
        return {
            "snippets": snippets_of(setup),
            **proof_context(setup),
            "needs_api": not setup.audience and "client_credentials" in row.grant_types and not row.is_global,
            "grant_url": self._grant_address(row) if request.user.has_perm(_GRANT) else "",
            "needs_connection": (setup.has_users or setup.has_devices or setup.protocol) and not client_connections(row),
            "connect_url": self.address_of("connections", row) if may_connect else "",
        }

    def buttons_of(self, request: HttpRequest, row: Client) -> list[dict[str, Any]]:
        """Add the button that grants an API to a client that calls APIs by itself."""
        buttons = super().buttons_of(request, row)
        if "client_credentials" not in row.grant_types or row.revoked_at is not None or not request.user.has_perm(_GRANT):
            return buttons
        return [button("grant-api", "Grant an API", self._grant_address(row)), *buttons]

    def _grant_address(self, row: Client) -> str:
        return f"{reverse(f'{self.admin_site.name}:authapi_clientgrant_add')}?{urlencode({'client': row.pk})}"

    def place_of(self, row: Client, tab: str) -> str:
        """Return the URL of a tab of a client's page."""
        return f"{self.address_of('change', row)}?{urlencode({'tab': slugify(tab)})}"

    def create(self, request: HttpRequest, form: Any) -> Client:
        values = {**form.columns(), "is_global": form.cleaned_data.get("is_global", False)}
        client, secret = clients.create_client(tenant_id=self.tenant_for_new(request), **values)
        if form.cleaned_data.get("api"):
            _grant(client, form.cleaned_data["api"], form.cleaned_data["scopes"])
        # The secret is kept for the response to this request only.
        request._new_secret = secret  # type: ignore[attr-defined]
        return client

    def change(self, request: HttpRequest, row: Client, form: Any) -> None:
        columns = form.columns()
        if columns:
            clients.update_client(tenant_id=row.tenant_id, client_id=row.client_id, changes=columns)

    def response_add(self, request: HttpRequest, obj: Client, post_url_continue: str | None = None) -> HttpResponse:
        secret = getattr(request, "_new_secret", "")
        if secret:
            return self.secret_page(request, obj, secret)
        if speaks_saml(obj.settings):
            self.message_user(request, "Client added. Import the metadata of the application, or enter its addresses.", messages.SUCCESS)
            return HttpResponseRedirect(self.address_of("saml", obj))
        if _kind_of(request, None) is not None:
            self.message_user(request, "Client added.", messages.SUCCESS)
            return HttpResponseRedirect(self.place_of(obj, PASTE))
        return super().response_add(request, obj, post_url_continue)

    def secret_page(self, request: HttpRequest, client: Client, secret: str) -> HttpResponse:
        """Return the page that shows a secret. Does not redirect, because the secret would have to be stored until the next request."""
        context = {
            **self.admin_site.each_context(request),
            "title": f"Secret of {client}",
            "subtitle": None,
            "original": client,
            "secret": secret,
            "next_url": self.place_of(client, PASTE),
            "opts": self.opts,
            "media": self.media,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/client_secret.html", context)

    def _rotate(self, request: HttpRequest, row: Client, _values: dict[str, Any]) -> HttpResponse:
        client, secret = clients.rotate_client_secret(tenant_id=row.tenant_id, client_id=row.client_id)
        return self.secret_page(request, client, secret)


def _kind_of(request: HttpRequest, row: Client | None) -> Kind | None:
    """Return the kind of application of a new client; None for the form with every field."""
    return KINDS.get(request.GET.get(kinds.PARAMETER, "")) if row is None else None


def _grant(client: Client, api: str, scopes: list[str]) -> None:
    try:
        is_management = api == kinds.MANAGEMENT
        resource = ensure_management_api(client.tenant_id) if is_management else ApiResource.objects.of(client.tenant_id).get(pk=api)
    except TenantHasNoDomain as error:
        raise Invalid(
            {"api": ["Add a domain to the tenant first: the identifier of the management interface contains the domain."]}
        ) from error
    client_grants.create_client_grant(tenant_id=client.tenant_id, client_id=client.client_id, api_resource=resource, scopes=scopes)


def _revoke(_request: HttpRequest, row: Client, _values: dict[str, Any]) -> str:
    clients.revoke_client(tenant_id=row.tenant_id, client_id=row.client_id)
    return f"{row} revoked."


def _end_registration(_request: HttpRequest, row: Client, _values: dict[str, Any]) -> str:
    registered_clients.end_registration(tenant_id=row.tenant_id, client_id=row.client_id)
    return f"{row} can no longer manage its own registration."


def has_secret(client: Client) -> bool:
    """Tell whether the client authenticates with a secret."""
    return client.auth_method in (Client.AuthMethod.POST, Client.AuthMethod.BASIC)


def _has_port_number(uri: str) -> bool:
    """Tell whether a URI has a valid port, or no port."""
    try:
        return urlsplit(uri).port != 0
    except ValueError:
        return False


def setup_of(client: Client, authority: str) -> Setup:
    """Return the snippet values of a client at `authority`. Values that could end a quoted text are replaced by examples."""
    issuer = f"{address_beside(authority, client.tenant_id)}/"
    usable = (uri for uri in client.redirect_uris.split() if is_plain(uri) and "*" not in uri and _has_port_number(uri))
    management_api = f"{issuer}api/v2/"
    kind, facts = kind_of(str(client.auth_method)), facts_of(client)
    return Setup(
        issuer=issuer,
        client_id=client.client_id,
        callback=next(usable, _SOME_CALLBACK),
        audience=management_api if client.is_global else _granted_audience(client, ClientGrant.SubjectType.CLIENT, management_api),
        user_audience=_granted_audience(client, ClientGrant.SubjectType.USER, management_api),
        has_users="authorization_code" in client.grant_types or "implicit" in client.grant_types,
        auth_method=str(client.auth_method),
        app_type=client.app_type,
        has_devices=DeviceCodeGrant.name in client.grant_types,
        has_machine="client_credentials" in client.grant_types,
        protocol="samlp" if speaks_saml(client.settings) else "wsfed" if speaks_wsfed(client.settings) else "",
        algorithm=_key_algorithm(client) if kind == "key" else "",
        certificate_base=_certificate_base(client.tenant_id) if kind == "certificate" else "",
        has_strict_logins=facts.requires_push or facts.requires_signature,
        has_bound_tokens=facts.level != NO_LEVEL or bool(client.settings.get("require_proof_of_possession")),
    )


def _key_algorithm(client: Client) -> str:
    """Return the algorithm of the oldest key with which the client authenticates; RS256 for a client without registered keys."""
    keys = ClientCredential.objects.of(client.tenant_id).filter(client=client, pk__in=client.proof_ids).exclude(algorithm="")
    return keys.order_by("created_at", "pk").values_list("algorithm", flat=True).first() or "RS256"


def _certificate_base(tenant_id: str) -> str:
    """Return the base URL of the first custom domain whose TLS proxy requests certificates; empty if there is no such domain."""
    edges = EdgeKey.objects.of(tenant_id).filter(domain__verified_at__isnull=False).order_by("created_at", "pk")
    host = edges.values_list("domain__host", flat=True).first()
    return f"{scheme()}://mtls.{host}/" if host else ""


def is_plain(text: str) -> bool:
    """Tell whether the text has only characters that are safe between quotes in every snippet."""
    return _PLAIN_TEXT.fullmatch(text) is not None


def _granted_audience(client: Client, subject_type: str, management_api: str) -> str:
    """Return the identifier of the first API that is granted to the client for this kind of tokens; empty if no API is granted."""
    granted = client.client_grants.filter(subject_type=subject_type).select_related("api_resource").order_by("created_at", "pk").first()
    if granted is None:
        return ""
    audience = management_api if granted.api_resource.is_system else str(granted.api_resource.identifier)
    return audience if is_plain(audience) else ""
