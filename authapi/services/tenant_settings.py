"""Changes the login settings of a tenant, its looks, and its settings for counting failed logins."""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from authapi.clients.user_codes import CHARSETS, MASKS, mask_problem
from authapi.looks.addresses import is_font, is_picture
from authapi.looks.theme import FONT_STACKS
from authapi.models import ApiResource, LoginFailures, TenantSettings
from authapi.services.notifiers import SETTING, take_notifier
from authapi.tenant_settings import BRANDING_DEFAULTS, BRUTE_FORCE_DEFAULTS, DEFAULTS, LIFETIMES, brute_force_values, remembered_settings
from authapi.tokens.contexts import offered
from foundation.database.transactions import after_commit, lock_rows, unit_of_work
from identity.languages import LANGUAGES
from identity.models import Connection, Tenant
from identity.services.failures import Invalid, NotSupported
from identity.services.saving import validated_save

# The longest and the shortest lifetime of a session, in hours: a year and a minute.
LONGEST_LIFETIME = 8760
_SHORTEST_LIFETIME = 1 / 60
MOST_ADDRESSES = 100
MOST_ATTEMPTS = 100
SHIELDS = ("block", "user_notification")
MODES = ("count_per_identifier_and_ip", "count_per_identifier")
TEXTS = ("friendly_name", "support_email", "default_directory", "default_audience")
WEB_ADDRESSES = ("picture_url", "support_url", "default_redirection_uri")
_NESTED = ("error_page", "change_password", "branding")
_PAGES = frozenset({"error_page", "change_password"})
_KNOWN = (*DEFAULTS, *TEXTS, *WEB_ADDRESSES, *_NESTED)
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s#]*")
# Every flag that clients of the interface use, with its fixed value in this service, or None. A flag with None can be set freely: the
# service supports it, or it concerns pages and products that this service does not have.
FLAGS: dict[str, bool | None] = {
    "allow_changing_enable_sso": None,
    "allow_legacy_delegation_grant_types": False,
    "allow_legacy_ro_grant_types": False,
    "allow_legacy_tokeninfo_endpoint": False,
    "change_pwd_flow_v1": False,
    "custom_domains_provisioning": None,
    "dashboard_insights_view": None,
    "dashboard_log_streams_next": None,
    "disable_clickjack_protection_headers": False,
    "disable_fields_map_fix": None,
    "disable_impersonation": True,
    "disable_management_api_sms_obfuscation": None,
    "enable_adfs_waad_email_verification": None,
    "enable_apis_section": None,
    "enable_client_connections": None,
    "enable_dynamic_client_registration": None,
    "enable_idtoken_api2": False,
    "enable_legacy_profile": False,
    "enable_pipeline2": None,
    "enable_public_signup_user_exists_error": False,
    "enable_sso": True,
    "enforce_client_authentication_on_passwordless_start": True,
    "genai_trial": None,
    "improved_signup_bot_detection_in_classic": None,
    "mfa_show_factor_list_on_enrollment": None,
    "no_disclose_enterprise_connections": None,
    "remove_alg_from_jwks": False,
    "revoke_refresh_token_grant": False,
    "trust_azure_adfs_email_verified_connection_property": None,
}


@unit_of_work
def update_tenant_settings(*, tenant_id: str, changes: dict[str, Any]) -> TenantSettings:
    """Replace the given settings, by their names on the wire. Null restores a default; `flags` are merged.

    Raises `Invalid`, and `NotSupported` for a setting without effect in this service.
    """
    _refuse_promises(changes)
    row = locked_settings(tenant_id)
    if SETTING in changes:
        changes = {**changes, SETTING: take_notifier(row, changes[SETTING])}
    values = {**row.values, **changes}
    if changes.get("flags") is not None:
        values["flags"] = {**row.values.get("flags", {}), **changes["flags"]}
    values = _without_gaps(values)
    if "device_flow" in values:
        values["device_flow"] = _with_mask(values["device_flow"])
    _check_pushing(values)
    _check(tenant_id, {name: values[name] for name in changes if name in values})
    has_second_factors = bool(row.second_factors.get("factors") or row.second_factors.get("passkeys"))
    problems = _context_problems(changes.get("acr_values_supported") or [], has_second_factors=has_second_factors)
    if problems:
        raise Invalid(problems)
    row.values = values
    save_settings(row, "values", "sealed_values")
    return row


@unit_of_work
def update_branding(*, tenant_id: str, changes: dict[str, str | None]) -> TenantSettings:
    """Replace the given branding settings, by the names in `BRANDING_DEFAULTS`; empty restores a default. Raises `Invalid`."""
    row = locked_settings(tenant_id)
    looks = {name: value for name, value in {**row.values.get("branding", {}), **changes}.items() if value}
    return update_tenant_settings(tenant_id=tenant_id, changes={"branding": looks})


