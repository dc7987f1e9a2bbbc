"""The page that asks for a fresh proof of identity and then returns to the requested page."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from config.console.staff_account import challenges
from config.console.staff_account.challenges import Purpose
from config.console.staff_account.forms import CodeForm, PasswordForm
from config.console.staff_account.pages import SitePages
from config.console.staff_account.proving import CREDENTIAL, NotProven, proven_by_code, proven_by_passkey, proven_by_password
from identity.admin.assurance import Proof, is_proven, note_proof, say_what_was_held, was_held
from identity.admin.scope import staff_of
from identity.models import Staff, StaffFactor


class ProvePage(SitePages):
    """Requests a factor if the account has one: a password would prove less than the login did."""

    def urls(self) -> list[URLPattern]:
        return [
            path("account/prove/", self.site.admin_view(self.prove), name="prove"),
            path("account/prove/options/", self.site.admin_view(self.options), name="prove_options"),
        ]

    def prove(self, request: HttpRequest) -> HttpResponse:
        """Show the methods with which the account can prove its identity, and check the submitted proof."""
        staff = staff_of(request)
        if staff is None:
            raise Http404
        kinds = set(staff.factors.values_list("kind", flat=True))
        is_form = request.method == "POST" and CREDENTIAL not in request.POST
        form = (CodeForm if kinds else PasswordForm)(request.POST if is_form else None)
        refusal = ""
        if is_proven(request):
            return self._back(request)
        try:
            by = self._judged(request, staff, form)
            if by is not None:
                note_proof(request, by)
                return self._back(request)
        except NotProven as error:
            refusal = str(error)
        return self.page(
            request,
            "admin/prove.html",
            "Confirm your identity",
            form=form,
            refusal=refusal,
            following=self.following(request),
            was_held=was_held(request),
            has_factors=bool(kinds),
            has_passkey=StaffFactor.Kind.PASSKEY in kinds,
        )

    def _judged(self, request: HttpRequest, staff: Staff, form: CodeForm | PasswordForm) -> Proof | None:
        if request.method != "POST":
            return None
        if CREDENTIAL in request.POST:
            proven_by_passkey(request, Purpose.PROVE, staff)
            return Proof.PASSKEY
        if not form.is_valid():
            return None
        if isinstance(form, PasswordForm):
            return proven_by_password(staff, form.cleaned_data["password"])
        return proven_by_code(request, staff, form.cleaned_data["code"])

    def _back(self, request: HttpRequest) -> HttpResponse:
        if was_held(request):
            say_what_was_held(request)
        return HttpResponseRedirect(self.following(request))

    @method_decorator(require_POST)
    def options(self, request: HttpRequest) -> HttpResponse:
        """Return the options with which the browser signs."""
        staff = staff_of(request)
        own = staff.factors.filter(kind=StaffFactor.Kind.PASSKEY) if staff else StaffFactor.objects.none()
        return JsonResponse(challenges.asked_to_sign(request, Purpose.PROVE, own))
