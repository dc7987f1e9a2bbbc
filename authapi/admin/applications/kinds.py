"""The kinds of application that the page of a new client offers: the fields and the settings of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from django import forms

from authapi.admin.client_form import ClientForm
from authapi.models import ApiResource, Client
from authapi.protocols.saml import settings as saml
from authapi.protocols.wsfed import settings as wsfed
from foundation.admin.line_fields import LinesField

PARAMETER = "kind"
MANAGEMENT = "management"
# The kind whose form shows every field.
ALL = "all"
_LOGIN = ["authorization_code", "refresh_token"]
_ROTATING = {"rotation_type": "rotating", "expiration_type": "expiring"}
_USERS: Mapping[str, Any] = {"oidc_conformant": True, "grant_types": _LOGIN, "refresh_token": _ROTATING}
_ADDRESSES = ("name", "callbacks", "allowed_logout_urls")
_PUBLIC = {"token_endpoint_auth_method": Client.AuthMethod.NONE.value}
_SECRET = {"token_endpoint_auth_method": Client.AuthMethod.POST.value}


@dataclass(frozen=True)
class Kind:
    """One kind of application. `body` contains the members of a new client that the kind sets, and for which the form has no field."""

    name: str
    label: str
    sentence: str
    fields: tuple[str, ...]
    body: Mapping[str, Any]
    required: tuple[str, ...] = ("callbacks",)
    labels: Mapping[str, str] = field(default_factory=dict)
    help_texts: Mapping[str, str] = field(default_factory=dict)


_WEB_CALLBACKS = (
    "One address per line, such as https://app.example.com/callback. After a login, the browser returns to one of these addresses."
)
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "web",
            "Web application",
            "The pages come from a server, for example with Django, Rails or Spring. The server keeps a secret.",
            _ADDRESSES,
            {**_USERS, **_SECRET, "app_type": "regular_web"},
            help_texts={"callbacks": _WEB_CALLBACKS},
        ),
        Kind(
            "spa",
            "Single-page application",
            "JavaScript in the browser logs users in and calls APIs. The application has no secret.",
            (*_ADDRESSES, "web_origins"),
            {**_USERS, **_PUBLIC, "app_type": "spa"},
            help_texts={"callbacks": _WEB_CALLBACKS},
        ),
        Kind(
            "native",
            "Native application",
            "An app on a phone or a computer logs users in with the browser of the device. The app has no secret.",
            _ADDRESSES,
            {**_USERS, **_PUBLIC, "app_type": "native"},
            help_texts={
                "callbacks": "One address per line, such as com.example.app://callback or http://127.0.0.1/callback (any port).",
                "allowed_logout_urls": "One address per line. Users can return to one of these addresses after a logout.",
            },
        ),
        Kind(
            "machine",
            "Machine to machine",
            "A program calls APIs with a secret of its own, without users.",
            ("name",),
            {**_SECRET, "app_type": "non_interactive", "grant_types": ["client_credentials"], "oidc_conformant": True},
            required=(),
            help_texts={"name": "A name by which you recognize the program."},
        ),
        Kind(
            "saml",
            "SAML application",
            "An application that logs users in with SAML, such as a service that your company buys. You import its metadata on "
            "the next page.",
            ("name", "callbacks"),
            {**_PUBLIC, "app_type": "regular_web", "grant_types": [], "addons": {saml.ADDON: {}}},
            required=(),
            labels={"callbacks": "Assertion consumer addresses"},
            help_texts={
                "callbacks": "The addresses at which the application receives SAML responses, one per line. Leave empty if you import the "
                "metadata of the application."
            },
        ),
        Kind(
            "wsfed",
            "WS-Federation application",
            "An older application, often of a Microsoft environment, that logs users in with WS-Federation.",
            ("name", "callbacks"),
            {**_PUBLIC, "app_type": "regular_web", "grant_types": [], "addons": {wsfed.ADDON: {}}},
            labels={"callbacks": "Reply addresses"},
            help_texts={
                "callbacks": "One address per line. The browser posts the token to the address in the request (wreply). If the "
                "request contains no address, the browser posts the token to the first address of this list."
            },
        ),
    )
}


class MachineForm(ClientForm):
    """The form of a program, with the first API that it calls."""

    api = forms.ChoiceField(
        required=False,
        label="API",
        help_text="The API that the program calls. You can grant more APIs later, on the page of the client.",
    )
    scopes = LinesField(rows=4, help_text="One scope of the API per line, such as read:users. If this is empty, tokens contain no scope.")

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        if values.get("scopes") and not values.get("api"):
            self.add_error("api", "Choose the API of these scopes.")
        return values


def form_of(kind: Kind, *, grants: bool) -> type[ClientForm]:
    """Return the form class of a kind. `grants` tells whether the account may grant an API."""
    base = MachineForm if kind.name == "machine" and grants else ClientForm
    changed: dict[str, Any] = {name: deepcopy(base.base_fields[name]) for name in kind.fields}
    for name, shown in changed.items():
        shown.required = shown.required or name in kind.required
        shown.label = kind.labels.get(name, shown.label)
        shown.help_text = kind.help_texts.get(name, shown.help_text)
    return type("KindForm", (base,), {**changed, "preset": kind.body})


def api_choices(apis: Iterable[ApiResource]) -> list[tuple[str, str]]:
    """Return the APIs that the form offers. It always offers the management interface: if its row is missing, a grant creates the row."""
    return [("", "No API yet"), (MANAGEMENT, "Management interface"), *((api.pk, str(api)) for api in apis if not api.is_system)]


def fields_of(kind: Kind, *, grants: bool) -> list[str]:
    """Return the names of the fields of a kind."""
    return [*kind.fields, *(("api", "scopes") if kind.name == "machine" and grants else ())]
