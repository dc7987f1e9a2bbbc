"""The form of a tenant's sign-in settings: names on pages, sessions, and protection against failed logins."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.utils import quote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from authapi.accounts.attack_settings import update_leak_rules, update_suspicion
from authapi.admin.attack_fields import AttackFields, attack_fieldsets, attack_values
from authapi.api.tenant_setting_bodies import BruteForceToChange, TenantSettingsToChange
from authapi.clients.user_codes import LONGEST_MASK, mask_problem
from authapi.models import TenantSettings
from authapi.services.notifiers import CHANNELS, EMAIL, SECRET, SETTING, WEBHOOK, missing
from authapi.services.tenant_settings import MODES, update_brute_force, update_tenant_settings
from authapi.tenant_settings import BRUTE_FORCE_DEFAULTS, DEFAULTS, LIFETIMES, brute_force_values, settings_values
from authapi.tokens.contexts import ANY_LOGIN, PASSWORD, SECOND_FACTORS, offered
from foundation.admin.body_errors import sentence_of
from foundation.admin.line_fields import LinesField
from identity.admin.scope import only_tenant, tenant_in_scope
from identity.admin.service_admin import ServiceAdmin
from identity.languages import LANGUAGES

_SHIELDS = (
    ("block", "Block the login: even the correct password is refused until the block expires or is lifted"),
    ("user_notification", "Notify the user: an email with a link that lifts the block"),
)
_MODE_NAMES = {
    "count_per_identifier_and_ip": "For each user and IP address: an attacker at another IP address cannot lock the user out",
    "count_per_identifier": "For each user, from all IP addresses together: stronger, but every attacker can lock a known user out",
}
_TARGETS = (
    ("audience", "With the parameter “audience”"),
    ("compatibility", "With the parameter “audience”; if it is missing, with “resource” (RFC 8707)"),
)
_CONTEXTS = {
    **{name: f"A second factor was proven ({name.rpartition('/')[2].rpartition(':')[2]})" for name in SECOND_FACTORS},
    PASSWORD: "A password was entered",
    ANY_LOGIN: "Every login: with a password, a code, a link or an external provider",
}
_PLAIN = (
    "friendly_name", "picture_url", "support_email", "support_url", "default_directory", "default_audience", "default_redirection_uri",
    "allowed_logout_urls", "enabled_locales", *LIFETIMES, "authorization_response_iss_parameter_supported",
    "allow_organization_name_in_authentication_api", "pushed_authorization_requests_supported", "require_pushed_authorization_requests",
    "resource_parameter_profile", "acr_values_supported",
    "require_initial_access_token",
    "session_management_supported", "token_introspection_supported", "new_device_mails",
)  # fmt: skip
_CHARSET_NAMES = [("base20", "Consonants, such as WDJB-MJHT"), ("digits", "Digits, for devices without a keyboard")]
_CHANNEL_NAMES = {EMAIL: "By an email with a link", WEBHOOK: "By your webhook: the service calls it, and it notifies the user"}
_NOTIFIER = ("channel", "webhook_url", SECRET)
_LANGUAGES = ", ".join(f"{code} ({language.name})" for code, language in LANGUAGES.items())
_WIDE = forms.TextInput(attrs={"size": 60})
_REGISTERS = "enable_dynamic_client_registration"
# A tenant has one row, so the form cannot add another row.
_ALONE = {"title": "Sign-in settings", "show_save_and_add_another": False}
_NULL_WHEN_EMPTY = (*LIFETIMES, "enabled_locales")


def _hours(label: str, help_text: str) -> forms.FloatField:
    return forms.FloatField(required=False, label=label, help_text=help_text, widget=forms.NumberInput(attrs={"step": "any", "min": 1}))


def _switch(label: str, help_text: str = "") -> forms.BooleanField:
    return forms.BooleanField(required=False, label=label, help_text=help_text)


def _wide(label: str, help_text: str, *, most: int = 2048) -> forms.CharField:
    return forms.CharField(required=False, max_length=most, label=label, widget=_WIDE, help_text=help_text)


class TenantSettingsForm(AttackFields):
    friendly_name = forms.CharField(
        required=False,
        max_length=200,
        label="Name on the login pages",
        help_text="If this is empty, the pages show the name of the tenant.",
    )
    support_email = forms.CharField(required=False, max_length=254, help_text="Shown to users who need help.")
    support_url = _wide("Support page", "The address of a page for users who need help.")
    picture_url = _wide("Picture", "The address of a picture that the pages show if Branding has no logo.")
    session_lifetime = _hours("Session, absolute lifetime", "Hours from the login until the user must log in again. Default: 168.")
    idle_session_lifetime = _hours("Session, idle lifetime", "Hours without use until the user must log in again. Default: 72.")
    ephemeral_session_lifetime = _hours(
        "Session that ends with the browser, absolute lifetime", "Hours from the login, if the browser stays open. Default: 72."
    )
    idle_ephemeral_session_lifetime = _hours(
        "Session that ends with the browser, idle lifetime", "Hours without use, if the browser stays open. Default: 24."
    )
    cookie_mode = forms.ChoiceField(
        choices=[("persistent", "Sessions continue"), ("non-persistent", "Sessions end")],
        label="When the browser is closed",
    )
    allowed_logout_urls = LinesField(
        label="Logout addresses",
        help_text="One address per line. Users can return to one of these addresses after a logout whose request names no application, or "
        "after a logout with WS-Federation.",
    )
    oidc_logout_prompt_enabled = _switch(
        "Ask before a logout without an ID token",
        "A logout request without an ID token can come from any web page. If this is on, the user must confirm the logout.",
    )
    rp_logout_end_session_endpoint_discovery = _switch("Include the logout endpoint in the discovery document")
    default_directory = forms.CharField(
        required=False,
        max_length=128,
        label="Default database connection",
        help_text="The name of the connection for password logins whose request names no connection.",
    )
    default_audience = forms.CharField(
        required=False,
        max_length=600,
        widget=_WIDE,
        label="Default API",
        help_text="The identifier of the API for logins whose request names no API.",
    )
    default_redirection_uri = _wide(
        "Fallback page",
        "An https address. If the error page after a failed login cannot link to the application, it links to this address.",
    )
    enabled_locales = LinesField(
        label="Languages of the pages", help_text=f"One code per line: {_LANGUAGES}. The first one is the default."
    )
    authorization_response_iss_parameter_supported = _switch(
        "Include the issuer in responses of /authorize", "RFC 9207. Lets applications detect responses of another service (mix-up attacks)."
    )
    allow_organization_name_in_authentication_api = _switch(
        "Accept names of organizations in requests",
        "Requests can name an organization by its name instead of its id. Tokens then contain the name, too.",
    )
    pushed_authorization_requests_supported = _switch(
        "Accept pushed authorization requests",
        "Applications can send a request to /oauth/par. The browser then sends only a reference to this request to /authorize.",
    )
    require_pushed_authorization_requests = _switch(
        "Require pushed authorization requests",
        "For all applications. Users can then no longer log in to applications that cannot authenticate, such as single-page applications.",
    )
    resource_parameter_profile = forms.ChoiceField(choices=_TARGETS, label="How requests name an API")
    acr_values_supported = forms.MultipleChoiceField(
        required=False,
        choices=[(name, _CONTEXTS[name]) for name in offered(has_second_factors=True)],
        widget=forms.CheckboxSelectMultiple,
        label="Authentication contexts",
        help_text="Contexts that applications can request with “acr_values” and that tokens contain as “acr”. If you select none, "
        "all are allowed.",
    )
    takes_registrations = _switch(
        "Let applications register themselves",
        "At /oidc/register (RFC 7591). Self-registered applications are third-party clients, so users must consent to them.",
    )
    require_initial_access_token = _switch(
        "Require an initial access token",
        "If this is off, every program that reaches the service can register applications. You create tokens under Initial access tokens.",
    )
    device_charset = forms.ChoiceField(choices=_CHARSET_NAMES, label="Characters of device codes")
    device_mask = forms.CharField(
        max_length=LONGEST_MASK,
        label="Format of device codes",
        help_text="Such as ****-****: the service replaces each asterisk with one character. At least 8 consonants or 9 digits.",
    )
    notifier_channel = forms.ChoiceField(
        choices=[(name, _CHANNEL_NAMES[name]) for name in CHANNELS],
        label="How users are notified of approval requests",
        help_text="An application requests the approval of a user at /bc-authorize (CIBA).",
    )
    notifier_webhook_url = _wide("Address of the webhook", "An https address. Only for notifications by your webhook.", most=512)
    notifier_webhook_secret = forms.CharField(
        required=False,
        max_length=512,
        label="Secret of the webhook",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Signs the requests to the webhook (Standard Webhooks). Leave empty to keep the saved secret. If you change the "
        "address, enter the secret again.",
    )
    session_management_supported = _switch(
        "Let applications observe the session",
        "With a hidden frame, an application learns that the session ended (OpenID Connect Session Management). This fails in "
        "browsers that block cookies of other sites.",
    )
    token_introspection_supported = _switch(
        "Let applications inspect tokens",
        "At /oauth/introspect (RFC 7662), an application that authenticates can inspect its own tokens and tokens for its API.",
    )
    account_enabled = _switch("Turn on the account page", "At /account, users manage their own profile, password and sessions.")
    account_data_export = _switch("Users can download their data")
    account_deletion = _switch("Users can delete their account", "The account and its data are deleted at once. This cannot be undone.")
    account_connections = LinesField(
        label="Connections for logins to the account page",
        help_text="One name per line. Empty: all connections that applications use.",
    )
    brute_force_enabled = _switch("Count failed logins", "If this is off, users are never blocked after failed logins.")
    max_attempts = forms.IntegerField(
        min_value=1,
        max_value=100,
        label="Failures before a block",
        help_text="Number of failed logins in a row that cause the response selected below. If you increase the number, all blocks end.",
    )
    mode = forms.ChoiceField(choices=[(mode, _MODE_NAMES[mode]) for mode in MODES], label="How failed logins are counted")
    shields = forms.MultipleChoiceField(
        required=False, choices=_SHIELDS, widget=forms.CheckboxSelectMultiple, label="Response to too many failed logins"
    )
    allowlist = LinesField(label="IP addresses that are not counted", help_text="One address or network per line, such as 192.0.2.0/24.")

    class Meta:
        model = TenantSettings
        fields = ()

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        row = None if self.instance._state.adding else self.instance
        self.initial = {**form_values(row), **(named.get("initial") or {})}

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors:
            self._judge(TenantSettingsToChange(data=self.settings()))
            self._judge(BruteForceToChange(data=self.brute_force()))
            problem = mask_problem(values["device_charset"], values["device_mask"])
            if problem:
                self.add_error("device_mask", problem)
        return values

    def settings(self) -> dict[str, Any]:
        """Return the changed settings as the management interface expects them. Emptied settings are null."""
        values, changed = self.cleaned_data, set(self.changed_data)
        body = {name: values[name] for name in _PLAIN if name in changed}
        body |= {name: None for name in _NULL_WHEN_EMPTY if name in body and body[name] in (None, [])}
        if "cookie_mode" in changed:
            body["session_cookie"] = {"mode": values["cookie_mode"]}
        if "oidc_logout_prompt_enabled" in changed:
            body["sessions"] = {"oidc_logout_prompt_enabled": values["oidc_logout_prompt_enabled"]}
        if "rp_logout_end_session_endpoint_discovery" in changed:
            name = "rp_logout_end_session_endpoint_discovery"
            body["oidc_logout"] = {name: values[name]}
        if "takes_registrations" in changed:
            body["flags"] = {_REGISTERS: values["takes_registrations"]}
        notifier = {name: values[f"notifier_{name}"] for name in _NOTIFIER if f"notifier_{name}" in changed}
        if notifier:
            body[SETTING] = notifier
        if {"device_charset", "device_mask"} & changed:
            body["device_flow"] = {"charset": values["device_charset"], "mask": values["device_mask"]}
        if changed & {f"account_{name}" for name in DEFAULTS["account_page"]}:
            body["account_page"] = {name: values[f"account_{name}"] for name in DEFAULTS["account_page"]}
        return body

    def brute_force(self) -> dict[str, Any]:
        """Return the changed settings of brute-force protection."""
        values, changed = self.cleaned_data, set(self.changed_data)
        found = {name: values[name] for name in BRUTE_FORCE_DEFAULTS if name in changed}
        return found | ({"enabled": values["brute_force_enabled"]} if "brute_force_enabled" in changed else {})

    def _judge(self, judge: Any) -> None:
        if judge.is_valid():
            return
        for name, problem in judge.errors.items():
            self.add_error(name if name in self.fields else None, [sentence_of(str(text)) for text in _leaves(problem)])


def form_values(row: TenantSettings | None) -> dict[str, Any]:
    """Return the form's values of a tenant's settings, including defaults."""
    values, protection = settings_values(row), brute_force_values(row)
    return {
        **{name: values.get(name, "") for name in _PLAIN},
        "cookie_mode": values["session_cookie"]["mode"],
        **values["sessions"],
        **values["oidc_logout"],
        "takes_registrations": bool(values["flags"].get(_REGISTERS)),
        **{f"device_{name}": value for name, value in values["device_flow"].items()},
        **{f"notifier_{name}": value for name, value in values[SETTING].items()},
        **{f"account_{name}": value for name, value in values["account_page"].items()},
        **protection,
        "brute_force_enabled": protection["enabled"],
        **attack_values(row),
    }


class TenantSettingsAdmin(ServiceAdmin[TenantSettings]):
    """The settings form of a tenant. A tenant has one row, so the list page redirects to the form of the tenant."""

    form = TenantSettingsForm
    grows = False
    list_display = ("tenant", "updated_at")
    list_select_related = ("tenant",)
    actions = ()
    empty_text = "No tenant has changed its sign-in settings. All tenants have the defaults."
    change_form_template = "admin/settings_form.html"
    proven_fields = (f"notifier_{SECRET}",)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        tenant = tenant_in_scope(request) or only_tenant()
        if tenant is None or not self.has_view_permission(request):
            return super().changelist_view(request, extra_context)
        row = TenantSettings.objects.of(tenant).first()
        if row is None and not self.has_add_permission(request):
            return super().changelist_view(request, extra_context)
        return HttpResponseRedirect(self._place(row))

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        tenant = tenant_in_scope(request) or only_tenant()
        row = TenantSettings.objects.of(tenant).first() if tenant is not None and self.has_add_permission(request) else None
        return HttpResponseRedirect(self._place(row)) if row is not None else super().add_view(request, form_url, extra_context)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> Any:
        return super().changeform_view(request, object_id, form_url, {**_ALONE, **(extra_context or {})})

    def get_fieldsets(self, request: HttpRequest, obj: TenantSettings | None = None) -> Any:
        kept = [] if obj is None else [("Set by the service", {"fields": ["tenant", "updated_at"], "classes": ["collapse"]})]
        looks = ["friendly_name", "picture_url", "support_email", "support_url"]
        ends = ["cookie_mode", "allowed_logout_urls", "oidc_logout_prompt_enabled", "rp_logout_end_session_endpoint_discovery"]
        names = ["default_directory", "default_audience", "default_redirection_uri", "enabled_locales"]
        protocol = [
            "authorization_response_iss_parameter_supported",
            "allow_organization_name_in_authentication_api",
            "pushed_authorization_requests_supported",
            "require_pushed_authorization_requests",
            "resource_parameter_profile",
            "acr_values_supported",
            "takes_registrations",
            "require_initial_access_token",
            "device_charset",
            "device_mask",
            "session_management_supported",
            "token_introspection_supported",
        ]
        return [
            ("Names and support", {"fields": looks, "description": "Logo, colors and font are under Branding."}),
            ("Sessions", {"fields": [*LIFETIMES, *ends]}),
            ("Account page", {"fields": [f"account_{name}" for name in DEFAULTS["account_page"]]}),
            ("Failed logins", {"fields": ["brute_force_enabled", "max_attempts", "mode", "shields", "allowlist"]}),
            *attack_fieldsets(),
            ("Defaults and languages", {"fields": names}),
            ("Approvals on another device (CIBA)", {"fields": [f"notifier_{name}" for name in _NOTIFIER], "description": _lacking(obj)}),
            ("Protocol", {"fields": protocol, "classes": ["collapse"]}),
            *kept,
        ]

    def heading_of(self, row: TenantSettings) -> str:
        return "Sign-in settings"

    def get_readonly_fields(self, request: HttpRequest, obj: TenantSettings | None = None) -> Any:
        return () if obj is None else ("tenant", "updated_at")

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        """In the navigation, hide the button that adds a row."""
        return {**super().get_model_perms(request), "add": False}

    def has_delete_permission(self, request: HttpRequest, obj: TenantSettings | None = None) -> bool:
        return False

    def create(self, request: HttpRequest, form: Any) -> TenantSettings:
        return self._save(self.tenant_for_new(request), form)

    def change(self, request: HttpRequest, row: TenantSettings, form: Any) -> None:
        self._save(row.tenant_id, form)

    def _save(self, tenant_id: str, form: TenantSettingsForm) -> TenantSettings:
        row = update_tenant_settings(tenant_id=tenant_id, changes=form.settings())
        for changes, update in (
            (form.brute_force(), update_brute_force),
            (form.suspicion(), update_suspicion),
            (form.leaks(), update_leak_rules),
        ):
            row = update(tenant_id=tenant_id, changes=changes) if changes else row
        return row

    def _place(self, row: TenantSettings | None) -> str:
        place = f"{self.admin_site.name}:authapi_tenantsettings"
        return reverse(f"{place}_add") if row is None else reverse(f"{place}_change", args=(quote(row.pk),))


def _lacking(row: TenantSettings | None) -> str:
    """Return the missing settings for notifying users of approval requests; empty if none are missing."""
    return missing(row.tenant_id) if row is not None and row.pk else ""


def _leaves(problem: Any) -> list[Any]:
    if isinstance(problem, dict):
        return [leaf for inner in problem.values() for leaf in _leaves(inner)]
    return [leaf for inner in problem for leaf in _leaves(inner)] if isinstance(problem, list) else [problem]
