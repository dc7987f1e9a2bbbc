"""Custom texts of a tenant for its hosted pages. Each screen and language has one form, with the default text below each field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.text import capfirst

from authapi.custom_texts import PROMPTS, Screen, default_text
from authapi.models import CustomText
from authapi.services.custom_texts import LONGEST_TEXT, custom_texts_of, set_custom_texts, text_problem
from foundation.acting import said
from foundation.admin.shown_values import ShowsValues
from identity.admin.refusals import add_to_form, refusals
from identity.admin.tenant_page import TenantPage
from identity.languages import LANGUAGES, enabled_languages, speaking

_CHANGE = "authapi.change_customtext"
_RESET = "reset"
_ABBREVIATIONS = {"ip": "IP", "sms": "SMS", "url": "URL", "qr": "QR", "otp": "OTP"}


class TextsForm(ShowsValues, forms.Form):
    """A form with a field for each text of a screen. If a field is empty, pages show the default text."""

    def __init__(self, screen: Screen, language: str, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._screen = screen
        with speaking(language):
            defaults = {key: default_text(screen, key) for key in screen.texts}
        direction = "rtl" if LANGUAGES[language].is_rtl else "ltr"
        for key, default in defaults.items():
            attributes = {"size": 60, "lang": language, "dir": direction, "placeholder": default}
            field = forms.CharField(required=False, max_length=LONGEST_TEXT, label=_label(key), widget=forms.TextInput(attrs=attributes))
            field.default = default  # type: ignore[attr-defined]  # read by the template
            self.fields[key] = field

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        for key, text in list(values.items()):
            if problem := text_problem(self._screen, text):
                self.add_error(key, problem)
        return values


class TextsPage(TenantPage):
    """The list of all screens, and the texts of one screen in one language."""

    label = "authapi.texts-page"
    title = "Texts of pages"
    url_name = "authapi_texts"
    permission = "authapi.view_customtext"

    def urls(self) -> list[URLPattern]:
        place = "authapi/texts/<str:prompt>/<str:screen>/<str:language>/"
        return [
            path("authapi/texts/", self.for_tenant(self._overview), name=self.url_name),
            path(place, self.for_tenant(self._screen), name=f"{self.url_name}_screen"),
        ]

    def _overview(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        own = {
            (row.prompt, screen, row.language): len(texts)
            for row in CustomText.objects.of(tenant_id)
            for screen, texts in row.texts.items()
        }
        enabled = enabled_languages(tenant_id)
        screens = [
            {
                "title": screen.title,
                "path": f"{prompt}.{name}",
                "languages": [
                    {"name": LANGUAGES[code].name, "url": self._place(prompt, name, code), "count": own.get((prompt, name, code), 0)}
                    for code in LANGUAGES
                ],
            }
            for prompt, found in PROMPTS.items()
            for name, screen in found.items()
        ]
        languages = [{"name": each.name, "is_enabled": code in enabled} for code, each in LANGUAGES.items()]
        return self.page(request, "admin/texts_overview.html", {"screens": screens, "languages": languages})

    def _screen(self, request: HttpRequest, tenant_id: str, *, prompt: str, screen: str, language: str) -> HttpResponse:
        found = PROMPTS.get(prompt, {}).get(screen)
        if found is None or language not in LANGUAGES:
            raise Http404
        kept = custom_texts_of(tenant_id=tenant_id, prompt=prompt, language=language)
        own = kept.get(screen, {})
        if request.method != "POST":
            return self._form_page(request, tenant_id, prompt, found, language, TextsForm(found, language, initial=own))
        if not self.may_see(request, _CHANGE):
            raise Http404
        texts = {key: text for key, text in own.items() if key != request.POST.get(_RESET)}
        form = TextsForm(found, language, request.POST, initial=own)
        if _RESET not in request.POST:
            if not form.is_valid():
                return self._form_page(request, tenant_id, prompt, found, language, form)
            texts = form.cleaned_data
        try:
            with said("Texts of pages", ""):
                set_custom_texts(tenant_id=tenant_id, prompt=prompt, language=language, texts={**kept, screen: texts})
        except refusals() as refusal:
            add_to_form(form, refusal)
            return self._form_page(request, tenant_id, prompt, found, language, form)
        messages.success(request, _done(own, request.POST.get(_RESET)))
        return HttpResponseRedirect(self._place(prompt, screen, language))

    def _form_page(self, request: HttpRequest, tenant_id: str, prompt: str, screen: Screen, language: str, form: TextsForm) -> HttpResponse:
        own = custom_texts_of(tenant_id=tenant_id, prompt=prompt, language=language).get(screen.name, {})
        context = {
            "title": f"Texts of “{screen.title}” in {LANGUAGES[language].name}",
            "form": form,
            "own": own,
            "language": language,
            "direction": "rtl" if LANGUAGES[language].is_rtl else "ltr",
            "is_enabled": language in enabled_languages(tenant_id),
            "language_name": LANGUAGES[language].name,
            "placeholders": screen.placeholders,
            "longest": LONGEST_TEXT,
            "may_change": self.may_see(request, _CHANGE),
            "overview": self.address,
            "others": [
                {"name": each.name, "url": self._place(prompt, screen.name, code)} for code, each in LANGUAGES.items() if code != language
            ],
        }
        return self.page(request, "admin/texts_screen.html", context)

    def _place(self, prompt: str, screen: str, language: str) -> str:
        return reverse(f"{self.site.name}:{self.url_name}_screen", kwargs={"prompt": prompt, "screen": screen, "language": language})


def _label(key: str) -> str:
    """Return the name of a text in words: `pageTitle` is "Page title"."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|-", " ", key).lower().split()
    return str(capfirst(" ".join(_ABBREVIATIONS.get(word, word) for word in words)))


def _done(before: Mapping[str, str], reset: str | None) -> str:
    if reset is None:
        return "Texts saved. Pages show them within a second."
    # Show the former text, so that the administrator can enter it again.
    return f"Text reset to its default: {reset[:64]}. Your text was: {before.get(reset, '')}"
