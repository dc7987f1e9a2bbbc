"""The page of a tenant's second factors and passkeys: a form, with a confirmation if the change affects users."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path

from authapi.admin.factors.form import SecondFactorsForm, consequences
from authapi.factors.settings import factor_values
from authapi.factors.settings_changes import update_second_factors
from authapi.models import TenantSettings
from identity.admin.refusals import add_to_form, refusals
from identity.admin.tenant_page import TenantPage

_CHANGE = "authapi.change_tenantsettings"
_CONFIRMED = "confirmed"


class SecondFactorsPage(TenantPage):
    """The settings of a tenant for second factors and passkeys."""

    label = "authapi.second-factors-page"
    title = "Two-step verification and passkeys"
    url_name = "authapi_second_factors"
    permission = "authapi.view_tenantsettings"

    def urls(self) -> list[URLPattern]:
        return [path("authapi/second-factors/", self.for_tenant(self._shown), name=self.url_name)]

    def _shown(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        values = factor_values(TenantSettings.objects.of(tenant_id).first())
        if request.method != "POST":
            return self._page(request, tenant_id, SecondFactorsForm(initial=values))
        if not self.may_see(request, _CHANGE):
            raise PermissionDenied
        form = SecondFactorsForm(request.POST, initial=values)
        if not form.is_valid():
            return self._page(request, tenant_id, form)
        effects = consequences(tenant_id, values, form.cleaned_data)
        # A confirmation is valid only for the effects that the page showed. If the effects have changed since then, staff must confirm
        # again.
        if effects and request.POST.get(_CONFIRMED) != _said(effects):
            return self._page(request, tenant_id, form, effects=effects)
        return self._saved(request, tenant_id, form)

    def _saved(self, request: HttpRequest, tenant_id: str, form: SecondFactorsForm) -> HttpResponse:
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        try:
            update_second_factors(tenant_id=tenant_id, changes=changes)
        except refusals() as refusal:
            add_to_form(form, refusal)
            return self._page(request, tenant_id, form)
        messages.success(request, "Settings saved. Logins use the new settings within a second.")
        return HttpResponseRedirect(self.address)

    def _page(self, request: HttpRequest, tenant_id: str, form: SecondFactorsForm, *, effects: list[str] | None = None) -> HttpResponse:
        context: dict[str, Any] = {
            "form": form,
            "groups": (
                ("Second factors", [form["factors"], form["policy"]]),
                ("Remembered browsers", [form["remembers_browsers"], form["remembered_days"]]),
                ("Passkeys", [form["passkeys"], form["offers_passkeys"]]),
            ),
            "effects": effects or [],
            "confirmed": _said(effects or []),
            "may_change": self.may_see(request, _CHANGE),
            "tenant_id": tenant_id,
        }
        return self.page(request, "admin/second_factors.html", context)


def _said(effects: list[str]) -> str:
    return " ".join(effects)
