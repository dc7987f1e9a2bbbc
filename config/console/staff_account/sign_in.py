"""Login to the admin. Staff enter the password, and then the second factor if the account has one. A passkey alone replaces both."""

from __future__ import annotations

import time
from typing import Any

import structlog
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.crypto import constant_time_compare
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from authapi.accounts.brute_force import counted_address
from authapi.edge.throttling import Rate
from config.console.admin_login import StaffLoginForm, count_failure, is_shut_out, may_enter
from config.console.staff_account import challenges, tries
from config.console.staff_account.challenges import Purpose
from config.console.staff_account.forms import CodeForm
from config.console.staff_account.known_devices import remembered
from config.console.staff_account.pages import SitePages, address_of
from config.console.staff_account.proving import CREDENTIAL, WRONG_PASSKEY, NotProven, proven_by_code, proven_by_passkey
from identity.admin.assurance import Proof, note_proof
from identity.factors.staff_factors import has_factors
from identity.models import Staff, StaffFactor

_WAITING = "waiting_for_factor"
_WAITING_SECONDS = 600

_logger = structlog.get_logger(__name__)


class StaffLoginView(LoginView):
    """The view of the form with email address and password. It logs the account in, or redirects to the page of the second factor."""

    authentication_form = StaffLoginForm
    template_name = "admin/login.html"

    def form_valid(self, form: Any) -> HttpResponse:
        staff = form.get_user()
        if not has_factors(staff):
            return entered(self.request, staff, Proof.PASSWORD, self.get_success_url())
        # Create a new session key, because an attacker may know the key that was valid before the login (session fixation).
        self.request.session.cycle_key()
        self.request.session[_WAITING] = {
            "staff": staff.pk,
            "hash": staff.get_session_auth_hash(),
            "at": int(time.time()),
            "next": self.get_success_url(),
        }
        return HttpResponseRedirect(reverse("admin:second_factor"))


def entered(request: HttpRequest, staff: Staff, by: Proof, following: str) -> HttpResponse:
    """Log the account in, in a session with a new key, and redirect to `following`. The response marks the device as known."""
    request.session.pop(_WAITING, None)
    login(request, staff)
    note_proof(request, by)
    _logger.info("staff signed in", staff_id=staff.pk, by=by.value)
    return remembered(HttpResponseRedirect(following), request, staff.email)


def waiting_staff(request: HttpRequest) -> tuple[Staff, str] | None:
    """Return the account that has entered its password but not yet its second factor. Also return the URL to open after the login.

    This state is valid for ten minutes. It ends when the password or the factors of the account change.
    """
    waiting = request.session.get(_WAITING)
    if not waiting or not 0 <= time.time() - waiting["at"] < _WAITING_SECONDS:
        return None
    staff = Staff.objects.select_related("tenant").filter(pk=waiting["staff"]).first()
    if staff is None or not may_enter(staff) or not constant_time_compare(waiting["hash"], staff.get_session_auth_hash()):
        return None
    return staff, str(waiting["next"])


class SignInPages(SitePages):
    """The page of the second factor, and the login with a passkey alone."""

    def urls(self) -> list[URLPattern]:
        return [
            path("login/factor/", self.second_factor, name="second_factor"),
            path("login/passkey/", self.passkey, name="passkey_sign_in"),
            path("login/passkey/options/", self.options, name="passkey_sign_in_options"),
        ]

    def login(self, request: HttpRequest) -> HttpResponseBase:
        """Show the login form and check it. A correct login leads to the page that was requested, or to the second factor."""
        context = {**self.site.each_context(request), "title": "Log in", "subtitle": None, "app_path": request.get_full_path()}
        request.current_app = self.site.name
        return StaffLoginView.as_view(extra_context={**context, "username": request.user.get_username()})(request)

    @method_decorator(never_cache)
    def second_factor(self, request: HttpRequest) -> HttpResponse:
        """Ask for the second factor of the account that has entered the right password."""
        found = waiting_staff(request)
        if found is None:
            return HttpResponseRedirect(self.address("login"))
        staff, following = found
        form = CodeForm(request.POST if request.method == "POST" and CREDENTIAL not in request.POST else None)
        refusal = ""
        try:
            by = self._judged(request, staff, form)
            if by is not None:
                return entered(request, staff, by, following)
        except NotProven as error:
            count_failure(request, staff.email)
            refusal = str(error)
        kinds = set(staff.factors.values_list("kind", flat=True))
        return self.page(
            request,
            "admin/second_factor.html",
            "Confirm your login",
            form=form,
            refusal=refusal,
            email=staff.email,
            has_passkey=StaffFactor.Kind.PASSKEY in kinds,
            has_app=StaffFactor.Kind.TOTP in kinds,
        )

    def _judged(self, request: HttpRequest, staff: Staff, form: CodeForm) -> Proof | None:
        if request.method != "POST":
            return None
        if CREDENTIAL in request.POST:
            proven_by_passkey(request, Purpose.SECOND_FACTOR, staff)
            return Proof.PASSKEY
        return proven_by_code(request, staff, form.cleaned_data["code"]) if form.is_valid() else None

    @method_decorator([never_cache, require_POST])
    def passkey(self, request: HttpRequest) -> HttpResponse:
        """Log in with a passkey alone; its credential id identifies the account. All refusals show the same text."""
        try:
            if is_shut_out(request, ""):
                raise NotProven(WRONG_PASSKEY)
            staff = proven_by_passkey(request, Purpose.SIGN_IN)
            if not may_enter(staff):
                raise NotProven(WRONG_PASSKEY)
        except NotProven:
            count_failure(request, "")
            messages.error(request, WRONG_PASSKEY)
            return HttpResponseRedirect(f"{self.address('login')}?{urlencode({'next': self.following(request)})}")
        return entered(request, staff, Proof.PASSKEY, self.following(request))

    @method_decorator([never_cache, require_POST])
    def options(self, request: HttpRequest) -> HttpResponse:
        """Return the options with which the browser signs.

        After the right password was entered, only passkeys of its account can sign. If no password was entered, every passkey can sign.
        """
        if not tries.CHALLENGES.takes(counted_address(address_of(request, settings.TRUSTED_PROXIES))):
            return JsonResponse({"error": tries.TOO_MANY}, status=429, headers=Rate.of_empty(tries.CHALLENGES).headers)
        found = waiting_staff(request) if request.GET.get("for") == Purpose.SECOND_FACTOR else None
        if found is None:
            return JsonResponse(challenges.asked_to_sign(request, Purpose.SIGN_IN))
        own = found[0].factors.filter(kind=StaffFactor.Kind.PASSKEY)
        return JsonResponse(challenges.asked_to_sign(request, Purpose.SECOND_FACTOR, own))
