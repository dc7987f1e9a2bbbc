"""Pages of a tenant's messages: the list, and for each message its texts, a preview, and a test email to the staff account."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse

from foundation.admin.badges import badge
from foundation.admin.shown_values import without_shown
from identity.admin.messages.forms import TemplateForm
from identity.admin.refusals import add_to_form, as_text, refusals
from identity.admin.scope import staff_of
from identity.admin.tenant_page import TenantPage
from identity.messages.catalogue import EMAIL, KINDS, Kind
from identity.messages.composing import Composed, Source
from identity.messages.queue import queue_test
from identity.messages.sandbox import TemplateBroken
from identity.messages.switches import is_switched_on
from identity.messages.templates import reset_template, save_template, template_at, templates_of, tried
from identity.models import MessageTemplate

_CHANGE = "identity.change_messagetemplate"
# A preview can load images, but cannot run scripts, submit forms, send other requests, or reach the admin page around its frame.
PREVIEW_POLICY = "; ".join(
    (
        "sandbox",
        "default-src 'none'",
        "img-src https: data:",
        "style-src 'unsafe-inline'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    )
)


class MessagesPage(TenantPage):
    """The list of all messages, and a page for each."""

    label = "identity.messages-page"
    title = "Mails and messages"
    url_name = "identity_messages"
    permission = "identity.view_messagetemplate"

    def urls(self) -> list[URLPattern]:
        place = "identity/messages"
        return [
            path(f"{place}/", self.for_tenant(self.every), name=self.url_name),
            path(f"{place}/<slug:name>/", self.for_tenant(self.one), name=f"{self.url_name}_one"),
            path(f"{place}/<slug:name>/preview/", self.for_tenant(self.preview), name=f"{self.url_name}_preview"),
            path(f"{place}/<slug:name>/test/", self.for_tenant(self.test, _CHANGE), name=f"{self.url_name}_test"),
            path(f"{place}/<slug:name>/reset/", self.for_tenant(self.reset, _CHANGE), name=f"{self.url_name}_reset"),
        ]

    def every(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """List all messages with their state."""
        rows: dict[tuple[str, str], list[MessageTemplate]] = {}
        for row in MessageTemplate.objects.of(tenant_id):
            rows.setdefault((row.name, row.channel), []).append(row)
        kinds = [
            {
                "kind": kind,
                "url": self._at("one", kind),
                "state": _state(tenant_id, kind),
                "texts": _texts(rows.get((kind.name, kind.channel), [])),
            }
            for kind in KINDS.values()
        ]
        context = {
            "sent": [one for one in kinds if one["kind"].is_sent],  # type: ignore[attr-defined]
            "unsent": [one for one in kinds if not one["kind"].is_sent],  # type: ignore[attr-defined]
            "providers_url": reverse(f"{self.site.name}:identity_senders"),
        }
        return self.page(request, "admin/messages.html", context)

    def one(self, request: HttpRequest, tenant_id: str, name: str) -> HttpResponse:
        """Show and save the texts of a message in one language."""
        kind, language = _kind(name), _language(request)
        row = template_at(tenant_id, kind, language)
        may_change = self.may_see(request, _CHANGE)
        form = TemplateForm(
            request.POST if request.method == "POST" and may_change else None, kind=kind, language=language, row=row, label_suffix=""
        )
        if request.method == "POST" and may_change and form.is_valid():
            try:
                save_template(tenant_id=tenant_id, name=kind.name, values=form.values(), language=language)
            except refusals() as refusal:
                add_to_form(form, refusal)
            else:
                messages.success(request, "Text saved.")
                return HttpResponseRedirect(self._at("one", kind, language))
        return self.page(request, "admin/message.html", self._shown(tenant_id, kind, language, row, form) | {"may_change": may_change})

    def preview(self, request: HttpRequest, tenant_id: str, name: str) -> HttpResponse:
        """Return the message with sample data. GET uses the saved texts, POST the texts in the form."""
        kind, language = _kind(name), _language(request)
        row = template_at(tenant_id, kind, language)
        source = Source(row.subject, row.body, row.from_address) if row is not None else Source()
        if request.method == "POST":
            form = TemplateForm(without_shown(request.POST), kind=kind, language=language, row=row)
            if not form.is_valid():
                return _framed(
                    render_to_string("admin/message_problem.html", {"problem": "A field is invalid. Save to see what is wrong."})
                )
            texts = form.texts()
            source = Source(texts["subject"], texts["body"], texts["from_address"])
        try:
            found = tried(kind, source, tenant_id=tenant_id, language=language)
        except TemplateBroken as problem:
            return _framed(render_to_string("admin/message_problem.html", {"problem": str(problem)}))
        return _framed(_preview_page(kind, found))

    def test(self, request: HttpRequest, tenant_id: str, name: str) -> HttpResponse:
        """Send the saved text with sample data to the email address of the staff account."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        kind, language, staff = _kind(name), _language(request), staff_of(request)
        if staff is None or kind.channel != EMAIL:
            raise Http404
        try:
            job = queue_test(tenant_id=tenant_id, kind=kind.name, language=language, staff=staff)
        except refusals() as refusal:
            messages.error(request, as_text(refusal))
        else:
            messages.success(
                request, f"Test email for {staff.email} queued. The page of job {job.pk} shows whether the mail server accepted the email."
            )
        return HttpResponseRedirect(self._at("one", kind, language))

    def reset(self, request: HttpRequest, tenant_id: str, name: str) -> HttpResponse:
        """Delete the texts of one language after a confirmation. The service's default texts apply again."""
        kind, language = _kind(name), _language(request)
        back = self._at("one", kind, language)
        if request.method == "POST":
            count = reset_template(tenant_id=tenant_id, name=kind.name, language=language)
            messages.success(request, "Text reset to the default text." if count else "The message already has the default text.")
            return HttpResponseRedirect(back)
        row = template_at(tenant_id, kind, language)
        context = {"kind": kind, "language": _named(language), "row": row, "back_url": back, "list_url": self.address}
        return self.page(request, "admin/message_reset.html", context | {"title": f"Reset {kind.title}?"})

    def _shown(self, tenant_id: str, kind: Kind, language: str, row: MessageTemplate | None, form: TemplateForm) -> dict[str, Any]:
        written = set(templates_of(tenant_id, kind).values_list("language", flat=True))
        return {
            "title": kind.title,
            "kind": kind,
            "form": form,
            "row": row,
            "language": language,
            "languages": [{"code": code, "name": _named(code), "is_written": code in written} for code in _codes(written)],
            "state": _state(tenant_id, kind),
            "variables": [(name, about) for name, (about, _) in kind.every_variable.items()],
            "preview_url": self._at("preview", kind, language),
            "test_url": self._at("test", kind, language) if kind.channel == EMAIL else "",
            "reset_url": self._at("reset", kind, language),
            "list_url": self.address,
        }

    def _at(self, what: str, kind: Kind, language: str = "") -> str:
        address = reverse(f"{self.site.name}:{self.url_name}_{what}", kwargs={"name": kind.name})
        return f"{address}?{urlencode({'language': language})}" if language else address


