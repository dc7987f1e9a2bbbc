"""The second-factor policy of an organization, on its admin page."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest

from authapi.factors.settings import policy_of_organization
from authapi.factors.settings_changes import set_organization_policy
from authapi.models import SecondFactorPolicy
from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import ObjectAction
from identity.models import Organization

_NONE = "Policy of the application or the tenant"


class PolicyForm(forms.Form):
    policy = forms.ChoiceField(
        required=False,
        choices=[("", _NONE), *SecondFactorPolicy.choices],
        label="When a login requires a second factor",
        help_text="If the policy of the application or the tenant is stricter, the stricter policy applies.",
    )


def _set(_request: HttpRequest, row: Organization, values: dict[str, Any]) -> str:
    set_organization_policy(tenant_id=row.tenant_id, organization_id=row.pk, policy=values["policy"] or None)
    return f"Two-step verification of {row} saved."


POLICY = ObjectAction(
    "second-factors",
    "Set two-step verification",
    lambda _request, row: (
        f"Current policy: {_words(policy_of_organization(row))}. If the policy requires a second factor, members of {row} who have "
        "no second factor must set one up when they log in. They can use the factors that the tenant allows."
    ),
    _set,
    form_class=PolicyForm,
)


def policy_panel(_request: HttpRequest, row: Organization) -> Panel:
    """Return the panel with the policy of the organization."""
    rows = [(Cell("When a login requires a second factor"), Cell(_words(policy_of_organization(row))))]
    return Panel("Two-step verification", ("Setting", "Value"), rows)


def _words(policy: SecondFactorPolicy | None) -> str:
    return policy.label.lower() if policy is not None else _NONE.lower()
