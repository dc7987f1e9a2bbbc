"""What each resource of the management interface is, in words. Pure."""

from __future__ import annotations

# By the first part of the path.
RESOURCES: dict[str, str] = {
    "actions": "what event streams run for each event: templates and installed classes, with drafts, versions, secrets and trials",
    "attack-protection": "brute-force protection of a tenant",
    "client-grants": "which scopes a client may ask for at one API",
    "clients": "applications that ask for tokens, with their secrets, keys and certificates",
    "connections": "where users of the tenant come from",
    "event-streams": "subscriptions of destinations to events, with deliveries, dead letters and synchronisations",
    "events": "the stream of events, and test events on it",
    "grants": "what users allowed clients to do",
    "groups": "groups of users, with members and roles",
    "jobs": "long work: imports and exports of users, mails that verify an address",
    "keys": "keys that sign tokens of the tenant",
    "logs": "the log of the tenant: logins, and what clients and staff changed",
    "organizations": "organizations, with members, connections, roles and groups",
    "refresh-tokens": "refresh tokens of users",
    "resource-servers": "APIs that tokens are for, with their permissions",
    "roles": "roles, with the permissions they give and the users who have them",
    "sessions": "logins of users in browsers",
    "tenants": "settings of the tenant",
    "user-blocks": "blocks after failed logins",
    "users": "users, with linked identities, roles, permissions, sessions and organizations",
    "users-by-email": "users found by their e-mail address",
}
