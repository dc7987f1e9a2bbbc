"""Endpoints that client libraries call for features that the service does not have, with neutral responses.

Each row has the path, the scopes, the response and the reason for refusing other values. `authapi.api.neutral` builds endpoints
from the rows. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Form(StrEnum):
    """The form of an empty list."""

    ARRAY = "array"  # a plain array
    LISTED = "listed"  # a plain array, a page with totals, or a checkpoint page, depending on the parameters
    TAKEN = "taken"  # always a checkpoint page
    OBJECT = "object"  # an object that contains the list


class Owner(StrEnum):
    """The resource that the `id` of a path identifies."""

    CONNECTION = "connection"
    ORGANIZATION = "organization"


@dataclass(frozen=True)
class Setting:
    """A document whose members have fixed values. `write` is the method that accepts exactly these values."""

    path: str
    name: str
    noun: str
    value: dict[str, Any]
    refusal: str
    write: str = "patch"


@dataclass(frozen=True)
class EmptyList:
    """A list that is always empty. With `creates`, a POST is refused with an explanation.

    If `owner` is set, the `id` of the path must identify an existing owner.
    """

    path: str
    name: str
    noun: str
    key: str
    refusal: str
    form: Form = Form.LISTED
    creates: bool = True
    owner: Owner | None = None


@dataclass(frozen=True)
class Absent:
    """A single resource that never exists. Reading the resource returns 404. `writes` maps refused methods to the verbs of their scopes.

    If `owner` is set, the `id` of the path must identify an existing owner.
    """

    path: str
    name: str
    noun: str
    refusal: str
    is_read: bool = True
    owner: Owner | None = None
    writes: dict[str, str] = field(default_factory=dict)


_NO_SMS = "Text messages and their sender are configured on the sms connection and in the admin."
_NO_PUSH = "The service sends no push notifications."
_NO_TEXTS = "The pages cannot be replaced. A tenant can set their branding and individual texts."
_NO_CODE = "The service does not run code of tenants."
_NO_FORMS = "The service has no forms and flows."
_NO_PHONES = "Phone providers and templates cannot be set at this endpoint: use the sms connection and the admin."
_NO_TEMPLATES = "The pages cannot be replaced. A tenant can set their branding at /branding and /branding/themes."
_NO_RISK = "The service does not rate the risk of logins."
_UPDATE = {"patch": "update"}

SETTINGS = (
    Setting(
        "attack-protection/bot-detection",
        "bot_detection",
        "attack_protection",
        {
            "challenge_password_policy": "never",
            "challenge_passwordless_policy": "never",
            "challenge_password_reset_policy": "never",
            "allowlist": [],
            "monitoring_mode_enabled": False,
        },
        "The service does not detect bots.",
    ),
    Setting("attack-protection/captcha", "captcha", "attack_protection", {}, "Hosted pages have no captcha."),
    Setting("risk-assessments/settings", "risk_assessment_settings", "attack_protection", {"enabled": False}, _NO_RISK),
    Setting("risk-assessments/settings/new-device", "new_device_settings", "attack_protection", {"remember_for": 0}, _NO_RISK),
    Setting("supplemental-signals", "supplemental_signals", "attack_protection", {"akamai_enabled": False}, _NO_RISK),
    Setting(
        "prompts",
        "prompt_settings",
        "prompts",
        {"universal_login_experience": "new", "identifier_first": False, "webauthn_platform_first_factor": False},
        "The login page shows identifier and password together.",
    ),
    Setting("prompts/<segment:prompt>/partials", "prompt_partials", "prompts", {}, _NO_TEXTS, "put"),
    Setting("guardian/factors/phone/message-types", "phone_message_types", "guardian_factors", {"message_types": []}, _NO_SMS, "put"),
    Setting("guardian/factors/phone/selected-provider", "phone_factor_provider", "guardian_factors", {}, _NO_SMS, "put"),
    Setting("guardian/factors/phone/providers/twilio", "phone_factor_twilio", "guardian_factors", {}, _NO_SMS, "put"),
    Setting("guardian/factors/phone/templates", "phone_factor_templates", "guardian_factors", {}, _NO_SMS, "put"),
    Setting("guardian/factors/sms/providers/twilio", "sms_factor_twilio", "guardian_factors", {}, _NO_SMS, "put"),
    Setting("guardian/factors/sms/templates", "sms_factor_templates", "guardian_factors", {}, _NO_SMS, "put"),
    Setting("guardian/factors/push-notification/providers/apns", "push_factor_apns", "guardian_factors", {}, _NO_PUSH, "put"),
    Setting("guardian/factors/push-notification/providers/sns", "push_factor_sns", "guardian_factors", {}, _NO_PUSH, "put"),
)

LISTS = (
    EmptyList("rules", "rules", "rules", "rules", _NO_CODE),
    EmptyList("rules-configs", "rules_configs", "rules_configs", "rules_configs", _NO_CODE, Form.ARRAY, creates=False),
    EmptyList("hooks", "hooks", "hooks", "hooks", _NO_CODE),
    EmptyList("actions/modules", "action_modules", "actions", "modules", _NO_CODE, Form.OBJECT),
    EmptyList("log-streams", "log_streams", "log_streams", "log_streams", "Read logs at /logs. They are not streamed.", Form.ARRAY),
    EmptyList("network-acls", "network_acls", "network_acls", "network_acls", "The operator controls network access outside the service."),
    EmptyList("forms", "forms", "forms", "forms", _NO_FORMS),
    EmptyList("flows", "flows", "flows", "flows", _NO_FORMS),
    EmptyList("flows/vault/connections", "flow_vault_connections", "flows_vault_connections", "connections", _NO_FORMS),
    EmptyList("prompts/rendering", "prompt_renderings", "prompts", "configs", _NO_TEXTS, creates=False),
    EmptyList("branding/phone/providers", "phone_providers", "phone_providers", "providers", _NO_PHONES, Form.OBJECT),
    EmptyList("branding/phone/templates", "phone_templates", "phone_templates", "templates", _NO_PHONES, Form.OBJECT),
    EmptyList(
        "self-service-profiles",
        "self_service_profiles",
        "self_service_profiles",
        "self_service_profiles",
        "Organizations cannot set up their own connections.",
    ),
    EmptyList(
        "user-attribute-profiles",
        "user_attribute_profiles",
        "user_attribute_profiles",
        "user_attribute_profiles",
        "Attributes are mapped in each connection and each action.",
        Form.TAKEN,
    ),
    EmptyList(
        "connection-profiles",
        "connection_profiles",
        "connection_profiles",
        "connection_profiles",
        "Connections are created without profiles.",
        Form.TAKEN,
    ),
    EmptyList(
        "rate-limit-policies",
        "rate_limit_policies",
        "rate_limit_policies",
        "rate_limit_policies",
        "The operator sets the rate limits of tenants.",
        Form.TAKEN,
    ),
    EmptyList(
        "connections-directory-provisionings",
        "directory_provisionings",
        "directory_provisionings",
        "directory_provisionings",
        "",
        Form.TAKEN,
        creates=False,
    ),
    EmptyList(
        "organizations/<segment:id>/discovery-domains",
        "organization_discovery_domains",
        "organization_discovery_domains",
        "domains",
        "Organizations cannot be found by the domain of an email address.",
        Form.TAKEN,
        owner=Owner.ORGANIZATION,
    ),
)

ABSENT = (
    Absent("branding/templates/universal-login", "login_template", "branding", _NO_TEMPLATES, writes={"put": "update"}),
    Absent(
        "connections/<segment:id>/scim-configuration",
        "connection_scim_configuration",
        "scim_config",
        "Connections do not accept users over SCIM.",
        owner=Owner.CONNECTION,
        writes={"post": "create", **_UPDATE},
    ),
)
