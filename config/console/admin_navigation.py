"""The navigation of the admin, by task and not by app. A model or page that is named nowhere would be lost: a test looks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAVIGATION: Mapping[str, tuple[str, ...]] = {
    "People": (
        "identity.user",
        "identity.organization",
        "identity.group",
        "identity.role",
        "identity.connection",
        "authapi.session",
        "identity.job",
        "identity.linkedidentity",
        "identity.groupmember",
        "identity.grouprole",
        "identity.userrole",
        "identity.organizationmember",
        "identity.organizationmemberrole",
        "identity.organizationgrouprole",
        "identity.organizationconnection",
        "authapi.invitation",
        "authapi.consent",
        "authapi.accountticket",
        "authapi.passwordlesscode",
        "authapi.devicekey",
        "identity.passwordcredential",
        "identity.joberror",
        "identity.jobchunk",
    ),
    "Applications": (
        "authapi.client",
        "authapi.apiresource",
        "authapi.clientgrant",
        "authapi.tenantsettings",
        "authapi.branding-page",
        "identity.messages-page",
        "identity.senders-page",
        "authapi.texts-page",
        "authapi.clientcredential",
        "authapi.organizationclientgrant",
        "authapi.permission",
        "authapi.rolepermission",
        "authapi.userpermission",
        "authapi.sessionclient",
        "authapi.logoutnotice",
        "authapi.logintransaction",
        "authapi.pushedrequest",
        "authapi.loginticket",
        "authapi.logouttransaction",
    ),
    "Streams": (
        "events.live-page",
        "events.logentry",
        "events.connections-page",
        "events.eventstream",
        "events.event",
        "events.head",
        "events.outbox",
        "events.mark",
    ),
    "Provisioning": (
        "provisioning.connect-page",
        "provisioning.action",
        "provisioning.delivery",
        "provisioning.deadletter",
        "provisioning.synchronizationrow",
        "provisioning.accountlink",
        "provisioning.alert",
        "provisioning.lane",
        "provisioning.breaker",
        "provisioning.ignoredkind",
        "provisioning.deletionguard",
        "provisioning.attempt",
        "provisioning.actionversion",
        "provisioning.actionsecret",
        "provisioning.trial",
        "provisioning.sweeper",
    ),
    "Security": (
        "authapi.signin",
        "authapi.loginfailures",
        "identity.auditentry",
        "identity.staff",
        "authapi.signingkey",
        "authapi.samlkey",
        "authapi.refreshtoken",
        "authapi.accesstoken",
        "authapi.revokedtoken",
        "authapi.idtoken",
        "authapi.authorizationcode",
        "authapi.devicegrant",
        "authapi.usedassertion",
        "authapi.edgekey",
    ),
    "Platform": (
        "identity.tenant",
        "identity.customdomain",
        "identity.formertenant",
    ),
}
# What people come for every day. Everything else of a group stands under "More", where the group has more than this.
DAILY: frozenset[str] = frozenset(
    {
        "identity.user",
        "identity.organization",
        "identity.group",
        "identity.role",
        "identity.connection",
        "authapi.session",
        "identity.job",
        "authapi.client",
        "authapi.apiresource",
        "authapi.clientgrant",
        "authapi.tenantsettings",
        "authapi.branding-page",
        "identity.messages-page",
        "identity.senders-page",
        "authapi.texts-page",
        "events.live-page",
        "events.logentry",
        "events.connections-page",
        "events.eventstream",
        "provisioning.connect-page",
        "provisioning.action",
        "provisioning.delivery",
        "provisioning.deadletter",
        "provisioning.synchronizationrow",
        "provisioning.alert",
        "authapi.signin",
        "authapi.loginfailures",
        "identity.auditentry",
        "identity.staff",
        "authapi.signingkey",
        "identity.tenant",
        "identity.customdomain",
        "identity.formertenant",
    }
)
# The name in the navigation where the plural of the model would not be understood by itself.
NAMES: Mapping[str, str] = {
    "authapi.samlkey": "SAML certificates",
    "identity.linkedidentity": "Linked identities",
    "identity.groupmember": "Members of groups",
    "identity.grouprole": "Roles of groups",
    "identity.userrole": "Roles of users",
    "identity.organizationmember": "Members of organizations",
    "identity.organizationmemberrole": "Roles of members",
    "identity.organizationgrouprole": "Roles of groups in organizations",
    "identity.organizationconnection": "Connections of organizations",
    "identity.jobchunk": "Parts of jobs",
    "identity.joberror": "Rows that jobs refused",
    "events.logentry": "Event log",
    "events.event": "Events by entity",
    "events.head": "Log positions",
    "events.mark": "Unrecorded changes",
    "provisioning.ignoredkind": "Ignored failures",
    "provisioning.trial": "Tests of actions",
    "provisioning.breaker": "Failing streams",
    "provisioning.synchronizationrow": "Synchronized users",
    "provisioning.deletionguard": "Deletion thresholds",
    "authapi.apiresource": "APIs",
    "authapi.organizationclientgrant": "Client grants in organizations",
    "authapi.rolepermission": "Permissions of roles",
    "authapi.userpermission": "Permissions of users",
    "authapi.devicegrant": "Device codes",
    "authapi.signin": "Sign-in log",
    "authapi.loginfailures": "Failed logins and blocks",
    "authapi.tenantsettings": "Sign-in settings",
    "authapi.sessionclient": "Clients in sessions",
    "authapi.logoutnotice": "Logouts to be told",
    "authapi.logintransaction": "Logins on the way",
    "authapi.logouttransaction": "Logouts on the way",
    "authapi.accountticket": "Mailed links",
    "authapi.passwordlesscode": "Codes and links for logins",
    "authapi.devicekey": "Keys of devices",
    "authapi.pushedrequest": "Pushed requests",
    "authapi.loginticket": "Tickets of old clients",
    "authapi.clientcredential": "Keys of clients",
    "authapi.usedassertion": "Used assertions",
    "authapi.edgekey": "Keys of TLS edges",
    "identity.passwordcredential": "Passwords",
    "identity.auditentry": "Audit log",
}


def grouped(entries: list[dict[str, Any]], path: str = "") -> list[dict[str, Any]]:
    """Return the models and pages an account may see in the groups of `NAVIGATION`, in the shape Django's templates expect.

    `daily` and `further` hold the same entries apart; a group without daily ones has nothing to put away. `is_open` where the page
    at `path` is one of the further ones.
    """
    by_label = {_label(entry): entry for entry in entries}
    groups = []
    for name, labels in NAVIGATION.items():
        shown = [(label, {**by_label[label], "name": NAMES.get(label, by_label[label]["name"])}) for label in labels if label in by_label]
        if shown:
            daily = [entry for label, entry in shown if label in DAILY]
            further = [entry for label, entry in shown if label not in DAILY] if daily else []
            groups.append(
                {
                    "name": name,
                    "app_label": name.lower(),
                    "app_url": "",
                    "has_module_perms": True,
                    "models": [entry for _, entry in shown],
                    "daily": daily or [entry for _, entry in shown],
                    "further": further,
                    "is_open": any(entry["admin_url"] and path.startswith(entry["admin_url"]) for entry in further),
                }
            )
    return groups


def _label(entry: dict[str, Any]) -> str:
    return str(entry["label"] if "label" in entry else entry["model"]._meta.label_lower)
