"""Request bodies of the endpoints for actions."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from events.record.catalogue import EVENT_TYPES
from foundation.api.fields import Closed, JsonObject, ListOf, Switch, Text
from provisioning.actions.registry import PACKAGE, TEMPLATES, TRIGGER, TRIGGER_VERSION

MOST_SECRETS = 30
OPTIONS_TEXT = (
    "Options of the SCIM template: server_profile, update_mode, upsert, adopt_on_conflict, user_name_proof (never, verified, always), "
    "trust_connection_addresses, enterprise, requests_per_second, and scope, a "
    "JMESPath expression that is true for users of the action; all other users are skipped. An entry point has its own options."
)
_TESTS = ("connection", "user", "mapping", "event")


@extend_schema_field({"type": "string", "enum": [TRIGGER]})
class TriggerId(Text):
    """A text field that accepts only the id of the supported trigger."""

    def to_internal_value(self, data: Any) -> str:
        value = super().to_internal_value(data)
        if value != TRIGGER:
            raise serializers.ValidationError(f"Expected one of {TRIGGER}")
        return value


@extend_schema_field({"type": "string", "enum": [TRIGGER_VERSION]})
class TriggerVersion(Text):
    """A text field that accepts only the supported version of the trigger."""

    def to_internal_value(self, data: Any) -> str:
        value = super().to_internal_value(data)
        if value != TRIGGER_VERSION:
            raise serializers.ValidationError(f"Expected one of {TRIGGER_VERSION}")
        return value


@extend_schema_field({"type": "string", "enum": list(TEMPLATES)})
class TemplateName(Text):
    """A text field that accepts only names of built-in templates."""

    def to_internal_value(self, data: Any) -> str:
        value = super().to_internal_value(data)
        if value not in TEMPLATES:
            raise serializers.ValidationError(f"Expected one of {', '.join(TEMPLATES)}")
        return value


@extend_schema_field({"type": "string", "maxLength": 255, "pattern": rf"^{PACKAGE.replace('.', chr(92) + '.')}\.[A-Za-z_0-9.]+$"})
class EntryPointPath(Text):
    """A text field with the dotted path of an installed class."""


class SupportedTrigger(Closed):
    id = TriggerId()
    version = TriggerVersion(required=False)


class SecretToSet(Closed):
    """A secret. In a change of an action, a secret without a value keeps its stored value."""

    name = Text(max_length=128)
    value = Text(required=False, max_length=4096)


class _ActionProgram(Closed):
    """The program of an action. `code`, `dependencies` and `modules` are for custom code: the service refuses them unless empty."""

    options = JsonObject(required=False, help_text=OPTIONS_TEXT)
    mapping = ListOf(required=False, allow_null=True, child=JsonObject())
    secrets = ListOf(required=False, max_length=MOST_SECRETS, child=SecretToSet())
    code = Text(required=False, allow_blank=True, max_length=100_000)
    dependencies = ListOf(required=False, child=JsonObject())
    modules = ListOf(required=False, child=JsonObject())
    runtime = Text(required=False, max_length=64)


class ActionToCreate(_ActionProgram):
    name = Text(max_length=255)
    supported_triggers = ListOf(child=SupportedTrigger(), min_length=1, max_length=1)
    template = TemplateName(required=False)
    entry_point = EntryPointPath(required=False, max_length=255)
    deploy = Switch(required=False)


class ActionToChange(_ActionProgram):
    name = Text(required=False, max_length=255)
    supported_triggers = ListOf(required=False, child=SupportedTrigger(), min_length=1, max_length=1)
    entry_point = EntryPointPath(required=False, max_length=255)


class VersionToDeploy(Closed):
    update_draft = Switch(required=False)


class BindingsToChange(Closed):
    bindings = ListOf(child=JsonObject())


@extend_schema_field({"type": "string", "enum": list(_TESTS)})
class TestName(Text):
    """A text field that accepts only names of tests."""

    def to_internal_value(self, data: Any) -> str:
        value = super().to_internal_value(data)
        if value not in _TESTS:
            raise serializers.ValidationError(f"Expected one of {', '.join(_TESTS)}")
        return value


@extend_schema_field({"type": "string", "enum": ["create", "update"]})
class OperationName(Text):
    """A text field that accepts `create` or `update`: the operation that a mapping test previews."""

    def to_internal_value(self, data: Any) -> str:
        value = super().to_internal_value(data)
        if value not in ("create", "update"):
            raise serializers.ValidationError("Expected one of create, update")
        return value


@extend_schema_field({"type": "string", "enum": list(EVENT_TYPES)})
class EventTypeName(Text):
    """A text field that accepts only names of event types."""

    def to_internal_value(self, data: Any) -> str:
        value = super().to_internal_value(data)
        if value not in EVENT_TYPES:
            raise serializers.ValidationError("Expected one of the event types")
        return value


class TestPayload(Closed):
    """One of four tests: `connection` (with `canary`), `user` (with `user_id`, `dry_run`), `mapping` (with `user_id`), `event`.

    With `event`, a worker runs the action for a test event of `event_type`, with `data` or the sample of the type; an installed entry point
    has only this test. Without `test`, `user_id` selects `user`, `event_type` selects `event`, and an empty payload
    selects `connection`.
    """

    test = TestName(required=False)
    canary = Switch(required=False)
    user_id = Text(required=False, max_length=320)
    dry_run = Switch(required=False)
    draft = Switch(required=False)
    operation = OperationName(required=False)
    mapping = ListOf(required=False, allow_null=True, child=JsonObject())
    event_type = EventTypeName(required=False)
    data = JsonObject(required=False)  # type: ignore[assignment]  # a declared field, which the base takes off the class


class ActionToTest(Closed):
    payload = TestPayload()
