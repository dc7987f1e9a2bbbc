"""Admin pages of the keys and certificates of clients, and of the secrets of TLS proxies that forward client certificates."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from authapi.client_auth.signatures import ALGORITHMS
from authapi.edge import mtls
from authapi.models import ClientCredential, EdgeKey
from authapi.services import client_credentials, edge_keys
from authapi.services.client_credentials import NewCredential
from foundation.admin.badges import badge
from foundation.admin.field_labels import SentenceChoicesFilter
from foundation.admin.list_filters import worded
from foundation.admin.moment_fields import Moment
from identity.admin.object_actions import ObjectAction
from identity.admin.service_admin import ServiceAdmin
from identity.admin.service_form import ServiceForm

_TYPES = (
    (ClientCredential.Type.PUBLIC_KEY, "Public key, for signed assertions"),
    (ClientCredential.Type.CERT_SUBJECT_DN, "Subject of certificates from a certificate authority"),
    (ClientCredential.Type.X509_CERT, "Self-signed certificate"),
)
# The labels in the filter of the list. The keys are the names that Django derives from the values.
_SHORT_TYPES = {"X509 cert": "Self-signed certificate", "Cert subject dn": "Subject of certificates"}
_TYPES_IN_WORDS = {str(value): text for value, text in _TYPES}
_WIDE = {"rows": 10, "cols": 68, "spellcheck": "false"}


class CredentialForm(ServiceForm):
    type = forms.ChoiceField(choices=_TYPES)
    name = forms.CharField(max_length=128, required=False, help_text="A name by which administrators recognize the credential.")
    pem = forms.CharField(
        widget=forms.Textarea(attrs=_WIDE),
        required=False,
        max_length=8192,
        label="Key or certificate",
        help_text="The public key or the certificate in PEM format.",
    )
    algorithm = forms.ChoiceField(
        choices=[(name, name) for name in ALGORITHMS],
        help_text="The algorithm with which the application signs its assertions. Only for a public key.",
    )
    subject_dn = forms.CharField(
        widget=forms.Textarea(attrs={**_WIDE, "rows": 4}),
        required=False,
        max_length=2048,
        label="Subject (DN)",
        help_text="One component per line, such as C=AT, in the order of the certificate. Only for the type “Subject of certificates”, "
        "and only if you enter no certificate above.",
    )
    expires_at = forms.DateTimeField(required=False, widget=Moment(), help_text="If this is empty, the credential does not expire.")

    class Meta:
        model = ClientCredential
        fields = ("client",)


def _use(_request: HttpRequest, row: ClientCredential, _values: dict[str, Any]) -> str:
    client = client_credentials.use_credential(tenant_id=row.tenant_id, client_id=row.client.client_id, credential_id=row.pk)
    return f"{client} now authenticates with {client.proof_method}."


class ClientCredentialAdmin(ServiceAdmin[ClientCredential]):
    form = CredentialForm
    grows = False
    list_display = ("id", "client", "type_in_words", "name", "state", "expires_at", "tenant")
    list_select_related = ("client", "tenant")
    list_filter = (("type", worded(SentenceChoicesFilter, _SHORT_TYPES)),)
    search_fields = ("=id", "=client__client_id")
    autocomplete_fields = ("client",)
    readonly_fields = ("type_in_words", "state")
    sortable_by = ()
    ordering = ("-created_at", "-pk")
    proof_for = frozenset({"add"})
    empty_text = "No keys or certificates yet. Add and activate one: the application then authenticates with it instead of a secret."
    deletion_effect = (
        "If this credential is active, the client's access tokens for APIs are revoked at once. Without another active credential, the "
        "client gets no new tokens."
    )
    object_actions = (
        ObjectAction(
            "use",
            "Activate credential",
            lambda _request, row: (
                f"{row.client} must authenticate with this credential from now on. If the client has a secret, the secret stops working."
            ),
            _use,
            is_offered=lambda row: row.pk not in row.client.proof_ids,
            needs_proof=True,
        ),
    )

    def get_fieldsets(self, request: HttpRequest, obj: ClientCredential | None = None) -> Any:
        if obj is None:
            return [(None, {"fields": ["client", "type", "name", "pem", "algorithm", "subject_dn", "expires_at"]})]
        shown = ["id", "tenant", "client", "type_in_words", "name", "state", "kid", "algorithm", "thumbprint", "subject_dn", "expires_at"]
        return [(None, {"fields": shown}), ("Set by the service", {"fields": ["created_at", "updated_at"]})]

    def has_change_permission(self, request: HttpRequest, obj: ClientCredential | None = None) -> bool:
        # A key or certificate cannot be changed. Staff add another credential instead.
        return False

    @admin.display(description="Type")
    def type_in_words(self, row: ClientCredential) -> str:
        return _TYPES_IN_WORDS.get(row.type, row.type)

    @admin.display(description="State")
    def state(self, row: ClientCredential) -> str:
        return badge("Active", "good") if row.pk in row.client.proof_ids else badge("Inactive", "quiet")

    def create(self, request: HttpRequest, form: Any) -> ClientCredential:
        values = form.cleaned_data
        new = NewCredential(
            type=values["type"],
            name=values["name"],
            pem=values["pem"],
            algorithm=values["algorithm"],
            subject_dn=values["subject_dn"],
            expires_at=values["expires_at"],
        )
        client = values["client"]
        return client_credentials.create_credential(tenant_id=client.tenant_id, client_id=client.client_id, new=new)


class EdgeKeyForm(ServiceForm):
    class Meta:
        model = EdgeKey
        fields = ("domain",)


class EdgeKeyAdmin(ServiceAdmin[EdgeKey]):
    titled = "Secret of the TLS proxy of {row.domain}"
    form = EdgeKeyForm
    grows = False
    list_display = ("domain", "created_at", "tenant")
    list_select_related = ("domain", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    proof_for = frozenset({"add"})
    empty_text = "No secrets of TLS proxies. Add one if the TLS proxy of a custom domain forwards client certificates."
    deletion_effect = "Client certificates that the TLS proxy of this domain forwards are no longer trusted."

    def __init__(self, model: type[EdgeKey], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.object_actions = (
            ObjectAction(
                "renew",
                "Create new secret",
                lambda _request, row: (
                    f"The next page shows a new secret for the TLS proxy of {row.domain}. The old secret stops working within a second."
                ),
                self._renew,
                is_dangerous=True,
                needs_proof=True,
            ),
        )

    def get_fieldsets(self, request: HttpRequest, obj: EdgeKey | None = None) -> Any:
        return [(None, {"fields": ["domain"] if obj is None else ["tenant", "domain", "created_at"]})]

    def has_change_permission(self, request: HttpRequest, obj: EdgeKey | None = None) -> bool:
        return False

    def create(self, request: HttpRequest, form: Any) -> EdgeKey:
        domain = form.cleaned_data["domain"]
        # Keep the secret only for the response to this request: a Django message would store the secret until the next page.
        request._new_key = edge_keys.renew_edge_key(tenant_id=domain.tenant_id, domain_id=domain.pk)  # type: ignore[attr-defined]
        return EdgeKey.objects.of(domain.tenant_id).select_related("domain").get(domain=domain)

    def response_add(self, request: HttpRequest, obj: EdgeKey, post_url_continue: str | None = None) -> HttpResponse:
        return self._key_page(request, obj, getattr(request, "_new_key", ""))

    def _renew(self, request: HttpRequest, row: EdgeKey, _values: dict[str, Any]) -> HttpResponse:
        return self._key_page(request, row, edge_keys.renew_edge_key(tenant_id=row.tenant_id, domain_id=row.domain_id))

    def _key_page(self, request: HttpRequest, row: EdgeKey, key: str) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": f"Secret of the TLS proxy of {row.domain}",
            "subtitle": None,
            "key": key,
            "headers": mtls.HEADERS,
            "opts": self.opts,
            "media": self.media,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/edge_key.html", context)
