"""Login settings of a tenant: `/tenants/settings`, `/attack-protection/brute-force-protection`."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.tenant_setting_bodies import BruteForceToChange, TenantSettingsToChange
from authapi.api.tenant_setting_schemas import BRUTE_FORCE, SETTINGS, SETTINGS_FIELDS
from authapi.models import TenantSettings
from authapi.services.tenant_settings import update_brute_force, update_tenant_settings
from authapi.tenant_settings import LIFETIMES, brute_force_values, settings_values
from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import PROJECTION
from foundation.api.operations import Operation
from foundation.api.queries import projection_of
from foundation.api.refusals import invalid_body

_IN_MINUTES = {f"{name}_in_minutes": name for name in LIFETIMES}


class TenantSettingsEndpoint(Endpoint):
    """The settings of the tenant."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "get_tenant_settings", "Read the settings of the tenant", ("read:tenant_settings",), 200, SETTINGS, parameters=PROJECTION
        ),
        "partial_update": Operation(
            "update_tenant_settings",
            "Change settings of the tenant; flags are merged, other members are replaced, null restores a default",
            ("update:tenant_settings",),
            200,
            SETTINGS,
            TenantSettingsToChange,
        ),
    }

    def list(self, request: Request) -> Response:
        project = projection_of(request.query_params, SETTINGS_FIELDS)
        return Response(project(_settings(TenantSettings.objects.first())))

    def partial_update(self, request: Request) -> Response:
        changes = _in_hours(self.body_of(request, TenantSettingsToChange))
        if not changes:
            return Response(_settings(TenantSettings.objects.first()))
        return Response(_settings(update_tenant_settings(tenant_id=self.tenant_id, changes=changes)))


class BruteForceEndpoint(Endpoint):
    """The counting of failed logins, and the effects of too many failures."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("get_brute_force_protection", "Read the brute-force protection", ("read:attack_protection",), 200, BRUTE_FORCE),
        "partial_update": Operation(
            "update_brute_force_protection",
            "Change the brute-force protection; a higher threshold lifts every block",
            ("update:attack_protection",),
            200,
            BRUTE_FORCE,
            BruteForceToChange,
        ),
    }

    def list(self, request: Request) -> Response:
        return Response(brute_force_values(TenantSettings.objects.first()))

    def partial_update(self, request: Request) -> Response:
        changes = self.body_of(request, BruteForceToChange)
        if not changes:
            return Response(brute_force_values(TenantSettings.objects.first()))
        return Response(brute_force_values(update_brute_force(tenant_id=self.tenant_id, changes=changes)))


def _settings(row: TenantSettings | None) -> dict[str, Any]:
    """Return the settings of this endpoint. Branding has its own endpoint."""
    return {name: value for name, value in settings_values(row).items() if name != "branding"}


def _in_hours(body: dict[str, Any]) -> dict[str, Any]:
    """Convert minutes to hours. Refuse a body that has both units for one lifetime."""
    changes = dict(body)
    for minutes, hours in _IN_MINUTES.items():
        if minutes not in changes:
            continue
        if hours in changes:
            raise invalid_body(f"{hours} and {minutes} exclude each other", minutes)
        given = changes.pop(minutes)
        changes[hours] = None if given is None else _whole(given / 60)
    return changes


def _whole(hours: float) -> float:
    return int(hours) if hours == int(hours) else hours
