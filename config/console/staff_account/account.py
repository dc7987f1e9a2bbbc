"""The page that lists the second factors of the staff account, and the pages that add, rename and remove a factor."""

from __future__ import annotations

import time
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from config.console.staff_account import app_secret, challenges
from config.console.staff_account.challenges import Purpose
from config.console.staff_account.forms import AuthenticatorForm, NameForm, PasskeyForm, RemovalForm
from config.console.staff_account.pages import SitePages
from config.console.staff_account.proving import CREDENTIAL
from foundation.secrets import totp
from identity.admin.assurance import Proof, forget_requirement, is_required_of, must_enrol, needs_proof, note_proof
from identity.admin.refusals import add_to_form, refusals
from identity.admin.scope import staff_of
from identity.factors import passkeys, staff_factors
from identity.factors.staff_factors import Enrolled
from identity.models import Staff, StaffFactor

_FEW_CODES = 3


class AccountPages(SitePages):
    """The pages on which the logged-in account manages its own factors. The URLs of these pages contain no account: the session identifies
    the account."""

    def urls(self) -> list[URLPattern]:
        return [
            path("account/", self.site.admin_view(self.overview), name="account"),
            path("account/app/", self.site.admin_view(self.add_app), name="account_app"),
            path("account/passkey/", self.site.admin_view(self.add_passkey), name="account_passkey"),
            path("account/passkey/options/", self.site.admin_view(self.options), name="account_passkey_options"),
            path("account/recovery-codes/", self.site.admin_view(self.recovery_codes), name="account_recovery_codes"),
            path("account/factors/<slug:factor_id>/rename/", self.site.admin_view(self.rename), name="account_rename"),
            path("account/factors/<slug:factor_id>/remove/", self.site.admin_view(self.remove), name="account_remove"),
        ]

    def overview(self, request: HttpRequest) -> HttpResponse:
        """List the factors of the staff account."""
        staff = _own(request)
        factors = list(staff.factors.all())
        left = staff_factors.recovery_codes_left(staff)
        return self.page(
            request,
            "admin/account.html",
            "Your account",
            staff=staff,
            factors=factors,
            codes_left=left,
            has_few_codes=bool(factors) and left <= _FEW_CODES,
            must_enrol=must_enrol(request),
            is_required=is_required_of(staff),
            host=settings.PLATFORM_HOST,
        )

    @method_decorator(needs_proof)
    def add_app(self, request: HttpRequest) -> HttpResponse:
        """Show a secret as a QR code and as text. On POST, enroll the authenticator app if the posted code belongs to this secret."""
        staff = _own(request)
        secret = app_secret.kept(request, staff)
        form = AuthenticatorForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            values = form.cleaned_data
            try:
                code = "".join(values["code"].split())
                enrolled = staff_factors.add_totp(staff_id=staff.pk, name=values["name"], secret=secret, code=code, moment=time.time())
            except staff_factors.WrongCode as refusal:
                form.add_error("code", str(refusal))
            except refusals() as refusal:
                add_to_form(form, refusal)
            else:
                app_secret.forget(request)
                return self._enrolled(request, enrolled, Proof.CODE)
        picture = app_secret.picture_of(secret, staff)
        return self.page(
            request, "admin/account_app.html", "Add an authenticator app", form=form, picture=picture, secret=totp.in_groups(secret)
        )

    @method_decorator(needs_proof)
    def add_passkey(self, request: HttpRequest) -> HttpResponse:
        """Enroll the passkey that the browser created."""
        staff = _own(request)
        form = PasskeyForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            try:
                made = passkeys.verified_enrolment(
                    request.POST.get(CREDENTIAL, ""),
                    challenge=challenges.taken(request, Purpose.ENROL),
                    origin=passkeys.origin_of(request.get_host()),
                )
                enrolled = staff_factors.add_passkey(staff_id=staff.pk, name=form.cleaned_data["name"], passkey=made)
            except passkeys.PasskeyRefused:
                form.add_error(None, "The browser did not create a valid passkey. Try again, or add an authenticator app.")
            except refusals() as refusal:
                add_to_form(form, refusal)
            else:
                return self._enrolled(request, enrolled, Proof.PASSKEY)
        return self.page(request, "admin/account_passkey.html", "Add a passkey", form=form)

    @method_decorator([require_POST, needs_proof])
    def options(self, request: HttpRequest) -> HttpResponse:
        """Return the options with which the browser creates a passkey."""
        return JsonResponse(challenges.asked_to_enrol(request, _own(request)))

    @method_decorator(needs_proof)
    def rename(self, request: HttpRequest, factor_id: str) -> HttpResponse:
        """Rename a factor."""
        factor = _own_factor(request, factor_id)
        form = NameForm(request.POST if request.method == "POST" else None, initial={"name": factor.name})
        if request.method == "POST" and form.is_valid():
            try:
                staff_factors.rename_factor(staff_id=factor.staff_id, factor_id=factor.pk, name=form.cleaned_data["name"])
            except refusals() as refusal:
                add_to_form(form, refusal)
            else:
                return self._done(request, "Second factor renamed.")
        return self._asking(request, form, title=f"Rename {factor.name}", explanation="", label="Rename")

    @method_decorator(needs_proof)
    def remove(self, request: HttpRequest, factor_id: str) -> HttpResponse:
        """Remove a factor after a confirmation. If this is the last factor, a checkbox of the form must be selected, too."""
        factor = _own_factor(request, factor_id)
        is_last = factor.staff.factors.count() == 1
        form = RemovalForm(request.POST if request.method == "POST" else None, is_last=is_last)
        if request.method == "POST" and form.is_valid():
            staff = staff_factors.remove_factor(staff_id=factor.staff_id, factor_id=factor.pk)
            _keep_session(request, staff)
            return self._done(request, f"{factor.name} removed. Your other sessions have ended.")
        explanation = f"You can no longer log in with {factor.name}. Your other sessions end."
        if is_last:
            explanation += " This is your last second factor: your recovery codes are deleted, too, and "
            must = "you must add another second factor before you can do anything else."
            explanation += must if is_required_of(factor.staff) else "you then log in with your password alone."
        return self._asking(request, form, title=f"Remove {factor.name}?", explanation=explanation, label="Remove", is_dangerous=True)

    @method_decorator(needs_proof)
    def recovery_codes(self, request: HttpRequest) -> HttpResponse:
        """Create new recovery codes after a confirmation, and show them."""
        if not staff_factors.has_factors(_own(request)):
            raise Http404
        if request.method == "POST":
            staff, codes = staff_factors.renew_recovery_codes(staff_id=_own(request).pk)
            _keep_session(request, staff)
            return self._codes(request, codes)
        explanation = "The next page shows ten new codes once. Your current codes stop working, and your other sessions end."
        return self._asking(
            request, forms.Form(), title="Create new recovery codes?", explanation=explanation, label="Create new recovery codes"
        )

    def _enrolled(self, request: HttpRequest, enrolled: Enrolled, by: Proof) -> HttpResponse:
        _keep_session(request, enrolled.staff)
        # The account has just used the new factor, so the new factor counts as the proof of this session.
        note_proof(request, by)
        said = f"{enrolled.factor.name} added. Your other sessions have ended."
        if not enrolled.recovery_codes:
            return self._done(request, said)
        messages.success(request, said)
        return self._codes(request, enrolled.recovery_codes)

    def _codes(self, request: HttpRequest, codes: tuple[str, ...]) -> HttpResponse:
        # The response to the POST shows the codes: to show them after a redirect, the service would have to store them.
        return self.page(request, "admin/account_recovery_codes.html", "Your recovery codes", codes=codes)

    def _asking(self, request: HttpRequest, form: forms.Form, **context: Any) -> HttpResponse:
        return self.page(request, "admin/account_act.html", form=form, **context)

    def _done(self, request: HttpRequest, said: str) -> HttpResponse:
        messages.success(request, said)
        return HttpResponseRedirect(self.address("account"))


def _own(request: HttpRequest) -> Staff:
    staff = staff_of(request)
    if staff is None:
        raise Http404
    return staff


def _own_factor(request: HttpRequest, factor_id: str) -> StaffFactor:
    factor = _own(request).factors.filter(pk=factor_id).first()
    if factor is None:
        raise Http404
    return factor


def _keep_session(request: HttpRequest, staff: Staff) -> None:
    """Keep this session, with a new key: a change of the factors ends all sessions that have the old key."""
    update_session_auth_hash(request, staff)
    forget_requirement(request)
