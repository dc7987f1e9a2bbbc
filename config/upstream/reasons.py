"""Why an operation of the client libraries is not there, by its name or the first parts of it; the longest fit counts. Pure.

What is built needs no line here: the routes say so, and a line that is left over changes nothing.
"""

from __future__ import annotations

from enum import StrEnum


class Standing(StrEnum):
    """Whether an operation that is not there will come."""

    REFUSED = "refused"
    PLANNED = "planned"


_FIXED_STEPS = "logins follow fixed steps, which are not assembled of blocks."
_EXTENSIONS = "no code of a tenant runs in a login; event streams deliver changes to actions."
_SMS = "who sends text messages, and what they say, is set at the sms connection and in the admin."
_FACTOR_SETTINGS = "how long browsers are remembered is set by PATCH /second-factors, and in the admin."
_SEARCH = "lists with their filters are there; a search comes."
_EDGE_DECIDES = "the edge in front of the service and the operator decide which traffic comes in."
_INBOUND = "users and groups come in by the interface, imports and logins."

REASONS: dict[str, tuple[Standing, str]] = {
    "actions.modules": (Standing.REFUSED, "actions are installed by the operator and share no modules."),
    "actions": (Standing.PLANNED, "this part of actions is not there yet."),
    "agents": (Standing.REFUSED, "the service has no agents."),
    "attack_protection.bot_detection": (Standing.REFUSED, "the service judges rates and failures, and no behavior of browsers."),
    "attack_protection.captcha": (Standing.REFUSED, "no page shows a captcha."),
    "attack_protection.captcha_policies": (Standing.REFUSED, "no page shows a captcha."),
    "attack_protection.phone_provider_protection": (Standing.REFUSED, _SMS),
    "branding.phone": (Standing.PLANNED, _SMS),
    "branding.templates": (Standing.REFUSED, "the pages are those of the service; a tenant sets their looks."),
    "client_grants.search": (Standing.PLANNED, _SEARCH),
    "client_profiles": (Standing.REFUSED, "clients are described one by one."),
    "clients.preview_cimd_metadata": (Standing.REFUSED, "clients are registered here, and not by documents elsewhere."),
    "clients.register_cimd_client": (Standing.REFUSED, "clients are registered here, and not by documents elsewhere."),
    "clients.search": (Standing.PLANNED, _SEARCH),
    "connection_profiles": (Standing.REFUSED, "connections are described one by one."),
    "connections.directory_provisioning": (Standing.REFUSED, _INBOUND),
    "connections.keys": (Standing.REFUSED, "connections sign requests with no key of their own."),
    "connections.scim_configuration": (Standing.PLANNED, _INBOUND),
    "experimentation": (Standing.REFUSED, "the service runs no experiments."),
    "flows": (Standing.REFUSED, _FIXED_STEPS),
    "forms": (Standing.REFUSED, _FIXED_STEPS),
    "guardian": (Standing.REFUSED, _FACTOR_SETTINGS),
    "guardian.factors.duo": (Standing.REFUSED, "factors of other vendors are not asked for."),
    "guardian.factors.email": (Standing.REFUSED, "codes by e-mail have six digits and count for five minutes."),
    "guardian.factors.phone": (Standing.REFUSED, _SMS),
    "guardian.factors.push_notification": (Standing.REFUSED, "the service sends no push notifications."),
    "guardian.factors.sms": (Standing.REFUSED, _SMS),
    "hooks": (Standing.REFUSED, _EXTENSIONS),
    "keys.custom_signing": (Standing.REFUSED, "the service makes its signing keys itself and never takes one in."),
    "keys.encryption": (Standing.REFUSED, "the operator holds the keys that encrypt secrets at rest."),
    "keys.network_acls": (Standing.REFUSED, _EDGE_DECIDES),
    "log_streams": (Standing.REFUSED, "event streams deliver changes, and GET /logs lists logins."),
    "network_acls": (Standing.REFUSED, _EDGE_DECIDES),
    "organizations.clients": (Standing.PLANNED, "which clients members may use is set at the client, by organization_usage."),
    "organizations.discovery_domains": (Standing.PLANNED, "an organization is named at the login, and not found by an address."),
    "organizations.organization_template": (Standing.REFUSED, "organizations are described one by one."),
    "organizations.search": (Standing.PLANNED, _SEARCH),
    "prompts": (Standing.REFUSED, "the pages and their texts are those of the service."),
    "rate_limit_policies": (Standing.REFUSED, "the operator sets the rates of all tenants."),
    "resource_servers.search": (Standing.PLANNED, _SEARCH),
    "risk_assessments": (Standing.REFUSED, "the service judges rates and failures, and makes no scores."),
    "rules": (Standing.REFUSED, _EXTENSIONS),
    "rules_configs": (Standing.REFUSED, _EXTENSIONS),
    "self_service_profiles": (Standing.REFUSED, "administrators of the tenant set up connections."),
    "stats": (Standing.PLANNED, "the start page of the admin shows these figures."),
    "supplemental_signals": (Standing.REFUSED, "the service takes no signals of other vendors."),
    "user_attribute_profiles": (Standing.REFUSED, "attributes are mapped at each connection."),
    "users.connected_accounts": (Standing.REFUSED, "tokens of providers are not kept for applications."),
    "users.risk_assessments": (Standing.REFUSED, "the service judges rates and failures, and makes no scores."),
    "verifiable_credentials": (Standing.REFUSED, "no login takes verifiable credentials."),
}
