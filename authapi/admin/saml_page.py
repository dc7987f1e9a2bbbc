"""The SAML page of an application: values to enter in the application, its settings in this service, and a preview of an assertion."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone

from authapi.admin.saml_form import SamlForm, form_values
from authapi.api.client_bodies import ClientToChange
from authapi.failures import RequestRefused
from authapi.models import Client, SamlKey
from authapi.protocols.saml.addresses import NoConsumerAddress, default_address, entity_id, login_address, logout_address, metadata_address
from authapi.protocols.saml.assertions import Answering, unsigned_assertion
from authapi.protocols.saml.entry import authenticated_of, new_id
from authapi.protocols.saml.metadata import MetadataUnusable, PartnerFacts, read_partner
from authapi.protocols.saml.partners import proposed
from authapi.protocols.saml.recipes import recipes
from authapi.protocols.saml.requests import AuthnRequest
from authapi.protocols.saml.settings import ADDON, is_on, settings_of
from authapi.services import clients
from authapi.tokens.saml_keys import current_key, published_certificates
from authapi.xml.building import laid_out
from authapi.xml.certificates import certificate_of, fingerprint_of, pem_of
from authapi.xml.parsing import METADATA
from foundation.acting import said
from foundation.admin.body_errors import sentences_of
from foundation.outbound.outcomes import OutboundError
from foundation.outbound.session import outbound_session
from identity.admin.refusals import add_to_form, refusals
from identity.admin.row_pages import RowPage, RowPagesAdmin
from identity.hosts import address_beside, canonical_host
from identity.models import User

PAGE = "saml"
_FETCH_SECONDS = 10.0
_OK = 200
_SAMPLE_AUDIENCE = "urn:example:application"


class ImportForm(forms.Form):
    """The form that reads settings from pasted, uploaded or fetched metadata, or from the recipe of a known application."""

    text = forms.CharField(
        required=False,
        label="Metadata as text",
        max_length=METADATA.size,
        widget=forms.Textarea(attrs={"rows": 4, "cols": 70, "spellcheck": "false"}),
    )
    file = forms.FileField(required=False, label="Metadata as a file", max_length=255)
    address = forms.CharField(required=False, label="Address of the metadata", max_length=2048, widget=forms.TextInput(attrs={"size": 70}))
    encrypts = forms.BooleanField(required=False, label="Encrypt assertions if the metadata contains an encryption certificate")
    recipe = forms.ChoiceField(
        required=False, label="Recipe", help_text="The usual settings of a known application. If you choose a recipe, metadata is ignored."
    )
    place = forms.CharField(
        required=False,
        label="Value for the recipe",
        max_length=200,
        help_text="Some recipes need a value. The text in parentheses after the name of the recipe says what to enter.",
    )

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        choice: Any = self.fields["recipe"]
        choice.choices = [
            ("", "No recipe"),
            *((each.name, f"{each.title}{f' ({each.place})' if each.place else ''}") for each in recipes().values()),
        ]


class PreviewForm(forms.Form):
    user = forms.CharField(required=False, max_length=320, label="User", help_text="The id or the email address of a user.")


@dataclass
class Shown:
    """The forms and results that the page shows."""

    form: SamlForm
    imported: ImportForm
    preview: PreviewForm
    notes: Sequence[str] = ()
    there: Sequence[str] = ()
    assertion: str = ""
    where: str = field(default="")


class SamlPage:
    """The SAML page of one admin site."""

    def __init__(self, site: admin.AdminSite, owner: RowPagesAdmin[Client]) -> None:
        self._site = site
        self._owner = owner

    def add(self) -> None:
        """Add the page to the admin class of clients."""
        self._owner.row_pages.append(RowPage(PAGE, "SAML", self.view, "authapi.change_client"))

    def view(self, request: HttpRequest, client: Client) -> HttpResponse:
        if client.revoked_at is not None:
            raise PermissionDenied
        if "certificate" in request.GET:
            return _certificate(client, request.GET["certificate"])
        if request.method != "POST":
            return self._page(request, client, _shown(client))
        acts = {"read": _read, "preview": _previewed, "save": self._saved, "off": self._off}
        act = next((each for name, each in acts.items() if name in request.POST), None)
        if act is None:
            raise Http404
        answer = act(request, client)
        return answer if isinstance(answer, HttpResponse) else self._page(request, client, answer)

    def _saved(self, request: HttpRequest, client: Client) -> Shown | HttpResponse:
        shown = _bound(request, client)
        if not shown.form.is_valid():
            return shown
        addons = {**(client.settings.get("addons") or {}), ADDON: shown.form.addon()}
        changes = {"settings": {"addons": addons}, "redirect_uris": " ".join(shown.form.cleaned_data["callbacks"])}
        if not _are_callbacks_good(shown.form):
            return shown
        return self._update(request, client, changes, shown, "Settings saved.")

    def _off(self, request: HttpRequest, client: Client) -> Shown | HttpResponse:
        addons = {name: value for name, value in (client.settings.get("addons") or {}).items() if name != ADDON}
        return self._update(request, client, {"settings": {"addons": addons}}, _shown(client), "SAML turned off for this application.")

    def _update(self, request: HttpRequest, client: Client, changes: dict[str, Any], shown: Shown, done: str) -> Shown | HttpResponse:
        try:
            with said("SAML settings", ""):
                clients.update_client(tenant_id=client.tenant_id, client_id=client.client_id, changes=changes)
        except refusals() as refusal:
            add_to_form(shown.form, refusal)
            return shown
        messages.success(request, done)
        return HttpResponseRedirect(self._owner.address_of(PAGE, client))

    def _page(self, request: HttpRequest, client: Client, shown: Shown) -> HttpResponse:
        base = f"{address_beside(request.get_host(), client.tenant_id)}/"
        key = current_key(client.tenant_id)
        settings = settings_of((client.settings.get("addons") or {}).get(ADDON) or {})
        context = {
            **self._site.each_context(request),
            "title": f"SAML for {client}",
            "subtitle": None,
            "original": client,
            "opts": Client._meta,
            "media": self._owner.media,
            "shown": shown,
            "groups": list(shown.form.groups()),
            "is_on": is_on(client.settings),
            "entity_id": entity_id(canonical_host(client.tenant_id), settings),
            "login_address": login_address(base, client.client_id),
            "logout_address": logout_address(base, client.client_id),
            "metadata_address": metadata_address(base, client.client_id),
            "key": key,
            "fingerprint": fingerprint_of(certificate_of(key.certificate)),
            "certificate_count": len(published_certificates(client.tenant_id)),
            "back_url": self._owner.address_of("change", client),
        }
        request.current_app = self._site.name
        return TemplateResponse(request, "admin/client_saml.html", context)


def _shown(client: Client, addon: Mapping[str, Any] | None = None, callbacks: Sequence[str] | None = None) -> Shown:
    """Return the page with the stored values of the client, or with the given unsaved values."""
    stored = (client.settings.get("addons") or {}).get(ADDON) or {}
    known = client.redirect_uris.split() if callbacks is None else callbacks
    form = SamlForm(initial=form_values(stored if addon is None else addon, known))
    form.saved = form_values(stored, client.redirect_uris.split())
    return Shown(form, ImportForm(prefix="import"), PreviewForm(prefix="preview"))


def _bound(request: HttpRequest, client: Client) -> Shown:
    return Shown(_bound_form(request, client), ImportForm(prefix="import"), PreviewForm(request.POST, prefix="preview"))


def _bound_form(request: HttpRequest, client: Client) -> SamlForm:
    return SamlForm(request.POST, initial=_shown(client).form.saved)


def _read(request: HttpRequest, client: Client) -> Shown:
    """Fill in the form from metadata or a recipe. Saves nothing."""
    imported = ImportForm(request.POST, request.FILES, prefix="import")
    shown = Shown(_bound_form(request, client), imported, PreviewForm(prefix="preview"))
    if not imported.is_valid():
        return shown
    if imported.cleaned_data["recipe"]:
        return _with_recipe(client, imported)
    try:
        facts = read_partner(_metadata_of(imported))
    except (MetadataUnusable, OutboundError) as error:
        imported.add_error(None, str(error))
        return shown
    return _with_facts(client, facts, imported)


def _with_facts(client: Client, facts: PartnerFacts, imported: ImportForm) -> Shown:
    stored = (client.settings.get("addons") or {}).get(ADDON) or {}
    proposal = proposed(facts, stored, encrypts=imported.cleaned_data["encrypts"])
    shown = _shown(client, proposal.addon, proposal.callbacks)
    shown.notes = ["The form below is filled in from the metadata. Nothing is saved yet. Check the values, then save.", *proposal.notes]
    return shown


def _with_recipe(client: Client, imported: ImportForm) -> Shown:
    recipe, place = recipes()[imported.cleaned_data["recipe"]], imported.cleaned_data["place"].strip()
    if recipe.place and not place:
        imported.add_error("place", f"{recipe.title} needs a value: {recipe.place}.")
        return Shown(_shown(client).form, imported, PreviewForm(prefix="preview"))
    callbacks, addon = recipe.filled(place)
    shown = _shown(client, addon, callbacks)
    shown.notes = [f"The form below is filled in for {recipe.title}. Nothing is saved yet. Check the values, then save."]
    shown.there, shown.where = recipe.there, recipe.where
    return shown


def _metadata_of(imported: ImportForm) -> bytes:
    """Return the pasted, uploaded or fetched document. Raises `MetadataUnusable` and `OutboundError`."""
    values = imported.cleaned_data
    if values["file"]:
        return bytes(values["file"].read(METADATA.size + 1))
    if values["text"].strip():
        return str(values["text"]).strip().encode()
    if not values["address"].strip():
        raise MetadataUnusable("Paste the metadata, choose a file, enter an address, or choose a recipe.")
    headers = {"Accept": "application/samlmetadata+xml, application/xml, text/xml"}
    answer = outbound_session().send(
        "GET", values["address"].strip(), headers=headers, body=None, deadline=time.monotonic() + _FETCH_SECONDS
    )
    if answer.status != _OK:
        raise MetadataUnusable(f"The address of the metadata answered with the HTTP status {answer.status} instead of {_OK}.")
    return answer.body


def _previewed(request: HttpRequest, client: Client) -> Shown:
    """Show the assertion of a user with the unsaved values of the form."""
    shown = _bound(request, client)
    if not (shown.form.is_valid() and shown.preview.is_valid()):
        return shown
    named = shown.preview.cleaned_data["user"].strip()
    users = User.objects.of(client.tenant_id).filter(Q(user_id=named) | Q(email__iexact=named))
    user = users.order_by("pk").first() if named else None
    if user is None:
        shown.preview.add_error("user", "There is no user with this id or email address.")
        return shown
    settings = settings_of(shown.form.addon())
    issuer = entity_id(canonical_host(client.tenant_id), settings)
    try:
        address = default_address(shown.form.cleaned_data["callbacks"], settings)
        asked = AuthnRequest(issuer=settings.audience or _SAMPLE_AUDIENCE)
        login = authenticated_of(user, client, settings, asked=asked, issuer=issuer, context=settings.authn_context)
    except (NoConsumerAddress, RequestRefused) as error:
        shown.preview.add_error(None, error.failure.description if isinstance(error, RequestRefused) else str(error))
        return shown
    answering = Answering(issuer, address, "", new_id(), timezone.now())
    shown.assertion = laid_out(unsigned_assertion(answering, login, settings))
    return shown


def _are_callbacks_good(form: SamlForm) -> bool:
    """Tell whether the management interface would accept the callbacks. If not, add the errors to the form."""
    judge = ClientToChange(data={"callbacks": form.cleaned_data["callbacks"]})
    if judge.is_valid():
        return True
    form.add_error("callbacks", sentences_of(judge.errors["callbacks"]))
    return False


def _certificate(client: Client, kid: str) -> HttpResponse:
    """Return a published certificate as a file."""
    row = SamlKey.objects.of(client.tenant_id).filter(kid=kid).first()
    if row is None:
        raise Http404
    answer = HttpResponse(pem_of(certificate_of(row.certificate)), content_type="application/x-pem-file")
    answer["Content-Disposition"] = f'attachment; filename="{client.tenant_id}-{row.kid}.pem"'
    return answer