@unit_of_work
def update_brute_force(*, tenant_id: str, changes: dict[str, Any]) -> TenantSettings:
    """Replace the given settings of brute-force protection. A higher threshold lifts every block. Raises `Invalid`."""
    row = locked_settings(tenant_id)
    before = brute_force_values(row)
    after = {**before, **changes}
    _check_brute_force(after)
    row.attack_protection = {**row.attack_protection, "brute_force_protection": {name: after[name] for name in BRUTE_FORCE_DEFAULTS}}
    save_settings(row, "attack_protection")
    if after["max_attempts"] > before["max_attempts"]:
        LoginFailures.objects.of(tenant_id).exclude(blocked_at=None).delete()
    return row


def is_web_address(value: str) -> bool:
    """Tell whether `value` is an absolute web address without a fragment."""
    return _WEB_ADDRESS.fullmatch(value) is not None


def is_error_page(value: str) -> bool:
    """Tell whether errors may redirect to `value`: a web address without a user name, which could hide the real host."""
    return is_web_address(value) and "@" not in urlsplit(value).netloc and "\\" not in value and value.isprintable()


def locked_settings(tenant_id: str) -> TenantSettings:
    """Return the tenant's settings row. Creates it if missing. The tenant is locked, so that no concurrent change is lost."""
    lock_rows(Tenant, [tenant_id])
    return TenantSettings.objects.of(tenant_id).first() or TenantSettings(tenant_id=tenant_id)


def save_settings(row: TenantSettings, *columns: str) -> None:
    """Save columns of a row of `locked_settings`. After the commit, this process reloads its cached settings."""
    validated_save(row, fields=None if row._state.adding else list(columns))
    after_commit(remembered_settings.forget, row.tenant_id)


def _without_gaps(values: dict[str, Any]) -> dict[str, Any]:
    """Omit null and empty values, also inside the objects that describe a page, because deployment tools send empty members, too."""
    pages = {
        name: {member: value for member, value in (values[name] or {}).items() if value not in (None, "")}
        for name in _PAGES & values.keys()
    }
    return {name: value for name, value in (values | pages).items() if value not in (None, "") and (value or name not in _PAGES)}


def _refuse_promises(changes: dict[str, Any]) -> None:
    for name, value in (changes.get("flags") or {}).items():
        if FLAGS.get(name) is not None and value is not FLAGS[name]:
            raise NotSupported(f"The flag {name} cannot be changed: in this service it is always {str(FLAGS[name]).lower()}.")
    if (changes.get("error_page") or {}).get("html") or (changes.get("error_page") or {}).get("show_log_link"):
        raise NotSupported("The error page cannot be customized, but the setting url can contain the address of your own page.")
    if (changes.get("change_password") or {}).get("enabled") or (changes.get("change_password") or {}).get("html"):
        raise NotSupported("The page for a new password cannot be customized.")


def _check(tenant_id: str, values: dict[str, Any]) -> None:
    """Check only the given values: another setting may refer to an object that was deleted after that setting was saved."""
    errors = {name: ["Unknown setting."] for name in values if name not in _KNOWN}
    errors |= {f"flags.{name}": ["Unknown flag."] for name in values.get("flags", {}) if name not in FLAGS}
    for name in LIFETIMES:
        if not _SHORTEST_LIFETIME <= values.get(name, 1) <= LONGEST_LIFETIME:
            errors[name] = [f"A minute to {LONGEST_LIFETIME} hours."]
    for name in WEB_ADDRESSES:
        if name in values and not is_web_address(values[name]):
            errors[name] = ["An address that starts with https:// or http:// is expected, without a fragment."]
    page = values.get("error_page", {}).get("url")
    if page and not is_error_page(page):
        errors["error_page.url"] = ["An address that starts with https:// or http:// is expected, without a user name or a fragment."]
    errors |= _device_problems(values.get("device_flow", {}))
    errors |= _account_problems(tenant_id, values.get("account_page", {}))
    errors |= _language_problems(values.get("enabled_locales", [])) | _branding_problems(values.get("branding", {}))
    errors |= _missing_rows(tenant_id, values)
    if errors:
        raise Invalid(errors)


def _with_mask(device_flow: dict[str, str]) -> dict[str, str]:
    """Return the format of user codes with all members; a missing member has its default."""
    charset = device_flow.get("charset") or "base20"
    return {**device_flow, "charset": charset, "mask": device_flow.get("mask") or MASKS.get(charset, "")}


