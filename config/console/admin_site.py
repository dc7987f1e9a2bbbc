"""The site of the admin. It shows only the models and pages that each app registers."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db.models import Model, Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_script_prefix, path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.text import capfirst

import authapi.admin
import events.admin
import identity.admin
import provisioning.admin
from authapi.edge.addresses import client_address
from config.console.admin_login import StaffLoginForm, may_enter
from config.console.admin_navigation import NAMES, ROWS, grouped
from config.console.admin_words import ABOUT
from config.console.components import components_page
from config.console.dashboard import checklist
from config.console.dashboard.page import TENANTS_SHOWN, dashboard_of
from config.console.global_search import search_page
from config.console.staff_account.site import AccountSite
from foundation.acting import Act, Actor, acting
from foundation.admin.field_labels import spell_labels
from foundation.admin.replica_source import note_change
from foundation.change_context import ChangeContext, change_context
from identity.admin.scope import is_operator, staff_of, switch_tenant, tenant_in_scope
from identity.admin.tenant_scope import TenantScopedAdmin
from identity.models import Tenant
from identity.services.tenants import dismiss_setup

_PAGES_OF_A_ROW = frozenset({"change", "delete", "history", "action"})


class PlatformAdminSite(AccountSite):
    """Limits every page to the tenant in scope, groups the navigation by task, and shows a dashboard as the start page."""

    site_header = "Identity"
    site_title = "Identity admin"
    index_title = "Start"
    site_url = None
    login_form = StaffLoginForm
    index_template = "admin/start.html"
    logout_template = "admin/logged_out.html"
    empty_value_display = "-"

    def __init__(self) -> None:
        super().__init__(name="admin")
        # Rows are deleted one by one through services, not by Django's bulk deletion.
        self.disable_action("delete_selected")

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register models with an admin class that limits them to the tenant in scope. Raises `ImproperlyConfigured` for any other
        class.
        """
        if admin_class is None or not issubclass(admin_class, TenantScopedAdmin):
            raise ImproperlyConfigured(f"{admin_class} does not derive from TenantScopedAdmin.")
        super().register(model_or_iterable, admin_class, **options)
        models: Any = [model_or_iterable] if isinstance(model_or_iterable, type) else model_or_iterable
        for model in models:
            spell_labels(model)
            page: Any = self._registry[model]
            page.list_title, page.about = NAMES.get(model._meta.label_lower, ""), ABOUT.get(model._meta.label_lower, "")
            page.row_names = ROWS.get(model._meta.label_lower, page.row_names)

    def has_permission(self, request: HttpRequest) -> bool:
        return may_enter(request.user)

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: FBT001, FBT002
        """Run a view with the staff account and the request as its change context, so that the events of its changes contain both."""

        def with_context(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            context = _context_of(request)
            with change_context(context), acting(_act_of(request, context)):
                response: HttpResponse = view(request, *args, **kwargs)
            note_change(request, response)
            return response

        return super().admin_view(with_context, cacheable)

    def get_urls(self) -> list[Any]:
        own: list[URLPattern | URLResolver] = [
            path("tenant/", self.admin_view(self.choose_tenant), name="choose_tenant"),
            path("components/", self.admin_view(self.components), name="components"),
            path("search/", self.admin_view(self.search), name="search"),
            path("setup/dismiss/", self.admin_view(self.dismiss_setup), name="dismiss_setup"),
        ]
        # Leave out Django's redirect `view_on_site`: it would read a row of any tenant by its key, and no model here has a public page.
        return own + [pattern for pattern in super().get_urls() if getattr(pattern, "name", "") != "view_on_site"]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the navigation by task, or the models of one app for the page of that app."""
        if app_label is not None:
            return super().get_app_list(request, app_label)
        entries = [self._entry(request, model) for model, page in self._registry.items() if page.has_view_permission(request)]
        return grouped([*entries, *self.page_entries(request)], request.path)

    def _entry(self, request: HttpRequest, model: type[Model]) -> dict[str, Any]:
        """Return the entry that Django's app list has for a model.

        Django's own computation would take a quarter of the time of each page.
        """
        may, (shown_at, added_at) = self._registry[model].get_model_perms(request), _places(model, get_script_prefix())
        return {
            "model": model,
            "name": capfirst(str(model._meta.verbose_name_plural)),
            "object_name": model._meta.object_name,
            "admin_url": shown_at,
            "add_url": added_at if may["add"] else None,
            "view_only": not may["change"],
        }

    def each_context(self, request: HttpRequest) -> Any:
        context = super().each_context(request)
        if context["has_permission"]:
            context["scope_tenant"] = tenant_in_scope(request)
            context["may_switch_tenant"] = is_operator(request)
            context["after_switching"] = _after_switching(request)
        return context

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Show the dashboard of the tenant in scope, or the dashboard of the platform with the list of tenants."""
        return super().index(request, {**dashboard_of(self, request), **(extra_context or {})})

    def components(self, request: HttpRequest) -> HttpResponse:
        """Show developers the components of the console."""
        return components_page(self, request)

    def search(self, request: HttpRequest) -> HttpResponse:
        """Search the tenant in scope for the words in `q`: show users, clients, organizations and further objects that match."""
        return search_page(self, request)

    def dismiss_setup(self, request: HttpRequest) -> HttpResponse:
        """Hide the first steps of the tenant in scope from all of its staff."""
        staff, tenant = staff_of(request), tenant_in_scope(request)
        if request.method != "POST" or tenant is None:
            raise Http404
        if staff is None or not staff.has_perm(checklist.DISMISS):
            raise PermissionDenied
        dismiss_setup(tenant_id=tenant)
        return HttpResponseRedirect(reverse("admin:index"))

    def choose_tenant(self, request: HttpRequest) -> HttpResponse:
        """Let a platform operator choose one tenant or all tenants. From then on, all pages show the rows of this choice."""
        if not is_operator(request):
            raise Http404
        following = request.POST.get("next") or request.GET.get("next") or ""
        if not url_has_allowed_host_and_scheme(following, allowed_hosts=None):
            following = reverse("admin:index")
        if request.method == "POST":
            switch_tenant(request, request.POST.get("tenant") or None)
            return HttpResponseRedirect(following)
        searched = request.GET.get("q", "").strip()
        found = Tenant.objects.filter(Q(pk__icontains=searched) | Q(name__icontains=searched)).order_by("pk")[:TENANTS_SHOWN]
        context = {
            **self.each_context(request),
            "title": "Choose a tenant",
            "subtitle": None,
            "tenants": found,
            "searched": searched,
            "next": following,
        }
        request.current_app = self.name
        return TemplateResponse(request, "admin/choose_tenant.html", context)


@cache
def _places(model: type[Model], _prefix: str) -> tuple[str, str]:
    """Return the URLs of a model's list and of its form for a new row."""
    place = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    return reverse(f"{place}_changelist"), reverse(f"{place}_add")


def _context_of(request: HttpRequest) -> ChangeContext:
    peer, forwarded = request.META.get("REMOTE_ADDR") or "", request.META.get("HTTP_X_FORWARDED_FOR", "")
    return ChangeContext(
        request={
            "geo": {},
            "hostname": settings.PLATFORM_HOST,
            "ip": client_address(peer, forwarded, settings.TRUSTED_PROXIES),
            "method": request.method,
            "user_agent": request.META.get("HTTP_USER_AGENT", ""),
        }
    )


def _after_switching(request: HttpRequest) -> str:
    """Return the page to show after a switch of tenants: the current page.

    If the current page shows a row of the previous tenant, return the URL of the list of such rows.
    """
    match = request.resolver_match
    model, _, page = (match.url_name or "").rpartition("_") if match is not None else ("", "", "")
    if page in _PAGES_OF_A_ROW:
        with suppress(NoReverseMatch):
            return reverse(f"admin:{model}_changelist")
    return request.path


def _act_of(request: HttpRequest, context: ChangeContext) -> Act | None:
    staff = staff_of(request)
    if staff is None:
        return None
    sent = context.request or {}
    return Act(Actor("staff", str(staff.pk), staff.email), ip=sent.get("ip"), user_agent=sent.get("user_agent", ""))


def build_site() -> PlatformAdminSite:
    """Return the site with the pages of every app.

    An app registers its pages before the apps that import it, because those apps add to its pages.
    """
    built = PlatformAdminSite()
    identity.admin.register(built)
    authapi.admin.register(built)
    events.admin.register(built)
    provisioning.admin.register(built)
    return built


site = build_site()
