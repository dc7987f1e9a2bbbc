"""What each document of the event catalogue is, in words, and when its events occur. Pure."""

from __future__ import annotations

# By the name of the document kind, as in `events.record.catalogue.DOCUMENT_KINDS`.
SUBJECTS: dict[str, str] = {
    "connection": "where users of a tenant come from",
    "user": "an end user, with all linked identities",
    "organization": "a group of members with connections and roles of their own",
    "group": "a group of a connection, an organization or the whole tenant",
    "organization.connection": "a connection that members of an organization log in with",
    "organization.member": "a user who belongs to an organization",
    "group.member": "a user or a nested group that belongs to a group",
    "group.role": "a role that the members of a group have",
    "organization.member.role": "a role that a user has in an organization",
    "organization.group.role": "a role that the members of a group have in an organization",
}

RESOURCES: dict[str, str] = {
    "user": "Logins, renewed password hashes and the end of a block after failed logins are no change of a user.",
    "connection": "Secrets of a connection are in no event.",
    "organization": "What hangs on an organization goes first: its roles, members and connections leave before it is deleted.",
    "group": "A group names its owner: `connection_id`, `organization_id` or none. Its members and roles leave before it is deleted.",
}

# How the verb at the end of a type is said of its document.
VERBS: dict[str, str] = {
    "created": "There is a new {noun}.",
    "updated": "A {noun} has changed visibly. `previous_object` shows it as it was.",
    "deleted": "A {noun} is gone.",
    "added": "There is a new {noun}.",
    "removed": "A {noun} is gone.",
    "assigned": "There is a new {noun}.",
}

NOUNS: dict[str, str] = {
    "organization.connection": "connection of an organization",
    "organization.member": "member of an organization",
    "group.member": "member of a group",
    "group.role": "role of a group",
    "organization.member.role": "role of a member of an organization",
    "organization.group.role": "role of a group in an organization",
}

# Fields of the envelope, as far as their names do not say it.
ENVELOPE: dict[str, str] = {
    "specversion": "`1.0`: CloudEvents",
    "type": "one of the types below",
    "source": "`urn:<namespace>:<tenant>.<domain>`; the namespace is the setting `EVENT_SOURCE_NAMESPACE`",
    "id": "the same wherever and however often the event is delivered: what to recognise a repetition by",
    "time": "the clock at the write, in UTC with milliseconds. It may step back; the order is that of the offsets",
    "data": "`object`, what it is about; `previous_object` where the type has one; `context`",
    "tenant": "id of the tenant",
    "stream": "id of the event stream that delivers this copy",
    "purpose": "`test` on a test event, which stands for no change; left out otherwise",
}
