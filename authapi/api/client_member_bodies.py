"""Members of a client in request bodies: deployment tools read these members and send them back. `client_promises` decides which values are
accepted."""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from authapi.api.addon_bodies import SamlAddon, WsFedAddon
from authapi.api.credential_bodies import CredentialToName
from foundation.api.fields import Closed, JsonObject, ListOf, Switch, Text

ADDONS = (
    "aws", "azure_blob", "azure_sb", "rms", "mscrm", "slack", "sentry", "box", "cloudbees", "concur", "dropbox", "echosign", "egnyte",
    "firebase", "newrelic", "office365", "salesforce", "salesforce_api", "salesforce_sandbox_api", "samlp", "layer", "sap_api",
    "sharepoint", "springcm", "wams", "wsfed", "zendesk", "zoom", "sso_integration", "oag",
)  # fmt: skip
_LONGEST_TEMPLATE = 20_000
_LONGEST_KEY = 8_192
_MOST_FINGERPRINTS = 50
_MOST_CREDENTIALS = 10
_WEB_ADDRESS = RegexValidator(r"\Ahttps?://[^\s/?#@]+(/[^\s]*)?\Z", "Object didn't pass validation for format url")
_FINGERPRINT = RegexValidator(r"\A[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31}\Z", "Expected 32 bytes in hexadecimal, separated by colons")
_APP_NAME = RegexValidator(r"\A[A-Za-z0-9_.-]*\Z", "Expected letters, digits, dots, hyphens and underscores")
_NO_PRIVATE_KEY = RegexValidator(r"PRIVATE KEY", "This is a private key: send the public key", inverse_match=True)


