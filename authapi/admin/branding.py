"""The page of a tenant's branding: a form, uploads, a preview that is updated after every change, and a reset to the defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import URLPattern, path, reverse

from authapi.admin.branding_form import ADDRESS_FIELDS, LooksForm
from authapi.admin.branding_preview import PreviewForm, PreviewState, preview_page, preview_stylesheet, read_state
from authapi.looks.addresses import PICTURES, is_own_picture
from authapi.looks.current import Looks
from authapi.looks.pictures import KINDS, MOST_BYTES, PictureRefused
from authapi.looks.theme import value_at
from authapi.models import BrandingTheme
from authapi.pages.branding import picture_answer
from authapi.services.branding import branding_of, default_theme_of, reset_looks, save_looks, theme_of, upload_picture
from authapi.tenant_settings import sign_in_settings
from foundation.admin.shown_values import without_shown
from identity.admin.refusals import refusals
from identity.admin.tenant_page import TenantPage
from identity.services.failures import Invalid

VIEW, CHANGE = "authapi.view_brandingtheme", "authapi.change_brandingtheme"
_KIND_NAMES = {"logo": "Logo", "favicon": "Icon", "background": "Background"}


class BrandingPage(TenantPage):
    """The branding of a tenant's login pages."""

    label = "authapi.branding-page"
    title = "Branding"
    url_name = "authapi_branding"
    permission = VIEW

    def urls(self) -> list[URLPattern]:
        name, place = self.url_name, "authapi/branding/"
        return [
            path(place, self.for_tenant(self.shown), name=name),
            path(f"{place}reset/", self.for_tenant(self.reset, CHANGE), name=f"{name}_reset"),
            path(f"{place}preview/", self.for_tenant(self.preview), name=f"{name}_preview"),
            path(f"{place}preview.css", self.for_tenant(self.preview_style), name=f"{name}_style"),
            path(f"{place}pictures/<str:name>", self.for_tenant(self.picture), name=f"{name}_picture"),
        ]

    def shown(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """Show the form. On POST, save the form or store an uploaded picture."""
        if request.method != "POST":
            return self._page(request, tenant_id, LooksForm(stored_looks(tenant_id)))
        if not self.may_see(request, CHANGE):
            raise PermissionDenied
        if "upload" in request.POST:
            return self._uploaded(request, tenant_id, request.POST["upload"])
        return self._saved(request, tenant_id)

    def reset(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """Reset the branding to the defaults after a confirmation."""
        if request.method == "POST":
            reset_looks(tenant_id=tenant_id)
            messages.success(request, "Branding reset. The login pages have the default design again.")
            return HttpResponseRedirect(self.address)
        context = {"title": "Reset branding?", "back_url": self.address, "tenant_id": tenant_id}
        return self.page(request, "admin/branding_reset.html", context)

    def preview(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """Return the preview on GET. On POST, redirect to the preview of the submitted form. Saves nothing."""
        if request.method != "POST":
            state = read_state(request.GET.get("looks", ""), tenant_id) or PreviewState(stored_looks(tenant_id))
            return preview_page(request, tenant_id, state, self.address_of("style"), self._picture_address)
        looks = stored_looks(tenant_id)
        form, wanted = LooksForm(looks, without_shown(request.POST)), PreviewForm(request.POST)
        is_good = form.is_valid() and wanted.is_valid()
        address = ""
        if is_good:
            values = form.branding()
            state = PreviewState(replace(looks, theme=form.theme(), **{name: values[name] or "" for name in values}), **wanted.cleaned_data)
            address = f"{self.address_of('preview')}?looks={state.signed(tenant_id)}"
        if "application/json" in request.headers.get("Accept", ""):
            return JsonResponse({"address": address, "problems": form.errors, "notices": form.notices() if is_good else {}})
        if is_good:
            return HttpResponseRedirect(address)
        return self._framed(self.page(request, "admin/branding_problems.html", {"form": form}).render())

    def preview_style(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """Return the style sheet of a preview."""
        state = read_state(request.GET.get("looks", ""), tenant_id)
        if state is None:
            raise Http404
        return preview_stylesheet(state, self._picture_address)

    def picture(self, request: HttpRequest, tenant_id: str, name: str) -> HttpResponse:
        """Return an uploaded picture on the host of the admin, for this page and its preview."""
        return picture_answer(tenant_id, name)

    def address_of(self, name: str, *args: str) -> str:
        """Return the URL of a part of this page."""
        return reverse(f"{self.site.name}:{self.url_name}_{name}", args=args)

    def _picture_address(self, stored: str) -> str:
        return self.address_of("picture", stored.removeprefix(PICTURES)) if is_own_picture(stored) else stored

    def _saved(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        form = LooksForm(stored_looks(tenant_id), request.POST)
        if not form.is_valid():
            return self._page(request, tenant_id, form)
        try:
            save_looks(tenant_id=tenant_id, branding=form.branding(), theme=form.theme())
        except refusals() as refusal:
            errors = refusal.errors if isinstance(refusal, Invalid) else {"": [str(refusal)]}
            for name, texts in errors.items():
                own = name.removeprefix("branding.").replace(".", "__")
                form.add_error(own if own in form.fields else None, texts)
            return self._page(request, tenant_id, form)
        messages.success(request, "Branding saved. The login pages show it within a second.")
        for sentence in form.notices().values():
            messages.warning(request, sentence)
        return HttpResponseRedirect(self.address)

    def _uploaded(self, request: HttpRequest, tenant_id: str, kind: str) -> HttpResponse:
        """Store a picture immediately. Other values of the form stay unsaved."""
        if kind not in KINDS:
            raise Http404
        sent: Any = request.FILES.get(f"file_{kind}")
        try:
            if sent is None:
                raise PictureRefused("Choose a file, then upload it.")
            stored = upload_picture(tenant_id=tenant_id, kind=kind, sent=sent.read(MOST_BYTES + 1))
        except PictureRefused as refused:
            return self._page(request, tenant_id, LooksForm(stored_looks(tenant_id), request.POST), refused={kind: str(refused)})
        messages.success(request, f"{_KIND_NAMES[kind]} uploaded ({stored.width} x {stored.height} pixels). The login pages show it now.")
        return self._page(request, tenant_id, LooksForm(stored_looks(tenant_id), _without_address(request.POST, kind)))

    def _page(self, request: HttpRequest, tenant_id: str, form: LooksForm, *, refused: dict[str, str] | None = None) -> HttpResponse:
        looks = stored_looks(tenant_id)
        uploaded = {"logo": looks.logo_url, "favicon": looks.favicon_url, "background": looks.background}
        pictures = {
            kind: {
                "name": kind,
                "label": label,
                "address": self._picture_address(uploaded[kind]) if is_own_picture(uploaded[kind]) else "",
                "problem": (refused or {}).get(kind, ""),
                "remove": form[f"remove_{kind}"] if f"remove_{kind}" in form.fields else None,
            }
            for kind, label in _KIND_NAMES.items()
        }
        context = {
            "form": form,
            "groups": [(group, near, far, [pictures[kind] for kind in group.pictures]) for group, near, far in form.groups()],
            "preview_form": PreviewForm(request.POST if request.method == "POST" else None),
            "may_change": self.may_see(request, CHANGE),
            "is_default": theme_of(tenant_id) is None and not any(branding_of(tenant_id).values()),
            "preview_url": self.address_of("preview"),
            "reset_url": self.address_of("reset"),
            "tenant_id": tenant_id,
            "opts": BrandingTheme._meta,
        }
        return self.page(request, "admin/branding.html", context)

    @staticmethod
    def _framed(answer: Any) -> HttpResponse:
        """Return the response with headers that let only the admin show it in a frame."""
        answer["Content-Security-Policy"] = "default-src 'none'; style-src 'self'; frame-ancestors 'self'; sandbox allow-same-origin"
        answer["X-Frame-Options"] = "SAMEORIGIN"
        return answer  # type: ignore[no-any-return]


def stored_looks(tenant_id: str) -> Looks:
    """Return the stored branding without a cache, because staff must see their saved changes at once. Always contains a theme."""
    branding, row = branding_of(tenant_id), theme_of(tenant_id)
    theme = row.values if row is not None else default_theme_of(tenant_id)
    # If the theme and the settings contain different logos, the pages show the logo of the theme. The form has one field for both logos.
    branding["logo_url"] = value_at(theme, ("widget", "logo_url")) or branding["logo_url"]
    return Looks(name=sign_in_settings(tenant_id).friendly_name, theme=theme, **branding)


def _without_address(sent: Any, kind: str) -> Any:
    """Return the form without the URL that an uploaded picture replaces, and without the checkbox that removes the former picture."""
    copied = sent.copy()
    copied[ADDRESS_FIELDS[kind]] = ""
    copied.pop(f"remove_{kind}", None)
    return copied
