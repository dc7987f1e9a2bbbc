"""Every scope of the management interface: verb and noun. Pure."""

from __future__ import annotations

_CRUD = ("read", "create", "update", "delete")
_NOUNS: dict[str, tuple[str, ...]] = {
    "actions": _CRUD,
    "attack_protection": ("read", "update"),
    "client_credentials": _CRUD,
    "client_grants": _CRUD,
    "client_keys": ("read", "update"),
    "client_summary": ("read",),
    "clients": _CRUD,
    "connections": _CRUD,
    "custom_domains": _CRUD,
    "device_credentials": ("read", "delete"),
    "event_deliveries": ("read", "update"),
    "event_streams": _CRUD,
    "events": ("read",),
    "grants": ("read", "delete"),
    "group_members": ("read", "create", "delete"),
    "group_roles": ("read", "create", "delete"),
    "groups": _CRUD,
    "logs": ("read",),
    "logs_users": ("read",),
    "organization_client_grants": ("read", "create", "delete"),
    "organization_connections": _CRUD,
    "organization_group_roles": ("read", "create", "delete"),
    "organization_groups": ("read",),
    "organization_invitations": ("read", "create", "delete"),
    "organization_member_effective_roles": ("read",),
    "organization_member_role_source_groups": ("read",),
    "organization_member_roles": ("read", "create", "delete"),
    "organization_members": ("read", "create", "delete"),
    "organizations": _CRUD,
    "organizations_summary": ("read",),
    "refresh_tokens": ("read", "update", "delete"),
    "resource_servers": _CRUD,
    "role_members": ("read", "create", "delete"),
    "roles": _CRUD,
    "sessions": ("read", "update", "delete"),
    "signing_keys": ("read", "create", "update"),
    "tenant_settings": ("read", "update"),
    "user_effective_permissions": ("read",),
    "user_effective_roles": ("read",),
    "user_idp_tokens": ("read",),
    "user_permission_source_roles": ("read",),
    "user_role_source_groups": ("read",),
    "users": _CRUD,
    "users_app_metadata": ("read", "create", "update", "delete"),
}

MANAGEMENT_SCOPES: dict[str, str] = {
    f"{verb}:{noun}": f"{verb.capitalize()} {noun.replace('_', ' ')}" for noun, verbs in _NOUNS.items() for verb in verbs
}

READ_EVENTS = "read:events"
