"""Request bodies for the settings of a tenant."""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from authapi.api.client_bodies import Registered
from authapi.clients.user_codes import CHARSETS, LONGEST_MASK
from authapi.services.notifiers import CHANNELS
from authapi.services.tenant_settings import FLAGS, LONGEST_LIFETIME, MODES, MOST_ADDRESSES, MOST_ATTEMPTS, SHIELDS
from authapi.tenant_settings import NEW_DEVICE_MAILS
from foundation.api.fields import Closed, Email, ListOf, Switch, Text

_MINUTES_OF_AN_HOUR = 60
_MOST_VALUES = 100
_LOCALE = RegexValidator(r"\A[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?\Z", "String does not match pattern of a language")
_WEB_ADDRESS = RegexValidator(r"\Ahttps?://[^\s/?#]+[^\s#]*\Z", "Object didn't pass validation for format uri")


@extend_schema_field({"type": "number", "minimum": 1, "maximum": LONGEST_LIFETIME})
class Hours(serializers.FloatField):
    """Hours as a JSON number, with optional decimals."""

    default_error_messages = {"invalid": "Expected type number"}

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=1, max_value=LONGEST_LIFETIME, **options)

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        return int(data) if data == int(data) else super().to_internal_value(data)


def _hours() -> Hours:
    return Hours(required=False, allow_null=True)


def _minutes() -> serializers.IntegerField:
    return serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=LONGEST_LIFETIME * _MINUTES_OF_AN_HOUR)


def _web_address() -> Text:
    return Text(required=False, allow_null=True, allow_blank=True, max_length=2048, validators=[_WEB_ADDRESS])


class ErrorPage(Closed):
    html = Text(required=False, allow_blank=True, allow_null=True, max_length=10_000)
    show_log_link = Switch(required=False)
    url = _web_address()


class ChangePasswordPage(Closed):
    enabled = Switch(required=False)
    html = Text(required=False, allow_blank=True, allow_null=True, max_length=10_000)


class SessionCookie(Closed):
    mode = serializers.ChoiceField(choices=["persistent", "non-persistent"])


class SessionOptions(Closed):
    oidc_logout_prompt_enabled = Switch(required=False)


class LogoutOptions(Closed):
    rp_logout_end_session_endpoint_discovery = Switch(required=False)


class MtlsOptions(Closed):
    enable_endpoint_aliases = Switch(required=False)


class DeviceFlow(Closed):
    """The format of the codes that a device shows to its user."""

    charset = serializers.ChoiceField(required=False, choices=list(CHARSETS))
    mask = Text(required=False, max_length=LONGEST_MASK)


class NotifierOptions(Closed):
    """How users are notified of requests that they approve in another browser (CIBA). `webhook_secret` is write-only."""

    channel = serializers.ChoiceField(required=False, choices=list(CHANNELS))
    webhook_url = Text(required=False, allow_blank=True, max_length=512)
    webhook_secret = Text(required=False, max_length=512)


class AccountPage(Closed):
    """Functions of the account page at `/account`, and the names of the connections whose users may use it.

    An empty list allows every connection that an application uses.
    """

    enabled = Switch(required=False)
    data_export = Switch(required=False)
    deletion = Switch(required=False)
    connections = ListOf(required=False, child=Text(max_length=128), max_length=_MOST_VALUES)


class Flags(Closed):
    """The flags that clients of the interface can set."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {name: Switch(required=False) for name in FLAGS}


class TenantSettingsToChange(Closed):
    """Lifetimes are in hours; members whose name ends with `_in_minutes` are in minutes. Null restores the default."""

    friendly_name = Text(required=False, allow_null=True, allow_blank=True, max_length=200)
    picture_url = _web_address()
    support_email = Email(required=False, allow_null=True, allow_blank=True)
    support_url = _web_address()
    allowed_logout_urls = ListOf(required=False, allow_null=True, child=Registered(), max_length=MOST_ADDRESSES)
    default_directory = Text(required=False, allow_null=True, allow_blank=True, max_length=128)
    default_audience = Text(required=False, allow_null=True, allow_blank=True, max_length=600)
    default_redirection_uri = _web_address()
    session_lifetime = _hours()
    idle_session_lifetime = _hours()
    ephemeral_session_lifetime = _hours()
    idle_ephemeral_session_lifetime = _hours()
    session_lifetime_in_minutes = _minutes()
    idle_session_lifetime_in_minutes = _minutes()
    ephemeral_session_lifetime_in_minutes = _minutes()
    idle_ephemeral_session_lifetime_in_minutes = _minutes()
    enabled_locales = ListOf(
        required=False, allow_null=True, child=Text(max_length=12, validators=[_LOCALE]), min_length=1, max_length=_MOST_VALUES
    )
    error_page = ErrorPage(required=False, allow_null=True)
    change_password = ChangePasswordPage(required=False, allow_null=True)
    session_cookie = SessionCookie(required=False, allow_null=True)
    sessions = SessionOptions(required=False, allow_null=True)
    oidc_logout = LogoutOptions(required=False, allow_null=True)
    mtls = MtlsOptions(required=False, allow_null=True)
    pushed_authorization_requests_supported = Switch(required=False, allow_null=True)
    require_pushed_authorization_requests = Switch(required=False, allow_null=True)
    require_initial_access_token = Switch(required=False, allow_null=True)
    authorization_response_iss_parameter_supported = Switch(required=False, allow_null=True)
    session_management_supported = Switch(required=False, allow_null=True)
    token_introspection_supported = Switch(required=False, allow_null=True)
    allow_organization_name_in_authentication_api = Switch(required=False, allow_null=True)
    acr_values_supported = ListOf(required=False, allow_null=True, child=Text(max_length=256), max_length=_MOST_VALUES)
    resource_parameter_profile = serializers.ChoiceField(required=False, allow_null=True, choices=["audience", "compatibility"])
    device_flow = DeviceFlow(required=False, allow_null=True)
    backchannel_authentication = NotifierOptions(required=False, allow_null=True)
    new_device_mails = serializers.ChoiceField(required=False, allow_null=True, choices=list(NEW_DEVICE_MAILS))
    account_page = AccountPage(required=False, allow_null=True)
    flags = Flags(required=False)


class BruteForceToChange(Closed):
    enabled = Switch(required=False)
    shields = ListOf(required=False, child=serializers.ChoiceField(choices=list(SHIELDS)), max_length=len(SHIELDS))
    allowlist = ListOf(required=False, child=Text(max_length=64), max_length=MOST_ADDRESSES)
    mode = serializers.ChoiceField(required=False, choices=list(MODES))
    max_attempts = serializers.IntegerField(required=False, min_value=1, max_value=MOST_ATTEMPTS)
