"""Descriptions of each document of the event catalogue and of its events, as text. Pure."""

from __future__ import annotations

# By the name of the document kind, as in `events.record.catalogue.DOCUMENT_KINDS`.
SUBJECTS: dict[str, str] = {
    "connection": "a source of the users of a tenant",
    "user": "an end user, with all linked identities",
    "organization": "a set of users, with connections and roles that apply only in the organization",
    "group": "a group of a connection, an organization or the whole tenant",
    "organization.connection": "a connection that members of an organization log in with",
    "organization.member": "a user who belongs to an organization",
    "group.member": "a user or a nested group that belongs to a group",
    "group.role": "a role that the members of a group have",
    "organization.member.role": "a role that a user has in an organization",
    "organization.group.role": "a role that the members of a group have in an organization",
}

RESOURCES: dict[str, str] = {
    "user": "The service records no event for a login, for a rehashed password, or for the end of a block after failed logins.",
    "connection": "No event contains secrets of a connection.",
    "organization": "The service removes the roles, members and connections of an organization before it deletes the organization.",
    "group": "`connection_id` or `organization_id` names the owner of a group; a group with neither belongs to the tenant. The service "
    "removes the members and roles of a group before it deletes the group.",
}

# Descriptions of the verb at the end of a type.
VERBS: dict[str, str] = {
    "created": "A {noun} was created.",
    "updated": "A visible field of a {noun} has changed. `previous_object` shows the state before the change.",
    "deleted": "A {noun} was deleted.",
    "added": "A {noun} was added.",
    "removed": "A {noun} was removed.",
    "assigned": "A {noun} was created.",
}

NOUNS: dict[str, str] = {
    "organization.connection": "connection of an organization",
    "organization.member": "member of an organization",
    "group.member": "membership in a group",
    "group.role": "role assignment of a group",
    "organization.member.role": "role assignment of a member of an organization",
    "organization.group.role": "role assignment of a group in an organization",
}

# Fields of the envelope whose names do not explain them.
ENVELOPE: dict[str, str] = {
    "specversion": "`1.0`: CloudEvents",
    "type": "one of the types below",
    "source": "`urn:<namespace>:<tenant>.<domain>`; the namespace is the setting `EVENT_SOURCE_NAMESPACE`",
    "id": "the same for every delivery of the event: use it to recognize repetitions",
    "time": "the time of the write, in UTC with milliseconds. A later event may have an earlier time; offsets define the order",
    "data": "`object`, the changed document; `previous_object` if the type has one; `context`",
    "tenant": "id of the tenant",
    "stream": "id of the event stream that delivers this copy",
    "purpose": "`test` on a test event, which represents no change; absent otherwise",
}
