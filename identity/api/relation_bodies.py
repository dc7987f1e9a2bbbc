"""Ids in bodies, and the bodies of relations: lists of ids to add or remove."""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from foundation.api.fields import Closed, ListOf, Text
from foundation.api.paths import GROUP_ID

_TEXT = {"type": "string", "minLength": 1, "maxLength": 300}
_TYPES = ("user", "group")


class Id(Text):
    """An id that matches a pattern."""

    def __init__(self, pattern: str, **options: Any) -> None:
        validator = RegexValidator(rf"\A{pattern}\Z", f"String does not match pattern ^{pattern}$")
        super().__init__(max_length=300, validators=[validator], **options)


def connection_id(**options: Any) -> Id:
    return Id("con_[A-Za-z0-9]{16}", **options)


def organization_id(**options: Any) -> Id:
    return Id("org_[A-Za-z0-9]{16}", **options)


def user_id(**options: Any) -> Id:
    return Id(r"[^|\s]+\|\S+", **options)


class RolesToChange(Closed):
    roles = ListOf(child=Id("rol_[A-Za-z0-9]{16}"), min_length=1)


class UsersToChange(Closed):
    users = ListOf(child=user_id(), min_length=1)


class GroupsToChange(Closed):
    groups = ListOf(child=Id(GROUP_ID), min_length=1)


class OrganizationMembersToChange(Closed):
    members = ListOf(child=user_id(), min_length=1)


class GroupMemberToChange(Closed):
    id = Text(max_length=300)
    member_type = serializers.ChoiceField(choices=_TYPES, required=False)


@extend_schema_field(
    {
        "oneOf": [
            _TEXT,
            {
                "type": "object",
                "required": ["id"],
                "properties": {"id": _TEXT, "member_type": {"type": "string", "enum": list(_TYPES)}},
                "additionalProperties": False,
            },
        ]
    }
)
class _GroupMember(serializers.Field[str, Any, str, Any]):
    """The id of a user or a group: a string, or an object with the id and its type."""

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, str):
            return str(Text(max_length=300).run_validation(data))
        member = GroupMemberToChange(data=data)
        member.is_valid(raise_exception=True)
        found = str(member.validated_data["id"])
        if member.validated_data.get("member_type", member_type(found)) != member_type(found):
            raise serializers.ValidationError({"member_type": ["Does not fit the id"]})
        return found

    def to_representation(self, value: str) -> str:
        return value


class GroupMembersToChange(Closed):
    members = ListOf(child=_GroupMember(), min_length=1)


def member_type(member_id: str) -> str:
    """Return the type of a member id: ids of users contain a bar, ids of groups do not."""
    return "user" if "|" in member_id else "group"
