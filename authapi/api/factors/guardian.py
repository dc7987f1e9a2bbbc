"""Second factors of a tenant: `/guardian/factors`, `/guardian/policies`, `/guardian/enrollments/{id}`, `/second-factors`."""

from __future__ import annotations

import builtins
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.factors.bodies import FactorSwitch, OrganizationPolicy, SecondFactorsToChange
from authapi.api.factors.documents import guardian_enrollment
from authapi.api.factors.methods import masks_numbers
from authapi.api.factors.schemas import (
    ENROLLMENT,
    FACTOR,
    FACTOR_LIST,
    ORGANIZATION_SECOND_FACTORS,
    POLICY_LIST,
    SECOND_FACTORS,
)
from authapi.factors.kinds import FACTORS
from authapi.factors.settings import factor_values, policy_of_organization
from authapi.factors.settings_changes import DEMANDING, set_organization_policy, switch_factor, update_second_factors
from authapi.models import SecondFactorPolicy, TenantSettings
from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.refusals import Refusal, invalid_body, invalid_path, not_supported
from identity.api.lookups import organization_at
from identity.factors.user_factors import remove_factor
from identity.models import EnrolledFactor

# Factors that this service does not have, because they need another vendor or an app. The list shows them as disabled. Deployment tools
# send back all values that they have read, so a request to disable one of these factors succeeds.
_NOT_HERE = ("push-notification", "duo")
# The names of all factors, in the order of the upstream system, because clients expect this order.
NAMES = ("sms", "push-notification", "otp", "email", "duo", "webauthn-roaming", "webauthn-platform", "recovery-code")
# The API has only these two policies, the strictest policies of the service. The other policies appear as an empty list.
POLICIES = {SecondFactorPolicy.ALWAYS.value: "all-applications", SecondFactorPolicy.NEW_DEVICE.value: "confidence-score"}
_READ, _CHANGE = ("read:guardian_factors",), ("update:guardian_factors",)
_READ_POLICY, _CHANGE_POLICY = ("read:mfa_policies",), ("update:mfa_policies",)
_NO_ENROLLMENT = "The enrollment does not exist."
_INEXISTENT_ENROLLMENT = "inexistent_enrollment"


class GuardianFactorsEndpoint(Endpoint):
    """The second factors that a tenant may enable, and whether each is enabled."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_guardian_factors", "List the second factors and whether each is enabled", _READ, 200, FACTOR_LIST),
    }

    def list(self, request: Request) -> Response:
        is_on = _values()["factors"]
        return Response([{"name": name, "enabled": name in is_on, "trial_expired": False} for name in NAMES])


class GuardianFactorEndpoint(Endpoint):
    """One second factor of the tenant."""

    path_schemas: ClassVar[dict[str, Any]] = {"factor": {"enum": list(NAMES)}}
    operations: ClassVar[dict[str, Operation]] = {
        "update": Operation("set_guardian_factor", "Enable or disable a second factor", _CHANGE, 200, FACTOR, FactorSwitch),
    }

    def update(self, request: Request, factor: str) -> Response:
        if factor not in NAMES:
            raise invalid_path(f"Expected one of {', '.join(NAMES)}", "factor")
        is_on = self.body_of(request, FactorSwitch)["enabled"]
        if factor in FACTORS:
            switch_factor(tenant_id=self.tenant_id, factor=factor, is_on=is_on)
        elif is_on:
            raise not_supported(f"Not supported: this service has no factor {factor}.")
        return Response({"enabled": is_on})


class GuardianPoliciesEndpoint(Endpoint):
    """The policy for second factors in the words of upstream: `all-applications`, `confidence-score`, or an empty list."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_guardian_policies", "Read the policy for second factors", _READ_POLICY, 200, POLICY_LIST),
        "update": Operation(
            "set_guardian_policies",
            "Change the policy for second factors; the strictest policy of the list applies",
            _CHANGE_POLICY,
            200,
            POLICY_LIST,
            body_schema=POLICY_LIST,
        ),
    }

    def list(self, request: Request) -> Response:
        return Response(_policies())

    def update(self, request: Request) -> Response:
        named = request.data
        if not isinstance(named, builtins.list):
            raise invalid_body("Expected type array", "body")
        if any(name not in POLICIES.values() for name in named):
            raise invalid_body(f"Expected some of {', '.join(POLICIES.values())}", "body")
        # The table is ordered with the strictest policy first.
        wanted = next((policy for policy, name in POLICIES.items() if name in named), None)
        present = _values()["policy"]
        if wanted is not None or present in DEMANDING:
            policy = wanted or SecondFactorPolicy.ON_REQUEST.value
            update_second_factors(tenant_id=self.tenant_id, changes={"policy": policy})
        return Response(_policies())


