"""Sample data of each event type, which canaries contain. Pure.

Only the id of the tenant is real: every other id contains "canary". The data follows `events.record.schemas`, so a client that reads real
events can read canaries, too.
"""

from __future__ import annotations

from typing import Any

_NAME = "canary"
_CONNECTION = {"id": "con_canarycanarycana", "name": _NAME, "strategy": "database"}
_ORGANIZATION = {"id": "org_canarycanarycana", "name": _NAME}
_ROLE = {"id": "rol_canarycanarycana", "name": _NAME}
_GROUP = {"id": "grp_canarycanarycanarycana", "type": "tenant"}
_USER_ID = f"database|{_NAME}"
_ID = {"id": _ORGANIZATION["id"]}
_USER = {"user_id": _USER_ID}


def sample_data(event_type: str, *, tenant_id: str, time: str) -> dict[str, Any]:
    """Return sample data for one of the 25 event types. Its times of creation and change are `time`."""
    subject, _, verb = event_type.rpartition(".")
    before, after = _SUBJECTS[subject](verb, time)
    previous = {} if before is None else {"previous_object": before}
    return {"object": after, **previous, "context": {"tenant": {"id": tenant_id, "tenant_id": tenant_id}}}


Sample = tuple[dict[str, Any] | None, dict[str, Any]]


def _user(verb: str, time: str) -> Sample:
    identity = {"connection": _NAME, "user_id": _NAME, "provider": "database", "isSocial": False}
    user = {"user_id": _USER_ID, "identities": [identity], "created_at": time, "updated_at": time}
    return (user if verb == "updated" else None), user | ({"deleted_at": time} if verb == "deleted" else {})


def _connection(verb: str, time: str) -> Sample:
    return (_CONNECTION if verb == "updated" else None), _CONNECTION


def _group(verb: str, time: str) -> Sample:
    group = _GROUP | {"name": _NAME, "created_at": time} | ({} if verb == "created" else {"updated_at": time})
    return (group if verb == "updated" else None), group


def _group_member(verb: str, time: str) -> Sample:
    return None, {"group": _GROUP, "member": {"member_type": "user", "id": _USER_ID}}


def _group_role(verb: str, time: str) -> Sample:
    return _role_assignment({"group": _GROUP}, verb, time)


def _organization(verb: str, time: str) -> Sample:
    return (_ORGANIZATION if verb == "updated" else None), _ORGANIZATION


def _organization_connection(verb: str, time: str) -> Sample:
    joined = {"organization": _ORGANIZATION, "connection": {"id": _CONNECTION["id"]}}
    return (joined if verb == "updated" else None), joined


def _organization_member(verb: str, time: str) -> Sample:
    return None, {"organization": _ORGANIZATION, "user": _USER}


def _organization_member_role(verb: str, time: str) -> Sample:
    return None, {"organization": _ID, "user": _USER, "role": _ROLE}


def _organization_group_role(verb: str, time: str) -> Sample:
    return _role_assignment({"organization": _ID, "group": _GROUP}, verb, time)


def _role_assignment(holder: dict[str, Any], verb: str, time: str) -> Sample:
    assigned = holder | {"role": _ROLE, "created_at": time}
    if verb == "assigned":
        return None, assigned
    return assigned, holder | {"role": {"id": _ROLE["id"]}, "deleted_at": time}


_SUBJECTS = {
    "user": _user,
    "connection": _connection,
    "group": _group,
    "group.member": _group_member,
    "group.role": _group_role,
    "organization": _organization,
    "organization.connection": _organization_connection,
    "organization.member": _organization_member,
    "organization.member.role": _organization_member_role,
    "organization.group.role": _organization_group_role,
}
