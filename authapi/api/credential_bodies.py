"""Request bodies for keys and certificates of clients, and for the authentication methods that refer to them."""

from __future__ import annotations

from typing import Any

from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from authapi.client_auth.signatures import ALGORITHMS
from authapi.models import ClientCredential
from authapi.services.client_credentials import MOST_PER_METHOD, NewCredential
from authapi.services.clients import CREDENTIAL_TYPES
from foundation.api.fields import Closed, ListOf, Switch, Text

_LONGEST_PEM = 8192
_LONGEST_MOMENT = 40


@extend_schema_field(OpenApiTypes.DATETIME)
class Moment(Text):
    """A time with a time zone."""

    default_error_messages = {"format": "Object didn't pass validation for format date-time"}

    def to_internal_value(self, data: Any) -> Any:
        text = super().to_internal_value(data)
        try:
            moment = parse_datetime(text[:_LONGEST_MOMENT])
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            self.fail("format")
        return moment


class CredentialToCreate(Closed):
    credential_type = serializers.ChoiceField(choices=ClientCredential.Type.values)
    name = Text(required=False, max_length=128)
    pem = Text(required=False, max_length=_LONGEST_PEM)
    alg = serializers.ChoiceField(required=False, choices=ALGORITHMS)
    kid = Text(required=False, max_length=64)
    subject_dn = Text(required=False, max_length=2048)
    parse_expiry_from_cert = Switch(required=False)
    expires_at = Moment(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        kind = attrs["credential_type"]
        if "pem" not in attrs and not (kind == ClientCredential.Type.CERT_SUBJECT_DN and "subject_dn" in attrs):
            raise serializers.ValidationError({"pem": ["Missing required property"]})
        return attrs


class CredentialToChange(Closed):
    expires_at = Moment(allow_null=True)


class CredentialToName(Closed):
    id = Text(max_length=32)


class _Methods(Closed):
    """Exactly one method, because a client authenticates in one way."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) != 1:
            raise serializers.ValidationError("Expected exactly one method")
        return attrs


class CredentialsToName(Closed):
    credentials = ListOf(child=CredentialToName(), min_length=1, max_length=MOST_PER_METHOD)


class CredentialsToCreate(Closed):
    credentials = ListOf(child=CredentialToCreate(), min_length=1, max_length=MOST_PER_METHOD)


class MethodsToName(_Methods):
    private_key_jwt = CredentialsToName(required=False)
    tls_client_auth = CredentialsToName(required=False)
    self_signed_tls_client_auth = CredentialsToName(required=False)


class MethodsToCreate(_Methods):
    private_key_jwt = CredentialsToCreate(required=False)
    tls_client_auth = CredentialsToCreate(required=False)
    self_signed_tls_client_auth = CredentialsToCreate(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for method, named in super().validate(attrs).items():
            if any(credential["credential_type"] != CREDENTIAL_TYPES[method] for credential in named["credentials"]):
                raise serializers.ValidationError({method: [f"Expected credentials of type {CREDENTIAL_TYPES[method].value}"]})
        return attrs


def new_credential(body: dict[str, Any]) -> NewCredential:
    """Return the credential that a checked body describes."""
    return NewCredential(
        type=body["credential_type"],
        name=body.get("name", ""),
        pem=body.get("pem", ""),
        algorithm=body.get("alg", "RS256" if body["credential_type"] == ClientCredential.Type.PUBLIC_KEY else ""),
        kid=body.get("kid", ""),
        subject_dn=body.get("subject_dn", ""),
        expires_at=body.get("expires_at"),
        takes_expiry_of_certificate=body.get("parse_expiry_from_cert", False),
    )
