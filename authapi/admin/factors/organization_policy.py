"""What an organization demands of logins, on the page of the organization in the admin."""

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

_NONE = "As the tenant and the application decide"


class PolicyForm(forms.Form):
    policy = forms.ChoiceField(
        required=False,
        choices=[("", _NONE), *SecondFactorPolicy.choices],
        label="When a login asks for a second factor",
        help_text="The stricter one counts: an organization cannot demand less than the tenant and the application do.",
    )


def _set(_request: HttpRequest, row: Organization, values: dict[str, Any]) -> str:
    set_organization_policy(tenant_id=row.tenant_id, organization_id=row.pk, policy=values["policy"] or None)
    return f"Logins to {row} follow the new policy."


POLICY = ObjectAction(
    "second-factors",
    "Two-step verification",
    lambda _request, row: (
        f"Now: {_words(policy_of_organization(row))}. Members of {row} without a factor have to enroll one where the policy demands it. "
        "Only factors that are on for the tenant are asked for."
    ),
    _set,
    form_class=PolicyForm,
)


def policy_panel(_request: HttpRequest, row: Organization) -> Panel:
    """Return what the organization demands."""
    rows = [(Cell("When a login asks for a second factor"), Cell(_words(policy_of_organization(row))))]
    return Panel("Two-step verification", ("", ""), rows)


def _words(policy: SecondFactorPolicy | None) -> str:
    return policy.label.lower() if policy is not None else _NONE.lower()
