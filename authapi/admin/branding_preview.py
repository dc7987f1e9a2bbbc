"""The preview of a tenant's branding: a page like the hosted pages, with unsaved values.

The URL contains the values, with a signature of the admin site. If the signature is invalid or older than an hour, the page shows the
stored branding. The page has no scripts and no working forms, and only the admin can show it in a frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from django import forms
from django.contrib.staticfiles import finders
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from authapi.looks.addresses import is_own_picture
from authapi.looks.current import Looks
from authapi.pages.branding import Brand, brand_from, page_policy
from authapi.pages.form_fields import Field, FieldLink, Problem, form_fields

_SALT = "authapi.branding_preview"
_GOOD_SECONDS = 3600
_MODES = (("light", "Light"), ("dark", "Dark"))
_DEVICES = (("desktop", "Desktop"), ("phone", "Phone"))
_SAMPLES = (("login", "Login form"), ("messages", "Form with messages"))
_FRAMED_BY = "'self'"
_QUERY = "(prefers-color-scheme: {})"
# Two media queries: the first query is always true, the second query is never true.
_TRUE, _FALSE = "(min-width: 0)", "(max-width: 0)"
_SHEET = "theme/hosted.css"


class PreviewForm(forms.Form):
    """The options of the preview: color mode, screen width, and which page it shows."""

    mode = forms.ChoiceField(choices=_MODES, initial="light", widget=forms.RadioSelect, required=False, label="Color mode")
    device = forms.ChoiceField(choices=_DEVICES, initial="desktop", widget=forms.RadioSelect, required=False)
    sample = forms.ChoiceField(choices=_SAMPLES, initial="login", widget=forms.RadioSelect, required=False, label="Page")

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, prefix="preview")

    def clean(self) -> dict[str, Any]:
        """Replace each missing choice with its default."""
        values = super().clean() or self.cleaned_data
        return {name: value or self.fields[name].initial for name, value in values.items()}


@dataclass(frozen=True)
class PreviewState:
    """Unsaved branding with the options of its preview. The admin page applies `device` by setting the width of the frame."""

    looks: Looks
    mode: str = "light"
    device: str = "desktop"
    sample: str = "login"

    def signed(self, tenant_id: str) -> str:
        """Return the state as text for a URL. The text is valid for an hour, and only for this tenant."""
        return signing.dumps({**asdict(self), "tenant": tenant_id}, salt=_SALT, compress=True)


def read_state(text: str, tenant_id: str) -> PreviewState | None:
    """Return the state that `signed` encoded for this tenant; None for any other text."""
    try:
        values = signing.loads(text, salt=_SALT, max_age=_GOOD_SECONDS)
    except signing.BadSignature:
        return None
    if values.pop("tenant", None) != tenant_id:
        return None
    return PreviewState(**{**values, "looks": Looks(**values["looks"])})


def preview_page(
    request: HttpRequest, tenant_id: str, state: PreviewState, style_address: str, picture_address: Callable[[str], str]
) -> HttpResponse:
    """Return the response that is shown in the preview frame."""
    brand = brand_from(state.looks, tenant_id)
    shown = _within_the_admin(brand, f"{style_address}?{urlencode({'looks': state.signed(tenant_id)})}", picture_address)
    context = {"brand": shown, **_sample(has_messages=state.sample == "messages")}
    answer = render(request, "hosted/preview.html", context)
    answer["Content-Security-Policy"] = f"{page_policy(brand, framed_by=_FRAMED_BY)}; sandbox allow-same-origin"
    answer["X-Frame-Options"] = "SAMEORIGIN"
    answer["Cache-Control"] = "no-store"
    return answer


def _sample(*, has_messages: bool) -> dict[str, Any]:
    """Return the content of the page. With `has_messages`, the page also shows errors."""
    problems = [Problem(_("Enter your password."), "password")] if has_messages else []
    fields = [
        Field("email", _("Email address"), type="email", value="ada@example.com"),
        Field("password", _("Password"), type="password", link=FieldLink("#email", _("Forgot password?"))),
    ]
    # No field gets the focus: in a sandboxed frame, browsers ignore the attribute `autofocus` and log a warning.
    shown = [replace(field, has_focus=False) for field in form_fields(fields, problems)]
    return {"has_messages": has_messages, "problems": problems, "fields": shown}


def preview_stylesheet(state: PreviewState, picture_address: Callable[[str], str]) -> HttpResponse:
    """Return the style sheets of the hosted pages and the branding, with media queries fixed to the chosen mode."""
    css = f"{Path(str(finders.find(_SHEET))).read_text()}\n{state.looks.stylesheet}"
    for mode, _label in _MODES:
        css = css.replace(_QUERY.format(mode), _TRUE if mode == state.mode else _FALSE)
    css = f"{css}\n:root {{ color-scheme: {'dark' if state.mode == 'dark' else 'light'}; }}"
    if is_own_picture(state.looks.background):
        css = css.replace(f'url("{state.looks.background}")', f'url("{picture_address(state.looks.background)}")')
    answer = HttpResponse(css, content_type="text/css; charset=utf-8")
    answer["Cache-Control"] = "no-store"
    return answer


def _within_the_admin(brand: Brand, style_address: str, picture_address: Callable[[str], str]) -> dict[str, Any]:
    """Return the brand with the URLs of its pictures on the host of the admin."""
    return {
        **asdict(brand),
        "logo": picture_address(brand.logo),
        "favicon": picture_address(brand.favicon),
        "stylesheet": style_address,
    }