def _device_problems(device_flow: dict[str, str]) -> dict[str, list[str]]:
    if not device_flow:
        return {}
    if device_flow["charset"] not in CHARSETS:
        return {"device_flow.charset": [f"One of {', '.join(CHARSETS)}."]}
    problem = mask_problem(device_flow["charset"], device_flow["mask"])
    return {"device_flow.mask": [problem]} if problem else {}


def _check_pushing(values: dict[str, Any]) -> None:
    name = "require_pushed_authorization_requests"
    if values.get(name) and not values.get("pushed_authorization_requests_supported", True):
        raise Invalid({name: ["Set pushed_authorization_requests_supported to true first. Otherwise no user can log in."]})


def _context_problems(names: list[str], *, has_second_factors: bool) -> dict[str, list[str]]:
    """Refuse a context that no login meets, because requests for it would always fail."""
    known = offered(has_second_factors=has_second_factors)
    unmet = [name for name in names if name not in known]
    return {"acr_values_supported": [f"No login meets {unmet[0][:64]}. Choose from {', '.join(known)}."]} if unmet else {}


def _language_problems(codes: list[str]) -> dict[str, list[str]]:
    """Refuse a language without a catalogue, because its pages would be in English. Also refuse a language that is listed twice."""
    unknown = [code for code in codes if code not in LANGUAGES]
    if unknown:
        known = ", ".join(f"{code} ({language.name})" for code, language in LANGUAGES.items())
        return {"enabled_locales": [f"There are no texts in the language {unknown[0][:35]}. Choose from {known}."]}
    return {"enabled_locales": ["List each language once."]} if len(set(codes)) < len(codes) else {}


def _branding_problems(branding: dict[str, str]) -> dict[str, list[str]]:
    problems = {f"branding.{name}": ["Unknown setting."] for name in branding if name not in BRANDING_DEFAULTS}
    for name in ("logo_url", "favicon_url"):
        if branding.get(name) and not is_picture(branding[name]):
            # Browsers do not load pictures from http URLs into https pages.
            problems[f"branding.{name}"] = ["An address that starts with https:// is expected."]
    if branding.get("font_url") and not is_font(branding["font_url"]):
        problems["branding.font_url"] = ["The https address of a font file is expected: .woff2, .woff, .ttf or .otf."]
    if branding.get("font_stack") and branding["font_stack"] not in FONT_STACKS:
        problems["branding.font_stack"] = [f"One of {', '.join(filter(None, FONT_STACKS))}."]
    for name in ("primary_color", "page_background"):
        if branding.get(name) and not _COLOR.fullmatch(branding[name]):
            problems[f"branding.{name}"] = ["A color is # and six hexadecimal digits."]
    return problems


def _account_problems(tenant_id: str, page: dict[str, Any]) -> dict[str, list[str]]:
    names = page.get("connections", [])
    known = set(Connection.objects.of(tenant_id).filter(name__in=names).values_list("name", flat=True)) if names else set()
    unknown = next((name for name in names if name not in known), None)
    return {} if unknown is None else {"account_page.connections": [f"There is no connection {unknown[:128]}."]}


def _missing_rows(tenant_id: str, values: dict[str, Any]) -> dict[str, list[str]]:
    problems = {}
    directory, audience = values.get("default_directory"), values.get("default_audience")
    if directory and not any(found.is_database for found in Connection.objects.of(tenant_id).filter(name=directory)):
        problems["default_directory"] = ["The name of a database connection is expected."]
    if audience and not ApiResource.objects.of(tenant_id).filter(identifier=audience).exists():
        problems["default_audience"] = ["The identifier of an API is expected."]
    return problems


def _check_brute_force(values: dict[str, Any]) -> None:
    errors = {name: ["Unknown setting."] for name in values if name not in BRUTE_FORCE_DEFAULTS}
    if not 1 <= values["max_attempts"] <= MOST_ATTEMPTS:
        errors["max_attempts"] = [f"1 to {MOST_ATTEMPTS}."]
    if values["mode"] not in MODES:
        errors["mode"] = [f"One of {', '.join(MODES)}."]
    if set(values["shields"]) - set(SHIELDS):
        errors["shields"] = [f"Some of {', '.join(SHIELDS)}."]
    errors |= allowlist_problems(values["allowlist"])
    if errors:
        raise Invalid(errors)


def allowlist_problems(entries: list[str]) -> dict[str, list[str]]:
    """Return the errors, by field, of a list of IP addresses for which failed logins are not counted."""
    wrong = next((entry for entry in entries if not _is_network(entry)), None)
    if wrong is not None:
        return {"allowlist": [f"{wrong[:64]} is not an address or a network."]}
    return {"allowlist": [f"At most {MOST_ADDRESSES}."]} if len(entries) > MOST_ADDRESSES else {}


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True
