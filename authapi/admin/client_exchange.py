"""The sections of the client form about token exchange and about front-channel logout."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django import forms

from authapi.grants.exchange.own_tokens import ON_BEHALF_OF
from authapi.upstream.subject_tokens import CUSTOM

KINDS = (
    (ON_BEHALF_OF, "On behalf of users: the client is an API. It receives tokens, and exchanges them for tokens of other APIs"),
    (CUSTOM, "For logins: tokens of other issuers log users in. The token exchange profiles of the tenant define these tokens"),
)
EXCHANGE = ("exchange_kinds", "resource_server_identifier")


class ExchangeFields(forms.Form):
    """Fields of the client form. To exchange tokens, a client also needs the grant type "Token exchange"."""

    frontchannel_logout_uri = forms.CharField(
        required=False,
        max_length=2048,
        label="Front-channel logout address",
        widget=forms.TextInput(attrs={"size": 60}),
        help_text="When the user logs out, the browser loads this address in a hidden frame, so that the application ends its session. "
        "Scheme, host and port must be the same as in a callback.",
    )
    exchange_kinds = forms.MultipleChoiceField(
        required=False, choices=KINDS, widget=forms.CheckboxSelectMultiple, label="Allowed exchanges"
    )
    resource_server_identifier = forms.CharField(
        required=False,
        max_length=600,
        label="Identifier of the API",
        widget=forms.TextInput(attrs={"size": 60}),
        help_text="If the client is itself an API: its identifier. The client may then exchange and inspect tokens for this API.",
    )


def exchange_body(values: Mapping[str, Any], changed: Collection[str]) -> dict[str, Any]:
    """Return the members of the request body for the changed fields."""
    return {"token_exchange": {"allow_any_profile_of_type": values["exchange_kinds"]}} if "exchange_kinds" in changed else {}


def exchange_values(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the form for a client."""
    return {"exchange_kinds": (document.get("token_exchange") or {}).get("allow_any_profile_of_type") or []}
