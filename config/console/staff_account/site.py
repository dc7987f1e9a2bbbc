"""The part of the admin's site for the staff account: login, proof of identity, and the pages of the account."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from config.console.staff_account.account import AccountPages
from config.console.staff_account.prove import ProvePage
from config.console.staff_account.sign_in import SignInPages
from identity.admin.assurance import must_enrol, needs_proof
from identity.admin.tenant_page import PagesSite

# An account that must add a second factor can open only these pages until it has a second factor.
OPEN_BEFORE_ENROLMENT = frozenset(
    {"account", "account_app", "account_passkey", "account_passkey_options", "prove", "prove_options", "logout", "jsi18n"}
)


class AccountSite(PagesSite):
    """A site whose accounts can have second factors."""

    password_change_template = "admin/account_password.html"  # noqa: S105  # nosec
    password_change_done_template = "admin/account_password_done.html"  # noqa: S105  # nosec

    def get_urls(self) -> list[Any]:
        pages = (AccountPages(self), ProvePage(self), SignInPages(self))
        return [*(pattern for page in pages for pattern in page.urls()), *super().get_urls()]

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: FBT001, FBT002
        """Redirect the requests of an account to the account page while a required second factor is missing."""

        def enrolled_first(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            match = request.resolver_match
            if (match is None or match.url_name not in OPEN_BEFORE_ENROLMENT) and must_enrol(request):
                return HttpResponseRedirect(reverse(f"{self.name}:account"))
            response: HttpResponse = view(request, *args, **kwargs)
            return response

        return super().admin_view(enrolled_first, cacheable)

    def each_context(self, request: HttpRequest) -> Any:
        context = super().each_context(request)
        if context["has_permission"] and must_enrol(request):
            # Hide the navigation: each of its links would redirect to the account page.
            context |= {"available_apps": [], "is_nav_sidebar_enabled": False}
        return context

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Show the login form. Redirect a logged-in account to the start page."""
        if request.method == "GET" and self.has_permission(request):
            return HttpResponseRedirect(reverse(f"{self.name}:index"))
        return SignInPages(self).login(request)

    @method_decorator(needs_proof)
    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Let an account with a recent proof of identity change its password."""
        return super().password_change(request, {"title": "Change password", **(extra_context or {})})

    def password_change_done(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().password_change_done(request, {"title": "Password changed", **(extra_context or {})})
