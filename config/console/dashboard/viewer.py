"""The viewer of the start page: the tenants and the parts that the account may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from identity.admin.scope import is_operator, staff_of, tenant_in_scope
from identity.models import Staff


@dataclass(frozen=True)
class Viewer:
    """The staff account and the tenant in scope. If `tenant_id` is None, an operator sees all tenants."""

    staff: Staff
    tenant_id: str | None
    is_operator: bool

    @classmethod
    def of(cls, request: HttpRequest) -> Self:
        staff = staff_of(request)
        if staff is None:
            raise Http404
        return cls(staff, tenant_in_scope(request), is_operator(request))

    def may(self, permission: str) -> bool:
        return self.staff.has_perm(permission)

    def may_list(self, model: str) -> bool:
        """Tell whether the account may see the list of a model. `model` has the form `app_model`."""
        app, _, name = model.partition("_")
        return self.may(f"{app}.view_{name}")


def list_of(model: str, **query: str) -> str:
    """Return the URL of the list of a model, with the given search. `model` has the form `app_model`."""
    asked = {name: value for name, value in query.items() if value}
    return reverse(f"admin:{model}_changelist") + (f"?{urlencode(asked)}" if asked else "")