class Addons(Closed):
    """Protocols and services of upstream, each with its settings. Null means that the add-on is off."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        free = {name: JsonObject(required=False, allow_null=True) for name in ADDONS}
        return {**free, "samlp": SamlAddon(required=False, allow_null=True), "wsfed": WsFedAddon(required=False, allow_null=True)}


class AndroidApp(Closed):
    app_package_name = Text(required=False, max_length=255, allow_blank=True, allow_null=True, validators=[_APP_NAME])
    sha256_cert_fingerprints = ListOf(
        required=False, allow_null=True, child=Text(max_length=95, validators=[_FINGERPRINT]), max_length=_MOST_FINGERPRINTS
    )


class IosApp(Closed):
    team_id = Text(required=False, max_length=64, allow_blank=True, allow_null=True, validators=[_APP_NAME])
    app_bundle_identifier = Text(required=False, max_length=255, allow_blank=True, allow_null=True, validators=[_APP_NAME])


class Mobile(Closed):
    android = AndroidApp(required=False, allow_null=True)
    ios = IosApp(required=False, allow_null=True)


class Enabled(Closed):
    enabled = Switch(required=False, allow_null=True)


class NativeSocialLogin(Closed):
    apple = Enabled(required=False, allow_null=True)
    facebook = Enabled(required=False, allow_null=True)
    google = Enabled(required=False, allow_null=True)


class PromptSwitch(Closed):
    is_enabled = Switch(required=False, allow_null=True)


class PromptLogin(Closed):
    google = PromptSwitch(required=False, allow_null=True)


class Active(Closed):
    active = Switch()


class EncryptionKey(Closed):
    """The public key of a partner, which is only stored. Assertions are encrypted with the certificate of the add-on `samlp`."""

    pub = Text(required=False, max_length=_LONGEST_KEY, allow_blank=True, validators=[_NO_PRIVATE_KEY])
    cert = Text(required=False, max_length=_LONGEST_KEY, allow_blank=True, validators=[_NO_PRIVATE_KEY])
    subject = Text(required=False, max_length=1024, allow_blank=True)


class TokenExchange(Closed):
    allow_any_profile_of_type = ListOf(
        required=False, child=serializers.ChoiceField(choices=["custom_authentication", "on_behalf_of_token_exchange"]), max_length=2
    )


class SessionDelegation(Closed):
    allow_delegated_access = Switch(required=False)
    enforce_device_binding = serializers.ChoiceField(required=False, choices=["ip"])


class SessionTransfer(Closed):
    can_create_session_transfer_token = Switch(required=False)
    enforce_cascade_revocation = Switch(required=False)
    allowed_authentication_methods = ListOf(
        required=False, allow_null=True, child=serializers.ChoiceField(choices=["cookie", "query"]), max_length=2
    )
    enforce_device_binding = serializers.ChoiceField(required=False, choices=["ip", "asn", "none"])
    allow_refresh_token = Switch(required=False, allow_null=True)
    enforce_online_refresh_tokens = Switch(required=False)
    delegation = SessionDelegation(required=False, allow_null=True)


class QuotaOfTokens(Closed):
    enforce = Switch(required=False)
    per_day = serializers.IntegerField(required=False, min_value=1, max_value=2_147_483_647)
    per_hour = serializers.IntegerField(required=False, min_value=1, max_value=2_147_483_647)


class TokenQuota(Closed):
    client_credentials = QuotaOfTokens()


class SignedRequestObject(Closed):
    credentials = ListOf(required=False, child=CredentialToName(), max_length=_MOST_CREDENTIALS)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        # A class attribute named `required` would hide an attribute of the framework.
        return {**super().get_fields(), "required": Switch(required=False)}


class FurtherMembers(Closed):
    """Further members for creating and for changing a client. Null clears a member."""

    addons = Addons(required=False, allow_null=True)
    mobile = Mobile(required=False, allow_null=True)
    native_social_login = NativeSocialLogin(required=False, allow_null=True)
    fedcm_login = PromptLogin(required=False, allow_null=True)
    token_exchange = TokenExchange(required=False, allow_null=True)
    session_transfer = SessionTransfer(required=False, allow_null=True)
    token_quota = TokenQuota(required=False, allow_null=True)
    encryption_key = EncryptionKey(required=False, allow_null=True)
    signed_request_object = SignedRequestObject(required=False, allow_null=True)
    sso = Switch(required=False, allow_null=True)
    cross_origin_loc = Text(required=False, max_length=2048, allow_blank=True, allow_null=True, validators=[_WEB_ADDRESS])
    form_template = Text(required=False, max_length=_LONGEST_TEMPLATE, allow_blank=True, allow_null=True)
    custom_login_page = Text(required=False, max_length=_LONGEST_TEMPLATE, allow_blank=True, allow_null=True)
    custom_login_page_preview = Text(required=False, max_length=_LONGEST_TEMPLATE, allow_blank=True, allow_null=True)
    organization_discovery_methods = ListOf(
        required=False, allow_null=True, child=serializers.ChoiceField(choices=["email", "organization_name"]), min_length=1, max_length=2
    )
    skip_non_verifiable_callback_uri_confirmation_prompt = Switch(required=False, allow_null=True)
    anonymous_sessions = Active(required=False, allow_null=True)
    identity_assertion_authorization_grant = Active(required=False, allow_null=True)
    third_party_security_mode = serializers.ChoiceField(required=False, choices=["strict", "permissive"], allow_null=True)
    redirection_policy = serializers.ChoiceField(required=False, choices=["allow_always", "open_redirect_protection"], allow_null=True)
    async_approval_notification_channels = ListOf(
        required=False, allow_null=True, child=serializers.ChoiceField(choices=["guardian-push", "email", "my-account"]), max_length=3
    )
    token_vault_privileged_access = JsonObject(required=False, allow_null=True)
    express_configuration = JsonObject(required=False, allow_null=True)
    my_organization_configuration = JsonObject(required=False, allow_null=True)
    b2b_integration_configuration = JsonObject(required=False, allow_null=True)
    oidc_support = JsonObject(required=False, allow_null=True)
    resource_server_identifier = Text(required=False, max_length=600, allow_null=True)
