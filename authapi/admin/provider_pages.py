"""The page of a connection about its provider: values for the provider, data of the provider, certificates, metadata, and a test login."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from authapi.admin.sources.sample_form import SampleForm, sample_form
from authapi.admin.sources.shown_claims import shown_claims
from authapi.models import ProviderMetadata as MetadataRow
from authapi.upstream.connection_tests import begin_test, can_be_tested, last_test
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.mapping_preview import Preview, previewed
from authapi.upstream.metadata_refresh import fetch_now, source_of
from authapi.upstream.people import Foreseen, foreseen
from authapi.upstream.provider_facts import facts_of
from authapi.upstream.provider_metadata import known_row
from authapi.upstream.read_claims import unstored_claims
from authapi.upstream.saml.certificates import Certificate
from authapi.upstream.sample_claims import Sample, keeps_claims, left_out_of, newest_sample, sample_of_test
from authapi.upstream.sent_claims import CLAIMS
from foundation.admin.badges import badge
from identity.admin.connections import ConnectionAdmin
from identity.admin.people.labels import label_of
from identity.admin.row_pages import RowPage, RowPagesAdmin
from identity.audit.entries import record
from identity.hosts import address_beside
from identity.models import Connection

NAME = "provider"
EXPIRES_SOON = timedelta(days=30)
_MOST_CLAIMS = 30
_MAY_CHANGE = "identity.change_connection"


class ProviderPages:
    """The provider page of one admin site."""

    def __init__(self, site: admin.AdminSite, owner: RowPagesAdmin[Connection]) -> None:
        self._site = site
        self._owner = owner

    def add(self) -> None:
        """Add the page, and the preview in the form, to the admin class of connections."""
        if isinstance(self._owner, ConnectionAdmin):
            self._owner.preview_of = self._mapped
        self._owner.row_pages += [RowPage(NAME, "Test connection", self.shown, "identity.view_connection", can_be_tested)]

    def shown(self, request: HttpRequest, connection: Connection) -> HttpResponse:
        """Show the page. On POST, fetch the metadata, begin a test, or preview a profile."""
        address = ""
        sample, entered = _sample_for(request, connection)
        preview = sample_form(connection, sample.parts, entered)
        if request.method == "POST" and "preview" not in request.POST and request.user.has_perm(_MAY_CHANGE):
            if "fetch" in request.POST:
                return self._fetched(request, connection)
            address = self._begun(request, connection)
        base = address_beside(request.get_host(), connection.tenant_id)
        now = timezone.now()
        facts = facts_of(connection, base=f"{base}/")
        row = known_row(connection)
        context = {
            **self._site.each_context(request),
            "opts": self._owner.opts,
            "original": connection,
            "title": f"Test connection: {connection}",
            "facts": facts,
            "certificates": [_certificate(certificate, now) for certificate in facts.certificates],
            "metadata": row,
            "metadata_state": _metadata_state(row, now),
            "is_fetched": _is_fetched(connection),
            "test_address": address,
            "sample": sample,
            "unstored": unstored_claims(connection, sample.left_out),
            "preview": preview,
            "previewed": _previewed(connection, preview),
            "test": self._test(request, connection),
            "may_change": request.user.has_perm(_MAY_CHANGE),
            "back_url": self._owner.address_of("change", connection),
        }
        return TemplateResponse(request, "admin/connection_provider.html", context)

    def _mapped(self, connection: Connection) -> Mapping[str, Any] | None:
        """Return, for the form of the connection, the profile that the saved attribute map creates from the newest claims."""
        if not can_be_tested(connection):
            return None
        sample = newest_sample(connection)
        shown: dict[str, Any] = {
            "claims": shown_claims(sample.parts, most=_MOST_CLAIMS),
            "sample": sample,
            "unstored": unstored_claims(connection, sample.left_out),
            "keeps_claims": keeps_claims(connection),
            "url": f"{self._owner.address_of(NAME, connection)}#preview-title",
        }
        try:
            found = previewed(connection, sample.parts)
        except UpstreamFailed as failed:
            return {**shown, "problem": failed.detail or failed.failure.description}
        return {**shown, **_profile(found)}

    def _fetched(self, request: HttpRequest, connection: Connection) -> HttpResponse:
        try:
            found = fetch_now(connection)
        except UpstreamFailed as failed:
            messages.error(request, failed.detail or failed.failure.description)
        else:
            if found is None:
                messages.warning(request, "The metadata is being fetched already. Reload this page in a few seconds.")
            else:
                messages.success(request, "Metadata fetched.")
                record("Fetch metadata", about=connection)
        return HttpResponseRedirect(request.path)

    def _begun(self, request: HttpRequest, connection: Connection) -> str:
        """Return the URL at which the test begins; empty if the test cannot begin."""
        try:
            address = begin_test(connection, base=address_beside(request.get_host(), connection.tenant_id))
        except UpstreamFailed as failed:
            messages.error(request, f"{failed.failure.description} {failed.detail}")
            return ""
        record("Test connection", about=connection)
        return address

    def _test(self, request: HttpRequest, connection: Connection) -> dict[str, Any] | None:
        """Return the last test, and the effect that a login with its subject would have now. Return None if there was no test."""
        row = last_test(connection)
        if row is None:
            return None
        result = row.result or {}
        email = str((result.get("profile") or {}).get("email") or "")
        effect = foreseen(connection, result["subject"], email=email) if result.get("is_success") else Foreseen()
        may_see = effect.user is not None and request.user.has_perm("identity.view_user")
        page = reverse(f"{self._site.name}:identity_user_change", args=(quote(effect.user.pk),)) if effect.user and may_see else ""
        profile = (result.get("profile") or {}) if effect.takes_profile else {}
        return {
            "created_at": row.created_at,
            "is_over": row.result is not None or row.expires_at <= timezone.now(),
            "is_success": bool(result.get("is_success")),
            "problem": result.get("problem", "" if row.result is not None else "The provider did not respond."),
            "subject": result.get("subject", ""),
            "effect": effect,
            "user_name": label_of(effect.user) if may_see else effect.user_id,
            "user_url": page,
            "profile": {name: _shown(value) for name, value in profile.items()},
            "claims": shown_claims(result["sent"]) if isinstance(result.get("sent"), Mapping) else None,
            "left_out": left_out_of(row),
            "is_mapped": CLAIMS in (result.get("sent") or {}),
            "message": row.message,
        }


def _shown(value: Any) -> Any:
    """Return a value of a profile for display: a boolean as Yes or No."""
    return ("Yes" if value else "No") if isinstance(value, bool) else value


def _sample_for(request: HttpRequest, connection: Connection) -> tuple[Sample, QueryDict | None]:
    """Return two values: the claims that fill the form, and the submitted form. The second value is None if the submitted form is not used.

    If the submitted form names a test, the claims are those of this test. Otherwise the claims of the newest test are returned.
    """
    newest = newest_sample(connection)
    if request.method != "POST" or "preview" not in request.POST:
        return newest, None
    if "sample" not in request.POST:
        return newest, request.POST
    sample = sample_of_test(connection, request.POST["sample"])
    if sample is None:
        messages.error(request, "The test with these claims no longer exists. The page shows the claims of the newest test.")
        return newest, None
    return sample, request.POST


def _previewed(connection: Connection, form: SampleForm) -> dict[str, Any] | None:
    """Return the profile of the sample claims. If a login with these claims would fail, show the reason in the form and return None."""
    if not form.is_bound or not form.is_valid():
        return None
    try:
        return _profile(previewed(connection, form.parts))
    except UpstreamFailed as failed:
        form.add_error(form.place_of(failed), failed.detail or failed.failure.description)
        return None


def _profile(preview: Preview) -> dict[str, Any]:
    profile = {name: _shown(value) for name, value in preview.profile.items()}
    return {"subject": preview.subject, "profile": profile, "skips_userinfo": preview.skips_userinfo}


def _is_fetched(connection: Connection) -> bool:
    try:
        return source_of(connection) is not None
    except UpstreamFailed:
        return False


def _certificate(certificate: Certificate, now: datetime) -> dict[str, Any]:
    return {
        "subject": certificate.subject,
        "thumbprint": certificate.thumbprint,
        "not_after": certificate.not_after,
        "state": certificate_state(certificate, now),
    }


def certificate_state(certificate: Certificate, now: datetime) -> SafeString:
    """Return a badge with the remaining validity of a certificate."""
    if certificate.is_expired(now):
        return badge("Expired", "bad")
    if certificate.expires_within(EXPIRES_SOON, now):
        return badge(f"Expires in {max((certificate.not_after - now).days, 0)} days", "warn")
    return badge("Valid", "good")


def _metadata_state(row: MetadataRow | None, now: datetime) -> SafeString | str:
    if row is None:
        return badge("Not fetched yet", "quiet")
    if row.problem:
        return badge("Failed", "bad")
    return badge("Fetched", "good")