def _kind(name: str) -> Kind:
    kind = KINDS.get(name)
    if kind is None or not kind.is_sent:
        raise Http404
    return kind


def _language(request: HttpRequest) -> str:
    """Return the language in the address, empty for all languages. Raises 404 for an unknown language."""
    language = request.GET.get("language", "")
    if language and language not in dict(settings.LANGUAGES):
        raise Http404
    return language


def _codes(written: set[str]) -> list[str]:
    known = [code for code, _ in settings.LANGUAGES]
    return ["", *known, *sorted(written - {"", *known})]


def _named(language: str) -> str:
    return str(dict(settings.LANGUAGES).get(language, language)) if language else "All languages without their own text"


def _state(tenant_id: str, kind: Kind) -> str:
    if not kind.is_sent:
        return badge("Not sent", "quiet")
    return badge("On", "good") if is_switched_on(tenant_id, kind) else badge("Off", "quiet")


def _texts(rows: list[MessageTemplate]) -> str:
    written = [row for row in rows if row.subject or row.body or row.from_address]
    return ", ".join(sorted(row.language or "all other languages" for row in written)) or "Default"


def _preview_page(kind: Kind, found: Composed) -> str:
    if kind.channel != EMAIL:
        return render_to_string("admin/message_text.html", {"text": found.text})
    return found.html


def _framed(html: str) -> HttpResponse:
    """Return HTML that only a page of the same host may show in a frame. Scripts, forms and all requests except for images are blocked."""
    answer = HttpResponse(html)
    answer["Content-Security-Policy"] = PREVIEW_POLICY
    answer["X-Frame-Options"] = "SAMEORIGIN"
    answer["Referrer-Policy"] = "no-referrer"
    answer["Cache-Control"] = "no-store"
    return answer
