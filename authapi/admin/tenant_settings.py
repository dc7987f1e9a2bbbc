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
    ("block", "Block: even the correct password is refused until the block is lifted"),
    ("user_notification", "Notify the user: an email with a link that lifts the block"),
)
_MODE_NAMES = {
    "count_per_identifier_and_ip": "For each user and IP address: an attacker at another IP address cannot lock the user out",
    "count_per_identifier": "For each user, from all IP addresses together: stronger, but every attacker can lock a known user out",
}
_TARGETS = (
    ("audience", "With the parameter audience"),
    ("compatibility", "With audience or, if audience is missing, with resource (RFC 8707)"),
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
_CHARSET_NAMES = [("base20", "Letters without vowels, such as WDJB-MJHT"), ("digits", "Digits, for remote controls without letters")]
_CHANNEL_NAMES = {EMAIL: "By email, with a link", WEBHOOK: "By a webhook, which notifies users"}
_NOTIFIER = ("channel", "webhook_url", SECRET)
_LANGUAGES = ", ".join(f"{code} ({language.name})" for code, language in LANGUAGES.items())
_WIDE = forms.TextInput(attrs={"size": 60})
_REGISTERS = "enable_dynamic_client_registration"
# A tenant has one row, so the form cannot add another row.
_ALONE = {"title": "Sign-in settings", "show_save_and_add_another": False}
_NULL_WHEN_EMPTY = (*LIFETIMES, "enabled_locales")


def _hours(label: str, help_text: str) -> forms.FloatField:
    return forms.FloatField(required=False, label=label, help_text=help_text, widget=forms.NumberInput(attrs={"step": "any", "min": 1}))


class TenantSettingsForm(AttackFields):
    friendly_name = forms.CharField(required=False, max_length=200, help_text="Shown on the login pages. Empty: the name of the tenant.")
    support_email = forms.CharField(required=False, max_length=254, help_text="For users who need help. Shown on pages and in emails.")
    support_url = forms.CharField(
        required=False, max_length=2048, label="Support page", widget=_WIDE, help_text="Address of a page for users who need help."
    )
    picture_url = forms.CharField(
        required=False, max_length=2048, label="Picture", widget=_WIDE, help_text="Address of a picture. Used if Branding has no logo."
    )
    session_lifetime = _hours("Session, absolute lifetime", "Hours until users must log in again.")
    idle_session_lifetime = _hours("Session, idle lifetime", "Hours without use until users must log in again.")
    ephemeral_session_lifetime = _hours(
        "Session until the browser closes, absolute lifetime", "Hours until users must log in again, if sessions end with the browser."
    )
    idle_ephemeral_session_lifetime = _hours(
        "Session until the browser closes, idle lifetime",
        "Hours without use until users must log in again, if sessions end with the browser.",
    )
    cookie_mode = forms.ChoiceField(
        choices=[("persistent", "Sessions continue"), ("non-persistent", "Sessions end")],
        label="When the browser is closed",
    )
    allowed_logout_urls = LinesField(
        label="Logout addresses",
        help_text="One address per line, to which users can return after logouts with WS-Federation, or without the name of a client.",
    )
    oidc_logout_prompt_enabled = forms.BooleanField(
        required=False,
        label="Ask before a logout without an id token",
        help_text="Such a logout link could come from an attacker. With this setting, the user must confirm the logout.",
    )
    rp_logout_end_session_endpoint_discovery = forms.BooleanField(
        required=False, label="Include the logout endpoint in the discovery document"
    )
    default_directory = forms.CharField(
        required=False, max_length=128, help_text="Name of the database connection for password logins whose request names none."
    )
    default_audience = forms.CharField(
        required=False, max_length=600, widget=_WIDE, help_text="Identifier of the API for requests that name no audience."
    )
    default_redirection_uri = forms.CharField(
        required=False,
        max_length=2048,
        label="Fallback page",
        widget=_WIDE,
        help_text="The page to which users are sent if a login cannot continue, such as a start page.",
    )
    enabled_locales = LinesField(label="Languages", help_text=f"One code per line: {_LANGUAGES}. The first one is the default.")
    authorization_response_iss_parameter_supported = forms.BooleanField(
        required=False, label="Include the issuer in responses of /authorize", help_text="Prevents mix-up attacks (RFC 9207)."
    )
    allow_organization_name_in_authentication_api = forms.BooleanField(
        required=False,
        label="Accept names of organizations in requests",
        help_text="In place of the ids of organizations. Tokens then contain the name, too.",
    )
    pushed_authorization_requests_supported = forms.BooleanField(
        required=False,
        label="Accept pushed authorization requests",
        help_text="Applications can send a login request to /oauth/par, and then send the browser to /authorize with a reference to it.",
    )
    require_pushed_authorization_requests = forms.BooleanField(
        required=False,
        label="Require pushed authorization requests",
        help_text="For all applications. Users can no longer log in to applications that cannot authenticate, such as "
        "single-page applications.",
    )
    resource_parameter_profile = forms.ChoiceField(
        choices=_TARGETS, label="How requests specify an API", help_text="An audience takes precedence over a resource."
    )
    acr_values_supported = forms.MultipleChoiceField(
        required=False,
        choices=[(name, _CONTEXTS[name]) for name in offered(has_second_factors=True)],
        widget=forms.CheckboxSelectMultiple,
        label="Authentication contexts",
        help_text="Contexts that applications can request with acr_values and that tokens contain as acr. No selection: all.",
    )
    takes_registrations = forms.BooleanField(
        required=False,
        label="Let applications register themselves",
        help_text="At /oidc/register (RFC 7591). They are third-party clients, so users must consent.",
    )
    require_initial_access_token = forms.BooleanField(
        required=False,
        label="Require an initial access token",
        help_text="If off, any sender on the network can register an application. Create tokens under Initial access tokens.",
    )
    device_charset = forms.ChoiceField(choices=_CHARSET_NAMES, label="Characters of device codes")
    device_mask = forms.CharField(
        max_length=LONGEST_MASK,
        label="Format of device codes",
        help_text="Each asterisk is replaced by one character. Hyphens and spaces separate groups. At least 8 letters or 9 digits.",
    )
    notifier_channel = forms.ChoiceField(
        choices=[(name, _CHANNEL_NAMES[name]) for name in CHANNELS],
        label="How users are notified of approval requests",
        help_text="For requests of applications to /bc-authorize (CIBA).",
    )
    notifier_webhook_url = forms.CharField(
        required=False, max_length=512, label="Webhook for approval requests", widget=_WIDE, help_text="An https address."
    )
    notifier_webhook_secret = forms.CharField(
        required=False,
        max_length=512,
        label="Secret of the webhook",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Signs webhook calls (Standard Webhooks). Leave empty to keep the saved secret. A new address needs the secret again.",
    )
    session_management_supported = forms.BooleanField(
        required=False,
        label="Let applications observe the session",
        help_text="A hidden frame tells whether the user is still logged in (OpenID Connect Session Management). It fails in browsers "
        "that block cookies of other sites.",
    )
    token_introspection_supported = forms.BooleanField(
        required=False,
        label="Let applications inspect tokens",
        help_text="At /oauth/introspect (RFC 7662), for applications that authenticate: their own tokens, and tokens for their API.",
    )
    account_enabled = forms.BooleanField(required=False, label="Users can manage their account", help_text="At the address /account.")
    account_data_export = forms.BooleanField(required=False, label="Users can download their data")
    account_deletion = forms.BooleanField(
        required=False,
        label="Users can delete their account",
        help_text="The account and its data are deleted at once. This cannot be undone.",
    )
    account_connections = LinesField(
        label="Connections for logins to the account page",
        help_text="One name per line. Empty: every connection that an application uses.",
    )
    brute_force_enabled = forms.BooleanField(
        required=False, label="Count failed logins", help_text="If off, users are never blocked after failed logins."
    )
    max_attempts = forms.IntegerField(
        min_value=1, max_value=100, label="Failures before a block", help_text="If you increase this number, all blocks end."
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
        """Return the changed settings as the management API expects them. Emptied settings are null."""
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
    empty_text = "No changed settings. All tenants have the default settings."
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
            ("Defaults", {"fields": names}),
            ("Approvals on another device (CIBA)", {"fields": [f"notifier_{name}" for name in _NOTIFIER], "description": _lacking(obj)}),
            ("Protocol", {"fields": protocol, "classes": ["collapse"]}),
            *kept,
        ]

    def heading_of(self, row: TenantSettings) -> str:
        return "Sign-in settings"

    def get_readonly_fields(self, request: HttpRequest, obj: TenantSettings | None = None) -> Any:
        return () if obj is None else ("tenant", "updated_at")

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        """Hide the button in the navigation that adds a row."""
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
    """Return the missing settings for notifying users of approvals; empty if none are missing."""
    return missing(row.tenant_id) if row is not None and row.pk else ""


def _leaves(problem: Any) -> list[Any]:
    if isinstance(problem, dict):
        return [leaf for inner in problem.values() for leaf in _leaves(inner)]
    return [leaf for inner in problem for leaf in _leaves(inner)] if isinstance(problem, list) else [problem]
