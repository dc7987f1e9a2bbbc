"""Request bodies for custom domains."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers

from foundation.api.fields import Closed, JsonObject, Text
from foundation.api.refusals import not_supported
from identity.models import CustomDomain
from identity.services.domains import LONGEST_HOST, MOST_METADATA

# Keys are the names that clients use; one of them contains the name of the upstream service.
CERTIFICATE_TYPES = {
    f"{settings.DATABASE_STRATEGY}_managed_certs": CustomDomain.CertificateType.MANAGED,
    "self_managed_certs": CustomDomain.CertificateType.SELF_MANAGED,
}
# The service reads the IP address of a client from no other header, and reads this header only if a trusted proxy sends it.
_HEADERS = ("", "x-forwarded-for")
_KNOWN_HEADERS = (*_HEADERS, "true-client-ip", "cf-connecting-ip", "x-azure-clientip")
_LONGEST_VALUE = 255


class DomainMetadata(JsonObject):
    """At most ten names with texts of limited length; null removes a name."""

    default_error_messages = {"value": "Expected string values of at most {most} characters, or null"}

    def __init__(self, **options: Any) -> None:
        super().__init__(most=MOST_METADATA, **options)

    @property
    def bounds(self) -> dict[str, Any]:
        return {**super().bounds, "additionalProperties": {"type": "string", "nullable": True, "maxLength": _LONGEST_VALUE}}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value = super().to_internal_value(data)
        if not all(text is None or (isinstance(text, str) and len(text) <= _LONGEST_VALUE) for text in value.values()):
            self.fail("value", most=_LONGEST_VALUE)
        return value


class CustomDomainToChange(Closed):
    """The members of a custom domain that can change; null clears a member."""

    tls_policy = serializers.ChoiceField(choices=["recommended"], required=False)
    custom_client_ip_header = serializers.ChoiceField(choices=_KNOWN_HEADERS, required=False, allow_null=True)
    domain_metadata = DomainMetadata(required=False, allow_null=True)
    relying_party_identifier = Text(
        required=False, allow_null=True, max_length=LONGEST_HOST, help_text="Null: the service refuses every other value."
    )


class CustomDomainToCreate(CustomDomainToChange):
    """A host that awaits verification."""

    domain = Text(max_length=LONGEST_HOST)
    type = serializers.ChoiceField(choices=list(CERTIFICATE_TYPES))
    verification_method = serializers.ChoiceField(choices=["txt"], required=False)


class DefaultDomainToSet(Closed):
    domain = Text(max_length=LONGEST_HOST)


def domain_fields(body: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that a checked body sets. Answers 400 for values that the service does not implement."""
    if (body.get("custom_client_ip_header") or "") not in _HEADERS:
        raise not_supported("The address of a client is read only from the header `X-Forwarded-For` of a trusted proxy.")
    if body.get("relying_party_identifier"):
        raise not_supported("The service does not support `relying_party_identifier`: passkeys belong to the host of the login page.")
    fields: dict[str, Any] = {}
    if "custom_client_ip_header" in body:
        fields["client_ip_header"] = body["custom_client_ip_header"] or ""
    if "domain_metadata" in body:
        fields["metadata"] = body["domain_metadata"] or {}
    if "type" in body:
        fields["certificate_type"] = CERTIFICATE_TYPES[body["type"]]
    return fields
