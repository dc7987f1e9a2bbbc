"""The form of a client. It checks the values with the request body of the management interface, so that both have the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar

from django import forms
from django.utils.html import format_html

from authapi.admin.client_choices import ALGORITHMS, APP_TYPES, BEHAVIOURS, GRANTS, LEGACY, METHODS, USES
from authapi.admin.client_exchange import ExchangeFields, exchange_body, exchange_values
from authapi.admin.compliance import FIELDS, LEVEL_CHOICES
from authapi.api.client_bodies import ClientToChange
from authapi.api.client_documents import client_resource, columns_of
from authapi.compliance.levels import NONE, level_of
from authapi.models import Client, ClientCredential, SecondFactorPolicy
from authapi.services.clients import broken_rules, change_columns
from foundation.admin.body_errors import sentences_of
from foundation.admin.line_fields import LinesField
from foundation.admin.pair_fields import PairsField
from foundation.api.refusals import Refusal
from identity.admin.service_form import ServiceForm
from identity.admin.users import merge_of

_PLAIN = (
    "name", "description", "app_type", "logo_uri", "initiate_login_uri", "is_first_party", "callbacks", "allowed_logout_urls",
    "web_origins", "allowed_origins", "token_endpoint_auth_method", "organization_usage", "organization_require_behavior",
    "cross_origin_authentication", "cross_origin_loc", "allowed_clients",
    "compliance_level", "oauth_standard_errors", "oidc_conformant",
    "require_pushed_authorization_requests", "par_request_expiry", "jwks_uri", "require_proof_of_possession",
    "authorization_details_types", "frontchannel_logout_uri", "resource_server_identifier", "second_factor_policy",
)  # fmt: skip
_LEGACY_NAMES = frozenset(name for name, *_ in LEGACY)
_NULL_WHEN_EMPTY = (
    "compliance_level",
    "cross_origin_loc",
    "description",
    "logo_uri",
    "initiate_login_uri",
    "frontchannel_logout_uri",
    "jwks_uri",
    "organization_usage",
    "organization_require_behavior",
    "resource_server_identifier",
    "second_factor_policy",
)
_NULL_WITHOUT_LINES = ("authorization_details_types",)
_REFRESH = (
    "rotation_type", "expiration_type", "leeway", "token_lifetime", "idle_token_lifetime", "infinite_token_lifetime",
    "infinite_idle_token_lifetime",
)  # fmt: skip
# Defaults of refresh tokens of a client without a policy (contract, 4.6).
_REFRESH_DEFAULTS: dict[str, Any] = {"rotation_type": "non-rotating", "expiration_type": "non-expiring"}
_WIDE = forms.TextInput(attrs={"size": 60})


def _address(label: str, help_text: str) -> forms.CharField:
    return forms.CharField(required=False, max_length=2048, label=label, widget=_WIDE, help_text=help_text)


def _grant_choices() -> list[tuple[str, str]]:
    return _choices(GRANTS)


def _legacy_choices() -> list[tuple[str, str]]:
    return _choices(LEGACY)


def _choices(rows: tuple[tuple[str, str, str], ...]) -> list[tuple[str, str]]:
    return [(name, format_html("{}<br><small>{}</small>", label, help_text)) for name, label, help_text in rows]


class ClientForm(ExchangeFields, ServiceForm):
    # The members of the request body that the kind of application implies.
    preset: ClassVar[Mapping[str, Any]] = {}

    name = forms.CharField(max_length=255, help_text="Shown to users on the login page and the consent page.")
    description = forms.CharField(required=False, max_length=140, widget=_WIDE, help_text="For administrators.")
    app_type = forms.ChoiceField(required=False, choices=APP_TYPES, label="Kind of application")
    is_first_party = forms.BooleanField(
        required=False,
        initial=True,
        label="First party",
        help_text="Turn this on for your own applications. Turn it off for applications of other companies: users must consent to them.",
    )
    logo_uri = _address("Logo", "The https address of a picture. The login pages do not show it.")
    initiate_login_uri = _address(
        "Login address",
        "The page of the application that starts a login. The service sends users there, for example after they accept an "
        "invitation or after an error.",
    )
    callbacks = LinesField(
        help_text="One address per line. After a login, the browser returns to one of these addresses. In https://*.example.com/back, "
        "the * matches one part of the host name."
    )
    allowed_logout_urls = LinesField(
        label="Logout addresses", help_text="One address per line. Users can return to one of these addresses after a logout."
    )
    web_origins = LinesField(
        help_text="One origin per line, such as https://app.example.com. Pages of these origins can log users in without a visible "
        "page, in a hidden frame (response mode “web_message”)."
    )
    allowed_origins = LinesField(
        label="CORS origins",
        help_text="One origin per line. If this is empty, all web pages can request tokens. Otherwise a page can request tokens only "
        "if its origin is in this list, is a web origin, or is the origin of a callback.",
    )
    backchannel_logout_urls = LinesField(
        label="Back-channel logout addresses",
        help_text="One https address per line. When a session of a user ends, the service sends a logout token to each address.",
    )
    grant_types = forms.MultipleChoiceField(
        required=False,
        choices=_grant_choices,
        initial=["authorization_code", "refresh_token"],
        widget=forms.CheckboxSelectMultiple,
        label="Grant types",
    )
    legacy_grants = forms.MultipleChoiceField(
        required=False,
        choices=_legacy_choices,
        widget=forms.CheckboxSelectMultiple,
        label="Legacy grants",
        help_text="Warning: only for applications that cannot be changed. These grants bypass the login pages and their protection.",
    )
    cross_origin_authentication = forms.BooleanField(
        required=False,
        label="Own login forms (legacy)",
        help_text=(
            "Warning: the application shows its own login form and sees every password. Web pages may log users in at /co/authenticate "
            "if their origin is a web origin or a CORS origin above, or the origin of a callback. In browsers that block cookies of other "
            "sites, these logins fail, or need the verification page."
        ),
    )
    cross_origin_loc = _address(
        "Verification page (legacy)",
        "The page of the application that calls “crossOriginVerification”. Own login forms use the page in browsers that block cookies of "
        "other sites.",
    )
    allowed_clients = LinesField(
        label="Delegating clients (legacy)",
        help_text="One client id per line. These clients can exchange an ID token of their users for an ID token for this "
        "client, at /delegation.",
    )
    token_endpoint_auth_method = forms.ChoiceField(
        choices=METHODS,
        initial=Client.AuthMethod.POST,
        label="Authentication",
        help_text="The method with which the application authenticates when it requests tokens. Requests with another method are refused.",
    )
    compliance_level = forms.ChoiceField(
        required=False,
        choices=LEVEL_CHOICES,
        label="Compliance level",
        help_text="Strict security rules (FAPI), for example for banks. You cannot save a client that breaks a rule of its level. A "
        "new level revokes all earlier access tokens for APIs.",
    )
    oauth_standard_errors = forms.BooleanField(
        required=False,
        label="Standard error responses",
        help_text="Errors follow RFC 6749, for example with status 400 instead of 403. Requests without “redirect_uri” are refused. "
        "A compliance level turns this on.",
    )
    oidc_conformant = forms.BooleanField(
        required=False,
        initial=True,
        label="Conformant to OpenID Connect",
        help_text="Turn this off only for legacy applications. If this is off, a client that authenticates may use PKCE with the "
        "method “plain”.",
    )
    require_pushed_authorization_requests = forms.BooleanField(
        required=False,
        label="Require pushed requests",
        help_text="The application must push each authorization request to /oauth/par before it sends the user to log in. Other "
        "authorization requests are refused.",
    )
    par_request_expiry = forms.IntegerField(
        required=False,
        min_value=10,
        max_value=600,
        label="Lifetime of pushed requests",
        help_text="Seconds from the push until the login must start. Default: 30.",
    )
    signed_request_required = forms.BooleanField(
        required=False,
        label="Require signed requests",
        help_text="Each authorization request must be a JWT that the application signed. Other authorization requests are refused.",
    )
    request_keys = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Keys of signed requests",
        help_text="Public keys that verify the signed requests of this client. Add keys on the tab Credentials first.",
    )
    jwks_uri = _address(
        "Address of the keys for signed requests", "Instead of the keys above: the https address of the application's key set (JWKS)."
    )
    require_proof_of_possession = forms.BooleanField(
        required=False,
        label="Require bound tokens",
        help_text="Each token request must contain a DPoP proof or a client certificate. A stolen token is useless without the key or "
        "certificate.",
    )
    authorization_details_types = LinesField(
        label="Types of authorization details",
        help_text="The types that the application may send in “authorization_details”, one per line. If this is empty, all types "
        "of the API are allowed.",
    )
    alg = forms.ChoiceField(choices=ALGORITHMS, initial="RS256", label="Signature of ID tokens")
    rotation_type = forms.ChoiceField(
        choices=[
            ("rotating", "Rotating: each token works once and is replaced"),
            ("non-rotating", "Not rotating: a token works until it expires"),
        ],
        initial="rotating",
        label="Rotation",
        help_text="If a rotated token is used a second time, it was probably stolen: all tokens of its login are revoked.",
    )
    expiration_type = forms.ChoiceField(
        choices=[("expiring", "Refresh tokens expire"), ("non-expiring", "Refresh tokens do not expire")],
        initial="expiring",
        label="Expiry",
    )
    token_lifetime = forms.IntegerField(
        required=False,
        min_value=1,
        label="Absolute lifetime",
        help_text="Seconds from the login. A rotation does not extend this time. Default: 2592000 (30 days).",
    )
    idle_token_lifetime = forms.IntegerField(
        required=False,
        min_value=1,
        label="Idle lifetime",
        help_text="Seconds without use until a token expires. Default: 1296000 (15 days).",
    )
    leeway = forms.IntegerField(
        required=False,
        min_value=0,
        help_text="Seconds for which a replaced token is still accepted, in case the application did not receive its replacement.",
    )
    infinite_token_lifetime = forms.BooleanField(required=False, label="No absolute lifetime")
    infinite_idle_token_lifetime = forms.BooleanField(required=False, label="No idle lifetime")
    second_factor_policy = forms.ChoiceField(
        required=False,
        choices=[("", "Policy of the tenant"), *SecondFactorPolicy.choices],
        label="Two-step verification",
        help_text="The cases in which users need a second factor to log in to this application. An organization can only add cases.",
    )
    organization_usage = forms.ChoiceField(
        required=False,
        choices=USES,
        label="Logins to organizations",
        help_text="Defines whether users log in to this application as members of an organization.",
    )
    organization_require_behavior = forms.ChoiceField(
        required=False,
        choices=BEHAVIOURS,
        label="Choice of the organization",
        help_text="Defines whether and when users choose their organization if the request of the application names none.",
    )
    client_metadata = PairsField(
        most=10,
        label="Metadata",
        help_text="At most ten names with values. Every event that this client causes contains these pairs. To remove a pair, empty its "
        "row.",
    )

    class Meta:
        model = Client
        fields = ("is_global",)

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        # Read the stored values now, because the validation of Django writes the submitted values to the instance.
        self._stored = {} if self.instance._state.adding else client_resource(self.instance)
        if not self.instance._state.adding:
            self.initial = {**form_values(self.instance), **(named.get("initial") or {})}
            if "grant_types" in self.fields:
                self._offer_present_grants()
            if "request_keys" in self.fields:
                self._offer_keys()
            if self.instance.proof_method and "token_endpoint_auth_method" in self.fields:
                method = self.instance.proof_method
                self.fields[
                    "token_endpoint_auth_method"
                ].help_text = f"Not used: the application authenticates with {method}. See Credentials."

    def _offer_present_grants(self) -> None:
        """Also offer grants of the client that are not in the list of choices, so that saving the form does not remove them."""
        field: Any = self.fields["grant_types"]
        known = {name for name, *_ in (*GRANTS, *LEGACY)}
        field.choices = [*_grant_choices(), *((name, name) for name in self.instance.grant_types if name not in known)]

    def _offer_keys(self) -> None:
        field: Any = self.fields["request_keys"]
        keys = self.instance.credentials.filter(type=ClientCredential.Type.PUBLIC_KEY)
        field.choices = [(key.pk, f"{key} ({key.algorithm}, {key.kid})") for key in keys]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors:
            self._judge(self._body())
        return values

    def columns(self) -> dict[str, Any]:
        """Return the columns whose submitted values differ from the stored values."""
        return columns_of(self._body(), present=self._stored)

    def _body(self) -> dict[str, Any]:
        """Return a request body with which the management interface makes the same changes as this form."""
        values, changed = self.cleaned_data, set(self.changed_data)
        is_new = self.instance._state.adding
        body: dict[str, Any] = {name: values[name] for name in _PLAIN if name in values and (is_new or name in changed)}
        body |= self._grants(is_new=is_new)
        body |= {name: None for name in _NULL_WHEN_EMPTY if body.get(name) == ""}
        body |= {name: None for name in _NULL_WITHOUT_LINES if body.get(name) == []}
        if not body.get("app_type", True):
            del body["app_type"]
        stored = self._stored
        if (is_new or "alg" in changed) and "alg" in values:
            body["jwt_configuration"] = {**stored.get("jwt_configuration", {}), "alg": values["alg"]}
        if (is_new or changed & set(_REFRESH)) and "rotation_type" in values:
            policies = (stored.get("refresh_token") or {}).get("policies")
            given = {name: values[name] for name in _REFRESH if values.get(name) is not None and values[name] is not False}
            body["refresh_token"] = given | ({"policies": policies} if policies else {})
        if "backchannel_logout_urls" in changed:
            body["oidc_logout"] = {**(stored.get("oidc_logout") or {}), "backchannel_logout_urls": values["backchannel_logout_urls"]}
        body |= self._signed_requests() | exchange_body(values, changed)
        if "client_metadata" in changed:
            body["client_metadata"] = merge_of(stored.get("client_metadata", {}), values["client_metadata"])
        return {**self.preset, **body}

    def _signed_requests(self) -> dict[str, Any]:
        values = self.cleaned_data
        if not {"signed_request_required", "request_keys"} & set(self.changed_data):
            return {}
        named = [{"id": key} for key in values.get("request_keys") or ()]
        return {"signed_request_object": {"required": bool(values.get("signed_request_required")), "credentials": named}}

    def _grants(self, *, is_new: bool) -> dict[str, Any]:
        """Return the grants of both lists, `grant_types` and `legacy_grants`. Empty for a stored client if neither list changed."""
        values = self.cleaned_data
        if "grant_types" not in values or not (is_new or {"grant_types", "legacy_grants"} & set(self.changed_data)):
            return {}
        return {"grant_types": [*values["grant_types"], *values.get("legacy_grants", ())]}

    def _judge(self, body: dict[str, Any]) -> None:
        judge = ClientToChange(data=body)
        if not judge.is_valid():
            for name, problem in judge.errors.items():
                self._refuse(name, problem)
            return
        try:
            columns = columns_of(body, present=self._stored)
        except Refusal as refusal:
            self.add_error(None, refusal.message)
        else:
            self._judge_level(columns)

    def _judge_level(self, columns: dict[str, Any]) -> None:
        """Show each broken rule at the field that must change."""
        draft = copy(self.instance)
        change_columns(draft, columns)
        for member, sentences in broken_rules(draft).items():
            for sentence in sentences:
                self.add_error(FIELDS.get(member, member), sentence)

    def _refuse(self, name: str, problem: Any) -> None:
        """Show an error of the request body at its field."""
        if isinstance(problem, dict) and name not in self.fields:
            for inner, further in problem.items():
                self._refuse(str(inner), further)
            return
        is_shown = name in self.fields
        self.add_error(name if is_shown else None, [text if is_shown else f"{name}: {text}" for text in sentences_of(problem)])


def form_values(client: Client) -> dict[str, Any]:
    """Return the values of the form for a client."""
    document = client_resource(client)
    # The stored values without the defaults of the management interface: if the form showed a default, saving the form would store it.
    refresh = {**_REFRESH_DEFAULTS, **(client.settings.get("refresh_token") or {})}
    return {
        **{name: document.get(name) for name in _PLAIN},
        # The document omits the method if the client authenticates with a key or a certificate.
        "token_endpoint_auth_method": client.token_endpoint_auth_method,
        **{name: refresh.get(name) for name in _REFRESH},
        "grant_types": [grant for grant in client.grant_types if grant not in _LEGACY_NAMES],
        "legacy_grants": [grant for grant in client.grant_types if grant in _LEGACY_NAMES],
        "is_global": client.is_global,
        "compliance_level": level if (level := level_of(client.settings)) != NONE else "",
        "alg": document["jwt_configuration"]["alg"],
        "signed_request_required": bool((document.get("signed_request_object") or {}).get("required")),
        "request_keys": list(client.request_key_ids),
        "backchannel_logout_urls": (document.get("oidc_logout") or {}).get("backchannel_logout_urls") or [],
        "client_metadata": document.get("client_metadata", {}),
        **exchange_values(document),
    }