class GuardianEnrollmentEndpoint(Endpoint):
    """A second factor of any user of the tenant, found by its device id."""

    not_found_code = _INEXISTENT_ENROLLMENT
    operations: ClassVar[dict[str, Operation]] = {
        "retrieve": Operation(
            "get_guardian_enrollment", "Read a second factor", ("read:guardian_enrollments",), 200, ENROLLMENT, refuses=(404,)
        ),
        "destroy": Operation(
            "delete_guardian_enrollment", "Remove a second factor from its user", ("delete:guardian_enrollments",), 204, refuses=(404,)
        ),
    }

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(guardian_enrollment(_enrollment_at(id), masks_numbers=masks_numbers()))

    def destroy(self, request: Request, id: str) -> Response:
        factor = _enrollment_at(id)
        remove_factor(tenant_id=self.tenant_id, user_id=factor.user.user_id, device=factor.device)
        return Response(status=204)


class SecondFactorsEndpoint(Endpoint):
    """All settings of second factors and passkeys. The upstream system does not have this endpoint."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("get_second_factors", "Read the settings of second factors and passkeys", _READ, 200, SECOND_FACTORS),
        "partial_update": Operation(
            "update_second_factors",
            "Change settings of second factors and passkeys; null restores a default",
            ("update:guardian_factors update:mfa_policies",),
            200,
            SECOND_FACTORS,
            SecondFactorsToChange,
        ),
    }

    def list(self, request: Request) -> Response:
        return Response(_values())

    def partial_update(self, request: Request) -> Response:
        changes = self.body_of(request, SecondFactorsToChange)
        return Response(factor_values(update_second_factors(tenant_id=self.tenant_id, changes=changes)) if changes else _values())


class OrganizationSecondFactorsEndpoint(Endpoint):
    """The policy of an organization for second factors, in addition to the policies of the tenant and the application. The upstream system
    does not have this endpoint.
    """

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "get_organization_second_factors",
            "Read the second-factor policy of an organization",
            ("read:organizations",),
            200,
            ORGANIZATION_SECOND_FACTORS,
            refuses=(404,),
        ),
        "update": Operation(
            "set_organization_second_factors",
            "Set the second-factor policy of an organization; with null, the tenant and the application decide",
            ("update:organizations",),
            200,
            ORGANIZATION_SECOND_FACTORS,
            OrganizationPolicy,
            refuses=(404,),
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        return Response({"policy": policy_of_organization(organization_at(id))})

    def update(self, request: Request, id: str) -> Response:
        organization = organization_at(id)
        policy = self.body_of(request, OrganizationPolicy)["policy"]
        set_organization_policy(tenant_id=self.tenant_id, organization_id=organization.pk, policy=policy)
        return Response({"policy": policy})


def _values() -> dict[str, Any]:
    return factor_values(TenantSettings.objects.first())


def _policies() -> builtins.list[str]:
    return [POLICIES[policy] for policy in (_values()["policy"],) if policy in POLICIES]


def _enrollment_at(device: str) -> EnrolledFactor:
    rows = EnrolledFactor.objects.filter(device=device, kind__in=EnrolledFactor.SECOND_FACTORS)
    factor = rows.select_related("user").first()
    if factor is None:
        raise Refusal(404, _NO_ENROLLMENT, _INEXISTENT_ENROLLMENT)
    return factor
