"""Request bodies and documents of token exchange profiles.

In the upstream system, a profile refers to an action, which is code of the tenant that checks tokens. This service runs no tenant code in a
login. Instead, a profile describes the accepted tokens (`subject_token`) and how to find the user of a token (`user`). Both members are
additions of this service.
"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from authapi.api.client_bodies import KeyAddress
from authapi.models import TokenExchangeProfile
from authapi.services.token_exchange import MOST_KEYS
from foundation.api.fields import Closed, JsonObject, ListOf, Switch, Text
from foundation.api.list_schemas import TAKE_FORM, fields_of, reference, taken_list
from foundation.api.operations import SWITCH, TEXT, TIME, Schema
from foundation.timestamps import wire_time

TYPE = "custom_authentication"


class SubjectToken(Closed):
    issuer = Text(max_length=2048)
    audience = Text(max_length=600)
    jwks_uri = KeyAddress(required=False, allow_null=True)
    keys = ListOf(required=False, allow_null=True, child=JsonObject(), max_length=MOST_KEYS)
    single_use = Switch(required=False, help_text="Each token can be exchanged only once. Default: true.")


class UserOfToken(Closed):
    connection_id = Text(max_length=32)
    claim = serializers.ChoiceField(required=False, choices=TokenExchangeProfile.UserClaim.values)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        # A class attribute named `create` would hide an attribute of the framework.
        return {**super().get_fields(), "create": Switch(required=False)}


class ExchangeProfileToChange(Closed):
    name = Text(required=False, min_length=3, max_length=50)
    subject_token_type = Text(required=False, min_length=8, max_length=100)
    subject_token = SubjectToken(required=False)
    user = UserOfToken(required=False)


class ExchangeProfileToCreate(Closed):
    name = Text(min_length=3, max_length=50)
    subject_token_type = Text(min_length=8, max_length=100)
    type = serializers.ChoiceField(choices=[TYPE])
    action_id = Text(required=False, max_length=36, help_text="Refused, because no tenant code runs in a login.")
    subject_token = SubjectToken(required=False, help_text="The accepted tokens.")
    user = UserOfToken(required=False, help_text="The user that a token identifies.")


PROFILE = reference("TokenExchangeProfile")
PROFILES = taken_list("token_exchange_profiles", PROFILE)
COMPONENTS: dict[str, Schema] = {
    "TokenExchangeProfile": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("id", "name", "subject_token_type"), TEXT),
            "type": {**TEXT, "enum": [TYPE]},
            "subject_token": {
                "type": "object",
                "description": "Accepted tokens: JWTs of this issuer for this audience.",
                "required": ["issuer", "audience", "single_use"],
                "properties": {
                    **dict.fromkeys(("issuer", "audience", "jwks_uri"), TEXT),
                    "keys": {"type": "array", "items": {"type": "object", "additionalProperties": True}},
                    "single_use": SWITCH,
                },
            },
            "user": {
                "type": "object",
                "description": "The user that a token identifies: the user of this connection whom the claim names.",
                "required": ["connection_id", "claim", "create"],
                "properties": {"connection_id": TEXT, "claim": {**TEXT, "enum": ["sub", "email"]}, "create": SWITCH},
            },
            "created_at": TIME,
            "updated_at": TIME,
        },
    },
}
PROFILE_FIELDS = fields_of(COMPONENTS["TokenExchangeProfile"])
PROFILE_PARAMETERS = TAKE_FORM


def profile_resource(profile: TokenExchangeProfile) -> dict[str, Any]:
    """Return the profile as the management interface shows it."""
    keys = {"jwks_uri": profile.jwks_uri} if profile.jwks_uri else {"keys": profile.public_keys}
    return {
        "id": profile.pk,
        "name": profile.name,
        "subject_token_type": profile.subject_token_type,
        "type": TYPE,
        "subject_token": {
            "issuer": profile.issuer, "audience": profile.audience, **keys, "single_use": profile.is_single_use,
        },
        "user": {"connection_id": profile.connection_id, "claim": profile.user_claim, "create": profile.creates_users},
        "created_at": wire_time(profile.created_at),
        "updated_at": wire_time(profile.updated_at),
    }  # fmt: skip


def columns_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that a body sets. `subject_token` and `user` are replaced, not merged."""
    columns: dict[str, Any] = {name: body[name] for name in ("name", "subject_token_type") if name in body}
    if (token := body.get("subject_token")) is not None:
        columns |= {
            "issuer": token["issuer"],
            "audience": token["audience"],
            "jwks_uri": token.get("jwks_uri") or "",
            "public_keys": token.get("keys") or [],
            "is_single_use": token.get("single_use", True),
        }
    if (user := body.get("user")) is not None:
        columns |= {
            "connection_id": user["connection_id"],
            "user_claim": user.get("claim", TokenExchangeProfile.UserClaim.SUBJECT),
            "creates_users": user.get("create", False),
        }
    return columns
