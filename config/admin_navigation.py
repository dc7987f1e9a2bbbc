"""The navigation of the admin, by task and not by app. A model or page that is named nowhere would be lost: a test looks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAVIGATION: Mapping[str, tuple[str, ...]] = {
    "People": (
        "identity.user",
        "identity.connection",
        "identity.group",
        "identity.role",
        "identity.organization",
        "identity.linkedidentity",
        "identity.job",
    ),
    "Memberships": (
        "identity.groupmember",
        "identity.grouprole",
        "identity.userrole",
        "identity.organizationmember",
        "identity.organizationmemberrole",
        "identity.organizationgrouprole",
        "identity.organizationconnection",
    ),
    "Sign-in": (
        "authapi.signin",
        "authapi.session",
        "authapi.refreshtoken",
        "authapi.consent",
        "authapi.loginfailures",
        "authapi.tenantsettings",
        "authapi.sessionclient",
        "authapi.logoutnotice",
        "authapi.authorizationrequest",
        "authapi.accountticket",
    ),
    "Applications": (
        "authapi.client",
        "authapi.clientcredential",
        "authapi.apiresource",
        "authapi.clientgrant",
        "authapi.organizationclientgrant",
        "authapi.permission",
        "authapi.rolepermission",
        "authapi.userpermission",
    ),
    "Streams": (
        "events.eventstream",
        "events.logentry",
        "events.live-page",
        "events.connections-page",
        "events.event",
        "events.head",
    ),
    "Provisioning": (
        "provisioning.deadletter",
        "provisioning.ignoredkind",
        "provisioning.alert",
        "provisioning.delivery",
        "provisioning.attempt",
        "provisioning.action",
        "provisioning.actionversion",
        "provisioning.trial",
        "provisioning.actionsecret",
        "provisioning.synchronizationrow",
        "provisioning.deletionguard",
        "provisioning.lane",
        "provisioning.breaker",
    ),
    "Security": (
        "authapi.signingkey",
        "authapi.revokedtoken",
        "authapi.accesstoken",
        "authapi.idtoken",
        "authapi.authorizationcode",
        "authapi.devicegrant",
        "authapi.usedassertion",
        "authapi.edgekey",
        "identity.passwordcredential",
        "admin.logentry",
    ),
    "Platform": (
        "identity.tenant",
        "identity.formertenant",
        "identity.customdomain",
        "identity.staff",
        "identity.jobchunk",
        "identity.joberror",
        "events.outbox",
        "events.mark",
        "provisioning.sweeper",
    ),
}
# The name in the navigation where the plural of the model would not be understood by itself.
NAMES: Mapping[str, str] = {
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
    "provisioning.synchronizationrow": "Synchronised users",
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
    "authapi.authorizationrequest": "Logins on the way",
    "authapi.accountticket": "Mailed links",
    "authapi.clientcredential": "Keys of clients",
    "authapi.usedassertion": "Used assertions",
    "authapi.edgekey": "Keys of TLS edges",
    "identity.passwordcredential": "Passwords",
    "admin.logentry": "Staff activity",
}


def grouped(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the models and pages an account may see in the groups of `NAVIGATION`, in the shape Django's templates expect."""
    by_label = {_label(entry): entry for entry in entries}
    groups = []
    for name, labels in NAVIGATION.items():
        shown = [{**by_label[label], "name": NAMES.get(label, by_label[label]["name"])} for label in labels if label in by_label]
        if shown:
            groups.append({"name": name, "app_label": name.lower(), "app_url": "", "has_module_perms": True, "models": shown})
    return groups


def _label(entry: dict[str, Any]) -> str:
    return str(entry["label"] if "label" in entry else entry["model"]._meta.label_lower)
