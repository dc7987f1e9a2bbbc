"""Protection of logins: `/attack-protection/suspicious-ip-throttling`, `.../breached-password-detection`, `/anomaly/blocks/ips/{id}`."""

from __future__ import annotations

from typing import ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.accounts import leaked_passwords, suspicion
from authapi.accounts.attack_settings import (
    LOGIN_SHIELDS,
    LONGEST_RATE_MS,
    MOST_ATTEMPTS,
    STAGE_SHIELDS,
    SUSPICION_SHIELDS,
    update_leak_rules,
    update_suspicion,
)
from authapi.accounts.leaked_passwords import FREQUENCIES, leak_values
from authapi.accounts.suspicion import is_address_blocked, lift_address, suspicion_values
from authapi.edge.addresses import parsed_address
from authapi.models import TenantSettings
from authapi.services.tenant_settings import MOST_ADDRESSES
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, ListOf, Switch, Text
from foundation.api.list_schemas import reference
from foundation.api.operations import SWITCH, TEXT, Operation, Schema
from foundation.api.refusals import invalid_path
from identity.services.failures import NotFound

_READ, _UPDATE = ("read:attack_protection",), ("update:attack_protection",)
METHODS = ("standard", "enhanced")


def _choices(known: tuple[str, ...]) -> ListOf:
    return ListOf(required=False, child=serializers.ChoiceField(choices=list(known)), max_length=len(known))


class Attempts(Closed):
    """The number of attempts available at once, and the milliseconds until one more attempt is available."""

    max_attempts = serializers.IntegerField(required=False, min_value=1, max_value=MOST_ATTEMPTS)
    rate = serializers.IntegerField(required=False, min_value=1, max_value=LONGEST_RATE_MS)


class SuspicionStages(Closed):
    """The limits of each stage, by stage name."""

    def get_fields(self) -> dict[str, serializers.Field]:  # type: ignore[type-arg]  # same type as in the framework
        return {name: Attempts(required=False) for name in suspicion.DEFAULTS["stage"]}


class SuspicionToChange(Closed):
    enabled = Switch(required=False)
    shields = _choices(SUSPICION_SHIELDS)
    allowlist = ListOf(required=False, child=Text(max_length=64), max_length=MOST_ADDRESSES)
    stage = SuspicionStages(required=False)


class StageShields(Closed):
    """What the service does (shields) if a new password was found in a breach."""

    shields = _choices(STAGE_SHIELDS)


class LeakStages(Closed):
    """The shields of each stage, by stage name."""

    def get_fields(self) -> dict[str, serializers.Field]:  # type: ignore[type-arg]  # same type as in the framework
        return {name: StageShields(required=False) for name in leaked_passwords.DEFAULTS["stage"]}


class LeakRulesToChange(Closed):
    enabled = Switch(required=False)
    shields = _choices(LOGIN_SHIELDS)
    admin_notification_frequency = _choices(tuple(FREQUENCIES))
    method = serializers.ChoiceField(required=False, choices=list(METHODS))
    stage = LeakStages(required=False)


class SuspicionEndpoint(Endpoint):
    """Settings that decide when an IP address is suspicious, and how the service then reacts."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "get_suspicious_ip_throttling", "Read the throttling of suspicious IP addresses", _READ, 200, reference("SuspiciousAddresses")
        ),
        "partial_update": Operation(
            "update_suspicious_ip_throttling",
            "Change the throttling of suspicious IP addresses; other settings of a stage stay",
            _UPDATE,
            200,
            reference("SuspiciousAddresses"),
            SuspicionToChange,
        ),
    }

    def list(self, request: Request) -> Response:
        return Response(suspicion_values(TenantSettings.objects.first()))

    def partial_update(self, request: Request) -> Response:
        changes = self.body_of(request, SuspicionToChange)
        return Response(suspicion_values(update_suspicion(tenant_id=self.tenant_id, changes=changes)))


class LeakRulesEndpoint(Endpoint):
    """Settings for passwords found in breaches of other services."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "get_breached_password_detection", "Read the settings for breached passwords", _READ, 200, reference("BreachedPasswords")
        ),
        "partial_update": Operation(
            "update_breached_password_detection",
            "Change the settings for breached passwords; other settings of a stage stay",
            _UPDATE,
            200,
            reference("BreachedPasswords"),
            LeakRulesToChange,
        ),
    }

    def list(self, request: Request) -> Response:
        return Response(leak_values(TenantSettings.objects.first()))

    def partial_update(self, request: Request) -> Response:
        changes = self.body_of(request, LeakRulesToChange)
        return Response(leak_values(update_leak_rules(tenant_id=self.tenant_id, changes=changes)))


class AddressBlockEndpoint(Endpoint):
    """The block of an IP address that has used up its attempts. The block of an IPv6 address applies to its /64 network."""

    operations: ClassVar[dict[str, Operation]] = {
        "retrieve": Operation(
            "check_blocked_ip",
            "Check whether an IP address is blocked: 200 if it is blocked, otherwise 404",
            ("read:anomaly_blocks",),
            200,
            refuses=(400, 404),
        ),
        "destroy": Operation(
            "unblock_ip", "Lift the block of an IP address at every stage", ("delete:anomaly_blocks",), 204, refuses=(400,)
        ),
    }

    def retrieve(self, request: Request, ip: str) -> Response:
        if not is_address_blocked(self.tenant_id, _address(ip)):
            raise NotFound("The IP address is not blocked.")
        return Response(status=200)

    def destroy(self, request: Request, ip: str) -> Response:
        lift_address(self.tenant_id, _address(ip))
        return Response(status=204)


def _address(text: str) -> str:
    if parsed_address(text) is None:
        raise invalid_path("Object didn't pass validation for format ip-address", "ip")
    return text


def _shields(known: tuple[str, ...]) -> Schema:
    return {"type": "array", "items": {**TEXT, "enum": list(known)}}


def _stages(names: dict[str, object], properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": {name: {"type": "object", "properties": properties} for name in names}}


COMPONENTS: dict[str, Schema] = {
    "SuspiciousAddresses": {
        "type": "object",
        "required": ["enabled", "shields", "allowlist", "stage"],
        "properties": {
            "enabled": SWITCH,
            "shields": _shields(SUSPICION_SHIELDS),
            "allowlist": {"type": "array", "items": TEXT, "description": "IP addresses and networks whose attempts are not counted."},
            "stage": _stages(
                suspicion.DEFAULTS["stage"],
                {
                    "max_attempts": {"type": "integer", "description": "Number of attempts available at once."},
                    "rate": {"type": "integer", "description": "Milliseconds until one more attempt is available."},
                },
            ),
        },
    },
    "BreachedPasswords": {
        "type": "object",
        "required": ["enabled", "shields", "admin_notification_frequency", "method", "stage"],
        "properties": {
            "enabled": SWITCH,
            "shields": {**_shields(LOGIN_SHIELDS), "description": "Effects on a login with the correct password."},
            "admin_notification_frequency": {
                **_shields(tuple(FREQUENCIES)),
                "description": (
                    "Minimum interval between mails to administrators. The shortest of several values is used. Default: `daily`."
                ),
            },
            "method": {**TEXT, "enum": ["standard"]},
            "stage": _stages(leaked_passwords.DEFAULTS["stage"], {"shields": _shields(STAGE_SHIELDS)}),
        },
    },
}
