"""Reasons why this service lacks operations of the client libraries, by name or prefix; the longest match applies. Pure.

Implemented operations need no entry here, because the routes list them. An unused entry has no effect.
"""

from __future__ import annotations

from enum import StrEnum


class Standing(StrEnum):
    """Whether a missing operation is planned."""

    REFUSED = "refused"
    PLANNED = "planned"


_FIXED_STEPS = "logins follow fixed steps and cannot be assembled from blocks."
_EXTENSIONS = "tenants cannot run code in a login; event streams deliver changes to actions."
_SMS = "provider and texts of text messages are set at the sms connection and in the admin."
_FACTOR_SETTINGS = "PATCH /second-factors and the admin set how long browsers are remembered."
_SEARCH = "lists with filters exist; a search is planned."
_EDGE_DECIDES = "the operator filters traffic at the edge in front of the service."
_INBOUND = "the interface, imports and logins create users and groups."

REASONS: dict[str, tuple[Standing, str]] = {
    "actions.modules": (Standing.REFUSED, "the operator installs actions, and actions share no modules."),
    "actions": (Standing.PLANNED, "this part of actions is not implemented yet."),
    "agents": (Standing.REFUSED, "the service has no agents."),
    "attack_protection.bot_detection": (Standing.REFUSED, "the service checks rates and failures, not the behavior of browsers."),
    "attack_protection.captcha": (Standing.REFUSED, "no page shows a captcha."),
    "attack_protection.captcha_policies": (Standing.REFUSED, "no page shows a captcha."),
    "attack_protection.phone_provider_protection": (Standing.REFUSED, _SMS),
    "branding.phone": (Standing.PLANNED, _SMS),
    "branding.templates": (Standing.REFUSED, "tenants cannot replace the pages of the service; they set the branding of the pages."),
    "client_grants.search": (Standing.PLANNED, _SEARCH),
    "client_profiles": (Standing.REFUSED, "clients are configured one by one."),
    "clients.preview_cimd_metadata": (Standing.REFUSED, "clients are registered in this service, not by external documents."),
    "clients.register_cimd_client": (Standing.REFUSED, "clients are registered in this service, not by external documents."),
    "clients.search": (Standing.PLANNED, _SEARCH),
    "connection_profiles": (Standing.REFUSED, "connections are configured one by one."),
    "connections.directory_provisioning": (Standing.REFUSED, _INBOUND),
    "connections.keys": (Standing.REFUSED, "connections have no signing keys of their own."),
    "connections.scim_configuration": (Standing.PLANNED, _INBOUND),
    "experimentation": (Standing.REFUSED, "the service runs no experiments."),
    "flows": (Standing.REFUSED, _FIXED_STEPS),
    "forms": (Standing.REFUSED, _FIXED_STEPS),
    "guardian": (Standing.REFUSED, _FACTOR_SETTINGS),
    "guardian.factors.duo": (Standing.REFUSED, "factors of other vendors are not supported."),
    "guardian.factors.email": (Standing.REFUSED, "codes by email have six digits and expire after five minutes."),
    "guardian.factors.phone": (Standing.REFUSED, _SMS),
    "guardian.factors.push_notification": (Standing.REFUSED, "the service sends no push notifications."),
    "guardian.factors.sms": (Standing.REFUSED, _SMS),
    "hooks": (Standing.REFUSED, _EXTENSIONS),
    "keys.custom_signing": (Standing.REFUSED, "the service creates its own signing keys and does not import keys."),
    "keys.encryption": (Standing.REFUSED, "the operator keeps the keys that encrypt secrets at rest."),
    "keys.network_acls": (Standing.REFUSED, _EDGE_DECIDES),
    "log_streams": (Standing.REFUSED, "event streams deliver changes, and GET /logs lists logins."),
    "network_acls": (Standing.REFUSED, _EDGE_DECIDES),
    "organizations.clients": (Standing.PLANNED, "organization_usage of a client decides which clients members may use."),
    "organizations.discovery_domains": (Standing.PLANNED, "a login names its organization; organizations are not found by email domain."),
    "organizations.organization_template": (Standing.REFUSED, "organizations are configured one by one."),
    "organizations.search": (Standing.PLANNED, _SEARCH),
    "prompts": (Standing.REFUSED, "tenants can change the texts of the pages, but not replace the pages."),
    "rate_limit_policies": (Standing.REFUSED, "the operator sets the rates of all tenants."),
    "resource_servers.search": (Standing.PLANNED, _SEARCH),
    "risk_assessments": (Standing.REFUSED, "the service checks rates and failures, and computes no risk scores."),
    "rules": (Standing.REFUSED, _EXTENSIONS),
    "rules_configs": (Standing.REFUSED, _EXTENSIONS),
    "self_service_profiles": (Standing.REFUSED, "administrators of the tenant set up connections."),
    "stats": (Standing.PLANNED, "the start page of the admin shows these figures."),
    "supplemental_signals": (Standing.REFUSED, "the service accepts no signals of other vendors."),
    "user_attribute_profiles": (Standing.REFUSED, "each connection maps attributes."),
    "users.connected_accounts": (Standing.REFUSED, "tokens of providers are not stored for applications."),
    "users.risk_assessments": (Standing.REFUSED, "the service checks rates and failures, and computes no risk scores."),
    "verifiable_credentials": (Standing.REFUSED, "logins do not accept verifiable credentials."),
}
