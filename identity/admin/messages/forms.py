"""Forms of the pages of messages. The services check the values."""

from __future__ import annotations

from typing import Any

from django import forms

from foundation.admin.shown_values import ShowsValues
from identity.messages.catalogue import EMAIL, Kind
from identity.messages.providers import SECRETS
from identity.messages.sandbox import LONGEST_SOURCE
from identity.messages.templates import LONGEST_LIFE_SECONDS, TEXTS
from identity.models import MessageProvider, MessageTemplate
from identity.models.messages import Channel

_WIDE = forms.TextInput(attrs={"class": "vTextField"})
_KEPT = "Leave empty to keep the saved value. It is never shown."


class TemplateForm(ShowsValues, forms.Form):
    """The texts of a message in one language.

    If `language` is empty, the texts are for all languages without their own text, and the form also has the rules of the message.
    """

    is_enabled = forms.BooleanField(required=False, label="Send this message")
    subject = forms.CharField(required=False, max_length=1000, widget=_WIDE, help_text="Can contain variables. Empty: the default subject.")
    body = forms.CharField(
        required=False, max_length=LONGEST_SOURCE, strip=False, widget=forms.Textarea(attrs={"rows": 18, "class": "vLargeTextField"})
    )
    from_address = forms.CharField(
        required=False,
        max_length=1000,
        label="Sender",
        widget=_WIDE,
        help_text="Such as Example <mail@example.com>. Used only if the tenant has its own mail server.",
    )
    url_lifetime_seconds = forms.IntegerField(
        required=False, min_value=1, max_value=LONGEST_LIFE_SECONDS, label="Lifetime of the link in seconds"
    )
    result_url = forms.CharField(
        required=False,
        max_length=2048,
        label="Page after the link is used",
        widget=_WIDE,
        help_text="Address of a page on your site. Empty: a page of this service shows the result.",
    )
    includes_email_in_redirect = forms.BooleanField(required=False, label="Send the email address of the user to that page")

    def __init__(self, *args: Any, kind: Kind, language: str, row: MessageTemplate | None, **named: Any) -> None:
        super().__init__(*args, **named)
        self.kind, self.language = kind, language
        for name in self._without():
            del self.fields[name]
        is_mail = kind.channel == EMAIL
        self.fields["body"].help_text = f"{'HTML' if is_mail else 'Text'} with variables in Liquid. Empty: the default text."
        if "url_lifetime_seconds" in self.fields:
            self.fields["url_lifetime_seconds"].help_text = f"Empty: {kind.default_life}."
        first = {"is_enabled": not kind.is_off_at_first, "includes_email_in_redirect": True}
        known = {name: getattr(row, name) for name in self.fields} if row is not None else first
        self.initial = {**known, **(named.get("initial") or {})}

    def _without(self) -> list[str]:
        """Return the fields that do not apply to this message in this language."""
        rules = ["is_enabled", "url_lifetime_seconds", "result_url", "includes_email_in_redirect"]
        if self.language:
            hidden = rules
        else:
            hidden = [] if self.kind.has_link else rules[1:]
            hidden += ["is_enabled"] if self.kind.is_always_sent else []
        return hidden + ([] if self.kind.channel == EMAIL else ["subject", "from_address"])

    def values(self) -> dict[str, Any]:
        """Return the values of the columns that the form sets."""
        return dict(self.cleaned_data)

    def texts(self) -> dict[str, str]:
        """Return the unsaved texts, for a preview."""
        return {name: self.cleaned_data.get(name, "") for name in TEXTS}


