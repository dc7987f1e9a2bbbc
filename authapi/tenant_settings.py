"""The login settings of a tenant, with defaults. `services.tenant_settings` writes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from authapi.clients.user_codes import MASKS, UserCodeForm
from authapi.models import TenantSettings
from foundation.memory.ttl_cache import Remembered
from identity.languages import DEFAULT, LANGUAGES
from identity.models import Tenant

# How long a process caches the settings. Other processes see a change within this time.
_REMEMBERED_SECONDS = 1.0

# Lifetimes are in hours, as in the API. An ephemeral session ends with the browser, or after one idle day.
DEFAULTS: dict[str, Any] = {
    "session_lifetime": 168,
    "idle_session_lifetime": 72,
    "ephemeral_session_lifetime": 72,
    "idle_ephemeral_session_lifetime": 24,
    "allowed_logout_urls": [],
    "enabled_locales": ["en"],
    "session_cookie": {"mode": "persistent"},
    # The user must confirm a logout request without an id token, because every web page can contain a link to such a request
    # (OpenID Connect RP-Initiated Logout 1.0, 6).
    "sessions": {"oidc_logout_prompt_enabled": True},
    "oidc_logout": {"rp_logout_end_session_endpoint_discovery": True},
    "mtls": {"enable_endpoint_aliases": False},
    "pushed_authorization_requests_supported": True,
    # Upstream does not have this setting; RFC 9126, 5 defines its name. If it is on, applications of the tenant must push their
    # authorization requests.
    "require_pushed_authorization_requests": False,
    # Unlike in upstream, the default is on: RFC 9207 prevents mix-up attacks, and clients that do not know the parameter `iss` ignore it.
    "authorization_response_iss_parameter_supported": True,
    # The next two settings are not in upstream. They are off, because they reveal more about a session or a token than most tenants need.
    "session_management_supported": False,
    "token_introspection_supported": False,
    "allow_organization_name_in_authentication_api": False,
    # Upstream does not have this setting. Without it, any sender could register any number of applications while registration is on.
    "require_initial_access_token": True,
    "acr_values_supported": [],
    # RFC 8707: with the value `compatibility`, the parameter `resource` is read if a request has no `audience`.
    "resource_parameter_profile": "audience",
    # Upstream does not have this setting. The account page is off by default, so that an upgrade does not add a page for users.
    "account_page": {"enabled": False, "data_export": True, "deletion": False, "connections": []},
    "device_flow": {"charset": "base20", "mask": MASKS["base20"]},
    # Upstream does not have this setting. The channel `email` or `webhook` notifies users of requests that they approve in another browser
    # (CIBA).
    "backchannel_authentication": {"channel": "email", "webhook_url": ""},
    # Upstream does not have this setting. `off` sends no mails, `own` sends mails about logins at this service, and `all` also about logins
    # at other providers.
    "new_device_mails": "off",
    "flags": {},
}
NEW_DEVICE_MAILS = ("off", "own", "all")
BRUTE_FORCE_DEFAULTS: dict[str, Any] = {
    "enabled": True,
    "shields": ["block", "user_notification"],
    "allowlist": [],
    "mode": "count_per_identifier_and_ip",
    "max_attempts": 10,
}
# Settings of the hosted pages. The management interface has separate endpoints for them, so its tenant settings do not contain them.
BRANDING_DEFAULTS: dict[str, str] = {
    "logo_url": "",
    "favicon_url": "",
    "primary_color": "",
    "page_background": "",
    "font_url": "",
    "font_stack": "",
}


@dataclass(frozen=True)
class BruteForce:
    """Failed logins are counted per identifier. Depending on `mode`, each IP address has a count of its own.

    After `max_attempts` failures, logins are blocked.
    """

    enabled: bool
    shields: frozenset[str]
    allowlist: tuple[str, ...]
    mode: str
    max_attempts: int

    @property
    def blocks(self) -> bool:
        """Whether logins are blocked when the threshold is reached."""
        return self.enabled and "block" in self.shields

    @property
    def notifies(self) -> bool:
        """Whether a blocked user gets a mail with an unblock link."""
        return self.enabled and "user_notification" in self.shields

    @property
    def counts_addresses(self) -> bool:
        """Whether failures are counted separately per IP address."""
        return self.mode == "count_per_identifier_and_ip"


@dataclass(frozen=True)
class Notifier:
    """How users are notified of requests of applications. `channel` is `email` or `webhook`. The webhook secret is not included."""

    channel: str
    webhook_url: str


@dataclass(frozen=True)
class AccountPage:
    """The functions of the account page at `/account`, and the names of the connections whose users may use it.

    If `connections` is empty, the users of every connection that an application uses may use the page.
    """

    enabled: bool
    data_export: bool
    deletion: bool
    connections: tuple[str, ...]


@dataclass(frozen=True)
class SignInSettings:
    """The settings of a tenant that logins and pages read. Unset texts are empty. Colors are `#rrggbb` or empty."""

    friendly_name: str
    picture_url: str
    support_email: str
    support_url: str
    allowed_logout_urls: tuple[str, ...]
    default_directory: str
    default_audience: str
    default_redirection_uri: str
    error_page_url: str
    session_lifetime: timedelta
    idle_session_lifetime: timedelta
    ephemeral_session_lifetime: timedelta
    idle_ephemeral_session_lifetime: timedelta
    is_session_persistent: bool
    is_logout_prompt_enabled: bool
    is_logout_endpoint_discovered: bool
    has_mtls_aliases: bool
    sends_issuer: bool
    takes_pushed_requests: bool
    requires_pushed_requests: bool
    manages_sessions: bool
    introspects_tokens: bool
    takes_organization_names: bool
    enabled_locales: tuple[str, ...]
    takes_registrations: bool
    requires_initial_token: bool
    acr_values: tuple[str, ...]
    reads_resource: bool
    user_codes: UserCodeForm
    notifier: Notifier
    new_device_mails: str
    account_page: AccountPage
    logo_url: str
    favicon_url: str
    primary_color: str
    page_background: str
    font_url: str
    font_stack: str
    brute_force: BruteForce


def sign_in_settings(tenant_id: str) -> SignInSettings:
    """Return the settings of a tenant, cached for at most a second. Reads the database on a miss."""
    return remembered_settings.get(tenant_id)


def languages_of(tenant_id: str) -> tuple[str, ...]:
    """Return the enabled languages of a tenant, its default first."""
    return sign_in_settings(tenant_id).enabled_locales


def settings_values(row: TenantSettings | None) -> dict[str, Any]:
    """Return the settings under their API names, with defaults. Nested objects have all their members."""
    stored: dict[str, Any] = row.values if row is not None else {}
    nested = {name: {**default, **stored.get(name, {})} for name, default in DEFAULTS.items() if isinstance(default, dict)}
    return {**DEFAULTS, **stored, **nested}


def brute_force_values(row: TenantSettings | None) -> dict[str, Any]:
    """Return the settings of brute-force protection under their API names, with defaults."""
    stored: dict[str, Any] = row.attack_protection if row is not None else {}
    return {**BRUTE_FORCE_DEFAULTS, **stored.get("brute_force_protection", {})}


def _load(tenant_id: str) -> SignInSettings:
    row = TenantSettings.objects.of(tenant_id).first()
    values = settings_values(row)
    looks = {**BRANDING_DEFAULTS, **values.get("branding", {})}
    return SignInSettings(
        friendly_name=values.get("friendly_name") or Tenant.objects.values_list("name", flat=True).get(pk=tenant_id),
        error_page_url=values.get("error_page", {}).get("url", ""),
        is_session_persistent=values["session_cookie"]["mode"] == "persistent",
        is_logout_prompt_enabled=values["sessions"]["oidc_logout_prompt_enabled"],
        is_logout_endpoint_discovered=values["oidc_logout"]["rp_logout_end_session_endpoint_discovery"],
        has_mtls_aliases=values["mtls"]["enable_endpoint_aliases"],
        sends_issuer=values["authorization_response_iss_parameter_supported"],
        takes_pushed_requests=values["pushed_authorization_requests_supported"],
        requires_pushed_requests=values["require_pushed_authorization_requests"],
        manages_sessions=values["session_management_supported"],
        introspects_tokens=values["token_introspection_supported"],
        takes_organization_names=values["allow_organization_name_in_authentication_api"],
        takes_registrations=bool(values["flags"].get("enable_dynamic_client_registration")),
        requires_initial_token=values["require_initial_access_token"],
        acr_values=tuple(values["acr_values_supported"]),
        reads_resource=values["resource_parameter_profile"] == "compatibility",
        user_codes=UserCodeForm(**values["device_flow"]),
        notifier=Notifier(**values["backchannel_authentication"]),
        new_device_mails=values["new_device_mails"],
        account_page=AccountPage(**{**values["account_page"], "connections": tuple(values["account_page"]["connections"])}),
        **{name: looks[name] for name in BRANDING_DEFAULTS if name != "logo_url"},
        logo_url=looks["logo_url"] or values.get("picture_url", ""),
        brute_force=_brute_force(row),
        **_typed(values),
    )


def _typed(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that have the same name in the API and in `SignInSettings`, with the types of `SignInSettings`."""
    return {
        **{name: values.get(name, "") for name in _TEXTS},
        "allowed_logout_urls": tuple(values["allowed_logout_urls"]),
        # Older versions accepted every language code. The service neither uses nor advertises a language without a catalogue.
        "enabled_locales": tuple(code for code in values["enabled_locales"] if code in LANGUAGES) or (DEFAULT,),
        **{name: timedelta(hours=values[name]) for name in LIFETIMES},
    }


def _brute_force(row: TenantSettings | None) -> BruteForce:
    values = brute_force_values(row)
    return BruteForce(**{**values, "shields": frozenset(values["shields"]), "allowlist": tuple(values["allowlist"])})


LIFETIMES = ("session_lifetime", "idle_session_lifetime", "ephemeral_session_lifetime", "idle_ephemeral_session_lifetime")
_TEXTS = ("picture_url", "support_email", "support_url", "default_directory", "default_audience", "default_redirection_uri")
remembered_settings: Remembered[str, SignInSettings] = Remembered(_load, seconds=_REMEMBERED_SECONDS)
