"""Request bodies for the supported add-ons of clients. The fields have the names of the HTTP interface (contract, 2.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from authapi.protocols.wsfed.settings import TOKEN_TYPES
from authapi.xml.algorithms import CONTENT_ENCRYPTION_NAMES, DIGEST_NAMES, SIGNATURE_NAMES
from authapi.xml.bindings import HTTP_POST, HTTP_REDIRECT
from authapi.xml.certificates import UnreadableCertificate, certificate_of, certificates_of
from foundation.api.fields import Closed, JsonObject, ListOf, Switch, Text

_LONGEST_TEXT = 1024
_LONGEST_CERTIFICATES = 65_536
_MOST_MAPPINGS = 100
_MOST_ADDRESSES = 50
_MOST_PROBES = 20
# 30 days. An assertion is used immediately. But some service providers end their session when the assertion expires, so an assertion may
# be valid for long.
_LONGEST_LIFETIME = 2_592_000
_NO_PRIVATE_KEY = RegexValidator(r"PRIVATE KEY", "This is a private key: send the certificate", inverse_match=True)
_WEB_ADDRESS = RegexValidator(r"\Ahttps?://[^\s/?#@\\]+([/?][^\s#\\]*)?\Z", "Object didn't pass validation for format url")
_NO_SPACE = RegexValidator(r"\A\S*\Z", "Expected no spaces")

Fields = dict[str, serializers.Field[Any, Any, Any, Any]]


class CertificateText(Text):
    """A certificate in PEM. With `several`, a list of certificates."""

    def __init__(self, *, several: bool = False, **options: Any) -> None:
        self._read: Callable[[str], object] = certificates_of if several else certificate_of
        super().__init__(max_length=_LONGEST_CERTIFICATES, allow_blank=True, validators=[_NO_PRIVATE_KEY], **options)

    def to_internal_value(self, data: Any) -> str:
        value = super().to_internal_value(data)
        if "PRIVATE KEY" in value or not value:
            return value
        try:
            self._read(value)
        except UnreadableCertificate as error:
            raise serializers.ValidationError(str(error)) from error
        return value


class Mappings(JsonObject):
    """Maps members of the profile to one or more claims that contain their values."""

    default_error_messages = {"claims": "Expected names of claims, each text or a list of texts"}

    def __init__(self, **options: Any) -> None:
        super().__init__(most=_MOST_MAPPINGS, **options)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value = super().to_internal_value(data)
        if not all(_is_claim(claim) or (isinstance(claim, list) and claim and all(map(_is_claim, claim))) for claim in value.values()):
            self.fail("claims")
        return value


class ConsumerAddress(Closed):
    index = serializers.IntegerField(min_value=0, max_value=65_535)
    url = Text(max_length=2048, validators=[_WEB_ADDRESS])


class SamlLogout(Closed):
    callback = Text(required=False, max_length=2048, allow_blank=True, allow_null=True, validators=[_WEB_ADDRESS])
    slo_enabled = Switch(required=False, allow_null=True)


class SamlAddon(Closed):
    """Settings for the assertions of an application; null means the default.

    The upstream system has no `signAssertion`, `claimsPrefix`, `encryptionCert`, `encryptionAlgorithm` or `assertionConsumerServices`.
    """

    def get_fields(self) -> Fields:
        # The fields are built in this method, because names such as `nameIdentifierFormat` break the naming rules for Python attributes.
        texts = ("audience", "recipient", "destination", "issuer", "nameIdentifierFormat", "authnContextClassRef", "claimsPrefix")
        switches = (
            "createUpnClaim", "passthroughClaimsWithNoMapping", "mapUnknownClaimsAsIs", "mapIdentities", "signResponse", "signAssertion",
            "typedAttributes", "includeAttributeNameFormat",
        )  # fmt: skip
        return {
            **{name: _text() for name in texts},
            **{name: Switch(required=False, allow_null=True) for name in switches},
            "mappings": Mappings(required=False, allow_null=True),
            "nameIdentifierProbes": ListOf(required=False, allow_null=True, child=_text(), max_length=_MOST_PROBES),
            "lifetimeInSeconds": serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=_LONGEST_LIFETIME),
            "signatureAlgorithm": _choice(SIGNATURE_NAMES),
            "digestAlgorithm": _choice(DIGEST_NAMES),
            "binding": _choice((HTTP_POST, HTTP_REDIRECT)),
            "logout": SamlLogout(required=False, allow_null=True),
            "signingCert": CertificateText(required=False, allow_null=True, several=True),
            "encryptionCert": CertificateText(required=False, allow_null=True),
            "encryptionAlgorithm": _choice(CONTENT_ENCRYPTION_NAMES),
            "assertionConsumerServices": ListOf(required=False, allow_null=True, child=ConsumerAddress(), max_length=_MOST_ADDRESSES),
        }

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("signResponse") is not True and attrs.get("signAssertion") is False:
            raise serializers.ValidationError({"signAssertion": ["Sign the assertion, the response or both"]})
        indexes = [each["index"] for each in attrs.get("assertionConsumerServices") or ()]
        if len(set(indexes)) != len(indexes):
            raise serializers.ValidationError({"assertionConsumerServices": ["Each index must be unique"]})
        return attrs


class WsFedAddon(Closed):
    """Settings for the WS-Federation tokens of an application; null means the default. The upstream system has no `tokenType`."""

    def get_fields(self) -> Fields:
        texts = ("audience", "issuer", "nameIdentifierFormat", "claimsPrefix")
        switches = ("createUpnClaim", "passthroughClaimsWithNoMapping", "mapUnknownClaimsAsIs", "mapIdentities")
        return {
            **{name: _text() for name in texts},
            **{name: Switch(required=False, allow_null=True) for name in switches},
            "mappings": Mappings(required=False, allow_null=True),
            "nameIdentifierProbes": ListOf(required=False, allow_null=True, child=_text(), max_length=_MOST_PROBES),
            "lifetimeInSeconds": serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=_LONGEST_LIFETIME),
            "signatureAlgorithm": _choice(SIGNATURE_NAMES),
            "digestAlgorithm": _choice(DIGEST_NAMES),
            "tokenType": _choice(TOKEN_TYPES),
        }


def _is_claim(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_TEXT


def _text() -> Text:
    return Text(required=False, allow_blank=True, allow_null=True, max_length=_LONGEST_TEXT, validators=[_NO_SPACE])


def _choice(names: Any) -> serializers.ChoiceField:
    return serializers.ChoiceField(required=False, allow_null=True, choices=list(names))
