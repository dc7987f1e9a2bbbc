"""The form of an event stream: subscriptions, and a deployed action or a webhook with write-only secrets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from events.admin.event_names import wrapping
from events.models import EventStream
from events.record.catalogue import EVENT_TYPES
from identity.admin.service_form import ServiceForm
from provisioning.actions.secrets import open_webhook
from provisioning.guided_setup.steps import USER_EVENTS
from provisioning.models import Action
from provisioning.webhooks.configuration import STANDARD_WEBHOOKS, ConfigurationRefused, parse_configuration

ACTION, WEBHOOK = "action", "webhook"
_METHODS = {"bearer": "Bearer token", "basic": "Username and password", "custom_header": "Custom header"}
# The fields that each authentication method requires: the visible fields, and the field of the secret.
_NEEDED = {"bearer": ((), "token"), "basic": (("username",), "password"), "custom_header": (("header_key",), "header_value")}
_WHERE = ("webhook_endpoint", "method", "username", "header_key")
_SECRET = ("password", "token", "header_value")
SECRET_FIELDS = (*_SECRET, "signing_secret")
WEBHOOK_FIELDS = (*_WHERE[:2], "token", "username", "password", "header_key", "header_value", "signing_secret", "is_unsigned")
_PLACES = {
    "webhook_endpoint": "webhook_endpoint",
    "webhook_signature.secret": "signing_secret",
    **{f"webhook_authorization.{name}": name for name in ("method", *_WHERE, *_SECRET)},
}


# Errors of the management interface, in the words of a form.
_IN_FORMS = {
    "Missing required property": "This field is required",
    "Object didn't pass validation for format uri": "Enter an address, such as https://host/path",
    "An address that begins with https:// is expected": "Enter an address that begins with https://",
    "An address without user name and fragment is expected": "Enter an address without a user name and without a #",
}


def _hidden_text(label: str, help_text: str = "") -> forms.CharField:
    """Return a field that never shows the stored value."""
    widget = forms.PasswordInput(attrs={"autocomplete": "off"})
    return forms.CharField(required=False, strip=False, label=label, help_text=help_text, widget=widget)


class StreamForm(ServiceForm):
    subscriptions = forms.MultipleChoiceField(
        choices=[(name, wrapping(name)) for name in EVENT_TYPES],
        widget=forms.CheckboxSelectMultiple,
        initial=USER_EVENTS,
        help_text="The types of events that the stream sends.",
    )
    destination_type = forms.ChoiceField(
        choices=[(ACTION, "An action, such as SCIM provisioning"), (WEBHOOK, "A webhook")],
        initial=ACTION,
        label="Destination type",
        help_text="Cannot be changed later.",
    )
    action = forms.ModelChoiceField(
        Action.all_tenants.none(),
        required=False,
        help_text="The deployed action that runs for each event. Only for the destination “An action”.",
    )
    webhook_endpoint = forms.CharField(
        required=False,
        max_length=2048,
        label="Address of the webhook",
        help_text="Such as https://host/path. The service posts each event to this address as JSON.",
        widget=forms.TextInput(attrs={"size": 60}),
    )
    method = forms.ChoiceField(choices=list(_METHODS.items()), required=False, label="Authentication of requests")
    token = _hidden_text("Token", "Sent in the header “Authorization”, after the word “Bearer”.")
    username = forms.CharField(required=False, max_length=128, label="Username")
    password = _hidden_text("Password")
    header_key = forms.CharField(required=False, max_length=128, label="Name of the header", help_text="Such as X-Api-Key.")
    header_value = _hidden_text("Value of the header")
    signing_secret = _hidden_text(
        "Signing secret",
        "Signs each request (Standard Webhooks), so that the receiver can verify the sender. Enter “whsec_” and then 24 to 64 bytes in "
        "base64.",
    )
    is_unsigned = forms.BooleanField(required=False, label="Stop signing requests")

    class Meta:
        model = EventStream
        fields = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stream = self.instance
        if stream._state.adding:
            return
        self.initial.setdefault("subscriptions", stream.subscriptions)
        if stream.destination_type == ACTION:
            self.initial.setdefault("action", stream.destination.get("action_id"))
            return
        known = stream.destination.get("webhook_authorization", {})
        self.initial["webhook_endpoint"] = stream.destination.get("webhook_endpoint", "")
        self.initial.update({name: known[name] for name in ("method", "username", "header_key") if name in known})
        for name in (_NEEDED[known["method"]][1] if known else "", "signing_secret" if "webhook_signature" in stream.destination else ""):
            if name in self.fields:
                self.fields[name].widget.attrs["placeholder"] = "Set. Leave empty to keep it."

    @property
    def kind(self) -> str:
        """The type of the destination. For a new stream, staff choose the type in the form; an existing stream has a stored type."""
        adding = self.instance._state.adding
        return str(self.cleaned_data.get("destination_type", "") if adding else self.instance.destination_type)

    def clean(self) -> dict[str, Any]:
        """Check the fields of the chosen type of destination, and ignore the fields of the other type."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if self.kind == ACTION and not values.get("action") and "action" not in self.errors:
            self.add_error("action", "Choose the action that runs for each event. Only deployed actions are listed.")
        if self.kind == WEBHOOK and not self.errors and self.is_destination_changed:
            self._check_webhook()
        return values

    @property
    def is_destination_changed(self) -> bool:
        """Whether staff have changed the destination or entered a secret."""
        if self.instance._state.adding:
            return True
        if self.kind == ACTION:
            return "action" in self.changed_data
        return bool(set(self.changed_data) & set(WEBHOOK_FIELDS))

    def destination(self) -> dict[str, Any]:
        """Return the configuration of the destination in the form that the service expects."""
        if self.kind == ACTION:
            return {"action_id": str(self.cleaned_data["action"].pk)}
        method = self.cleaned_data.get("method") or ""
        shown, secret = _NEEDED.get(method, ((), ""))
        authorization = {"method": method, **{name: self.cleaned_data.get(name) or None for name in (*shown, secret) if name}}
        configuration: dict[str, Any] = {"webhook_endpoint": self.cleaned_data.get("webhook_endpoint") or None}
        if self._keeps_secret(secret):
            authorization[secret] = self._stored()[secret]
        configuration["webhook_authorization"] = authorization
        if signing := self._signing_secret():
            configuration["webhook_signature"] = {"method": STANDARD_WEBHOOKS, "secret": signing}
        return configuration

    def _keeps_secret(self, name: str) -> bool:
        """Tell whether the stored secret is kept. A secret is never sent to a URL for which it was not entered."""
        is_same_place = not self.instance._state.adding and not set(self.changed_data) & set(_WHERE)
        return is_same_place and not self.cleaned_data.get(name)

    def _signing_secret(self) -> str:
        entered: str = self.cleaned_data.get("signing_secret") or ""
        if entered or self.instance._state.adding or self.cleaned_data.get("is_unsigned"):
            return entered
        return self._stored().get("signing_secret", "")

    def _stored(self) -> dict[str, str]:
        return open_webhook(tenant_id=self.instance.tenant_id, stream_id=self.instance.pk).secrets

    def _check_webhook(self) -> None:
        secret = _NEEDED.get(self.cleaned_data.get("method") or "", ((), ""))[1]
        if secret and not self.cleaned_data.get(secret) and not self._keeps_secret(secret):
            is_new = self.instance._state.adding
            self.add_error(
                secret, "This field is required." if is_new else "Enter the secret again: a stored secret is never sent to a new URL."
            )
            return
        try:
            parse_configuration(self.destination(), allow_http=settings.OUTBOUND_ALLOW_HTTP)
        except ConfigurationRefused as error:
            place = _PLACES.get(error.name, "webhook_endpoint")
            text = str(error).removesuffix(".")
            self.add_error(place, f"{_IN_FORMS.get(text, text)}.")