class MailProviderForm(ShowsValues, forms.Form):
    """The mail server of a tenant."""

    is_enabled = forms.BooleanField(required=False, initial=True, label="Send emails with this server")
    smtp_host = forms.CharField(max_length=253, label="Server", widget=_WIDE, help_text="Such as smtp.example.com.")
    smtp_port = forms.IntegerField(
        min_value=1, max_value=65535, initial=587, label="Port", help_text="Port 465 uses TLS from the start. Other ports use STARTTLS."
    )
    smtp_user = forms.CharField(required=False, max_length=512, label="Username at the server", widget=_WIDE)
    smtp_pass = forms.CharField(
        required=False,
        max_length=512,
        strip=False,
        label="Password at the server",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    default_from = forms.CharField(
        max_length=320,
        label="Default sender",
        widget=_WIDE,
        help_text="Such as Example <mail@example.com>. A message with a sender of its own uses that sender.",
    )

    def __init__(self, *args: Any, row: MessageProvider | None, **named: Any) -> None:
        super().__init__(*args, **named)
        if row is not None:
            self.initial = {**row.settings, "is_enabled": row.is_enabled, "default_from": row.default_from}
            if row.sealed_settings:
                self.fields["smtp_pass"].help_text = _KEPT

    def values(self) -> dict[str, Any]:
        """Return the values that the service stores."""
        data = self.cleaned_data
        return {
            "is_enabled": data["is_enabled"],
            "default_from": data["default_from"],
            "settings": {name: data[name] for name in ("smtp_host", "smtp_port", "smtp_user")},
            "secrets": {"smtp_pass": data["smtp_pass"]},
        }


class TextProviderForm(ShowsValues, forms.Form):
    """The provider of a tenant's text messages."""

    is_enabled = forms.BooleanField(required=False, initial=True, label="Send text messages with this provider")
    name = forms.ChoiceField(
        label="Provider", choices=[(name.value, name.label) for name in (MessageProvider.Name.TWILIO, MessageProvider.Name.WEBHOOK)]
    )
    twilio_sid = forms.CharField(required=False, max_length=64, label="Twilio account SID", widget=_WIDE)
    twilio_token = forms.CharField(
        required=False, max_length=512, label="Twilio auth token", widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )
    messaging_service_sid = forms.CharField(required=False, max_length=64, label="Twilio messaging service SID", widget=_WIDE)
    url = forms.CharField(
        required=False,
        max_length=512,
        label="Address of the webhook",
        widget=_WIDE,
        help_text="The service posts each message to this address, with a signature.",
    )
    secret = forms.CharField(
        required=False,
        max_length=512,
        label="Signing secret of the webhook",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    default_from = forms.CharField(
        required=False, max_length=320, label="Sender", widget=_WIDE, help_text="A number such as +15005550006, or a short name."
    )
    allowed_countries = forms.CharField(
        required=False,
        max_length=1000,
        label="Allowed countries",
        widget=_WIDE,
        help_text="Country codes, such as DE, AT. Messages to other countries are not sent, which limits fraud. Empty: all countries.",
    )

    def __init__(self, *args: Any, row: MessageProvider | None, **named: Any) -> None:
        super().__init__(*args, **named)
        if row is None:
            return
        countries = ", ".join(row.settings.get("allowed_countries", []))
        self.initial = {**row.settings, "is_enabled": row.is_enabled, "name": row.name, "default_from": row.default_from}
        self.initial["allowed_countries"] = countries
        for name in row.sealed_settings:
            self.fields[name].help_text = _KEPT

    def values(self) -> dict[str, Any]:
        """Return the values that the service stores: only the settings of the chosen provider."""
        data = self.cleaned_data
        countries = [code.strip().upper() for code in data["allowed_countries"].replace(";", ",").split(",") if code.strip()]
        is_twilio = data["name"] == MessageProvider.Name.TWILIO
        own = {name: data[name] for name in (("twilio_sid", "messaging_service_sid") if is_twilio else ("url",))}
        return {
            "name": data["name"],
            "is_enabled": data["is_enabled"],
            "default_from": data["default_from"],
            "settings": {**own, "allowed_countries": countries},
            "secrets": {name: data[name] for name in SECRETS[MessageProvider.Name(data["name"])]},
        }


PROVIDER_FORMS: dict[str, type[MailProviderForm] | type[TextProviderForm]] = {
    Channel.EMAIL: MailProviderForm,
    Channel.SMS: TextProviderForm,
}
