"""The parts of the client form about token exchange (its kinds, and which API the client is) and about logout in frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django import forms

from authapi.grants.exchange.own_tokens import ON_BEHALF_OF
from authapi.upstream.subject_tokens import CUSTOM

KINDS = (
    (ON_BEHALF_OF, "On behalf of users: the client is the API below, and exchanges the tokens that it receives for tokens to other APIs"),
    (CUSTOM, "For logins: tokens of other issuers log users in, as the token exchange profiles of the tenant say"),
)
EXCHANGE = ("exchange_kinds", "resource_server_identifier")


class ExchangeFields(forms.Form):
    """Fields that the form of a client takes over. For an exchange the grant type Token exchange has to be on as well."""

    frontchannel_logout_uri = forms.CharField(
        required=False,
        max_length=2048,
        label="Front-channel logout",
        widget=forms.TextInput(attrs={"size": 60}),
        help_text="An address with the origin of a callback. The browser loads it in a hidden frame when it logs out.",
    )
    exchange_kinds = forms.MultipleChoiceField(
        required=False, choices=KINDS, widget=forms.CheckboxSelectMultiple, label="Tokens that it may exchange"
    )
    resource_server_identifier = forms.CharField(
        required=False,
        max_length=600,
        label="Its API",
        widget=forms.TextInput(attrs={"size": 60}),
        help_text="The identifier of an API, for a client that is an API: it may exchange and inspect tokens for this API.",
    )


def exchange_body(values: Mapping[str, Any], changed: Collection[str]) -> dict[str, Any]:
    """Return what the form asks the management interface for."""
    return {"token_exchange": {"allow_any_profile_of_type": values["exchange_kinds"]}} if "exchange_kinds" in changed else {}


def exchange_values(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the form shows of a client."""
    return {"exchange_kinds": (document.get("token_exchange") or {}).get("allow_any_profile_of_type") or []}
