"""Request bodies for clients."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.validators import RegexValidator
from rest_framework import serializers

from authapi.api.client_member_bodies import FurtherMembers
from authapi.api.credential_bodies import MethodsToCreate, MethodsToName
from authapi.clients.callbacks import wildcard_problem
from authapi.compliance.levels import LEVELS
from authapi.details.types import LONGEST_TYPE, MAX_TYPES
from authapi.models import Client, Initiator, SecondFactorPolicy
from foundation.api.fields import Closed, JsonObject, ListOf, Switch, Text

APP_TYPES = (
    "native", "spa", "regular_web", "non_interactive", "resource_server", "express_configuration", "rms", "box", "cloudbees", "concur",
    "dropbox", "mscrm", "echosign", "egnyte", "newrelic", "office365", "salesforce", "sentry", "sharepoint", "slack", "springcm",
    "zendesk", "zoom", "sso_integration", "oag",
)  # fmt: skip
_USES = ("deny", "allow", "require")
_MOST_ADDRESSES = 100
_MOST_METADATA = 10
_LONGEST_METADATA = 255
_SHORTEST_SECRET = 32
_KEY_ADDRESS = RegexValidator(r"\Ahttps?://[^\s/?#@]+(/[^\s#]*)?\Z", "Object didn't pass validation for format uri")
_NAME = RegexValidator(r"\A[^<>]+\Z", "String does not match pattern ^[^<>]+$")


class Address(Text):
    """An absolute URL with any scheme, including custom schemes of applications. Schemes that run scripts are refused."""

    def __init__(self, *, fragment: bool = True, **options: Any) -> None:
        pattern = r"\A(?!(?i:javascript|data|vbscript):)[A-Za-z][A-Za-z0-9+.-]*:[^\s" + ("" if fragment else "#") + r"]+\Z"
        super().__init__(max_length=2048, validators=[RegexValidator(pattern, "Object didn't pass validation for format uri")], **options)


class Registered(Address):
    """A URL whose host may have a wildcard as its first label."""

    def to_internal_value(self, data: Any) -> str:
        value = super().to_internal_value(data)
        problem = wildcard_problem(value)
        if problem:
            raise serializers.ValidationError(problem)
        return value


class KeyAddress(Text):
    """The https URL of a key set. Plain http is allowed if the operator allows plain http for outgoing requests."""

    default_error_messages = {"insecure": "Expected an https address"}

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=2048, validators=[_KEY_ADDRESS], **options)

    def to_internal_value(self, data: Any) -> str:
        value = str(super().to_internal_value(data))
        if not value.startswith("https:") and not settings.OUTBOUND_ALLOW_HTTP:
            self.fail("insecure")
        return value


def _registered(**options: Any) -> ListOf:
    return ListOf(required=False, child=Registered(**options), max_length=_MOST_ADDRESSES)


def _addresses(**options: Any) -> ListOf:
    return ListOf(required=False, child=Address(**options), max_length=_MOST_ADDRESSES)


def _texts() -> ListOf:
    return ListOf(required=False, child=Text(max_length=280), max_length=_MOST_ADDRESSES)


class Metadata(JsonObject):
    """At most ten keys with texts as values. A null value removes the key."""

    default_error_messages = {"texts": "Expected strings of at most 255 characters, or null"}

    def __init__(self, **options: Any) -> None:
        super().__init__(most=_MOST_METADATA, **options)

    @property
    def bounds(self) -> dict[str, Any]:
        return super().bounds | {"additionalProperties": {"type": "string", "maxLength": _LONGEST_METADATA, "nullable": True}}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value = super().to_internal_value(data)
        if not all(item is None or (isinstance(item, str) and len(item) <= _LONGEST_METADATA) for item in value.values()):
            self.fail("texts")
        return value


class TokenSettings(Closed):
    alg = serializers.ChoiceField(required=False, choices=["HS256", "RS256", "RS512", "PS256"])
    lifetime_in_seconds = serializers.IntegerField(required=False, min_value=1, max_value=2_592_000)
    secret_encoded = Switch(required=False)
    scopes = JsonObject(required=False)


class RefreshPolicy(Closed):
    audience = Text(max_length=600)
    scope = ListOf(child=Text(max_length=280))


class RefreshTokenSettings(Closed):
    rotation_type = serializers.ChoiceField(choices=["rotating", "non-rotating"])
    expiration_type = serializers.ChoiceField(choices=["expiring", "non-expiring"])
    leeway = serializers.IntegerField(required=False, min_value=0, allow_null=True)
    token_lifetime = serializers.IntegerField(required=False, min_value=1, max_value=157_788_000)
    idle_token_lifetime = serializers.IntegerField(required=False, min_value=1)
    infinite_token_lifetime = Switch(required=False)
    infinite_idle_token_lifetime = Switch(required=False)
    policies = ListOf(required=False, child=RefreshPolicy(), allow_null=True)


class DefaultOrganization(Closed):
    organization_id = Text(max_length=32)
    flows = ListOf(child=serializers.ChoiceField(choices=["client_credentials"]), min_length=1)


class BackchannelInitiators(Closed):
    mode = serializers.ChoiceField(required=False, choices=["custom", "all"])
    selected_initiators = ListOf(required=False, child=serializers.ChoiceField(choices=Initiator.values), max_length=len(Initiator.values))


class LogoutSettings(Closed):
    backchannel_logout_urls = _addresses()
    backchannel_logout_initiators = BackchannelInitiators(required=False, allow_null=True)


class ClientSettings(FurtherMembers):
    """Members for creating and for changing a client. Null clears an optional member."""

    description = Text(required=False, max_length=140, allow_blank=True, allow_null=True)
    logo_uri = Address(required=False, allow_null=True)
    client_metadata = Metadata(required=False)
    initiate_login_uri = Address(required=False, allow_null=True)
    app_type = serializers.ChoiceField(required=False, choices=APP_TYPES)
    callbacks = _registered(fragment=False)
    allowed_logout_urls = _registered()
    allowed_origins = _registered()
    web_origins = _addresses()
    client_aliases = _texts()
    allowed_clients = _texts()
    grant_types = ListOf(required=False, child=Text(max_length=128), max_length=30)
    token_endpoint_auth_method = serializers.ChoiceField(required=False, choices=Client.AuthMethod.values, allow_null=True)
    jwt_configuration = TokenSettings(required=False)
    refresh_token = RefreshTokenSettings(required=False, allow_null=True)
    organization_usage = serializers.ChoiceField(required=False, choices=_USES, allow_null=True)
    organization_require_behavior = serializers.ChoiceField(
        required=False, choices=["no_prompt", "pre_login_prompt", "post_login_prompt"], allow_null=True
    )
    default_organization = DefaultOrganization(required=False, allow_null=True)
    is_first_party = Switch(required=False)
    oidc_conformant = Switch(required=False)
    second_factor_policy = serializers.ChoiceField(required=False, choices=SecondFactorPolicy.values, allow_null=True)
    sso_disabled = Switch(required=False)
    cross_origin_authentication = Switch(required=False)
    custom_login_page_on = Switch(required=False)
    is_token_endpoint_ip_header_trusted = Switch(required=False)
    require_pushed_authorization_requests = Switch(required=False)
    require_proof_of_possession = Switch(required=False)
    compliance_level = serializers.ChoiceField(required=False, choices=list(LEVELS), allow_null=True)
    oauth_standard_errors = Switch(required=False)
    updated_at_as_text = Switch(required=False)
    authorization_details_types = ListOf(
        required=False, allow_null=True, child=Text(max_length=LONGEST_TYPE), max_length=MAX_TYPES, help_text="RFC 9396, 10."
    )
    oidc_logout = LogoutSettings(required=False, allow_null=True)
    oidc_backchannel_logout = LogoutSettings(required=False, allow_null=True, help_text="An older name of the member `oidc_logout`.")
    frontchannel_logout_uri = Address(fragment=False, required=False, allow_null=True)
    frontchannel_logout_session_required = Switch(required=False)
    jwks_uri = KeyAddress(required=False, allow_null=True)
    par_request_expiry = serializers.IntegerField(required=False, min_value=10, max_value=600, allow_null=True)


class ClientToChange(ClientSettings):
    name = Text(required=False, max_length=255, validators=[_NAME])
    client_secret = Text(required=False, min_length=_SHORTEST_SECRET, max_length=512)
    client_authentication_methods = MethodsToName(required=False, allow_null=True)


class ClientToCreate(ClientSettings):
    """The service generates the secret and returns it in the response."""

    name = Text(max_length=255, validators=[_NAME])
    client_authentication_methods = MethodsToCreate(required=False, allow_null=True)
