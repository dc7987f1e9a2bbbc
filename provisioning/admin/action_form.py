"""The form of an action: options as fields, and write-only secrets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from foundation.admin.secret_rows import SecretRowsField
from foundation.admin.value_fields import HOW_TO_ENTER, ValuesField
from foundation.expressions.language import MAX_CHARACTERS, ExpressionRefused, compile_expression
from identity.admin.service_form import ServiceForm
from provisioning.actions.secrets import takes_token_elsewhere
from provisioning.models import Action
from provisioning.models.actions import SCIM_USER_PROVISIONING
from provisioning.scim import settings as scim
from provisioning.scim.options import FASTEST_RATE, SLOWEST_RATE, UPDATE_MODES
from provisioning.scim.profiles import PROFILES
from provisioning.services.actions import TOKEN_NEEDED

# Labels of the template's secrets.
SECRETS = {
    scim.BASE_URL: "Address of the server",
    scim.BEARER_TOKEN: "Token",
    scim.TIMEOUT_MS: "Time limit",
    scim.MAX_RETRIES: "Repeats",
    scim.CONNECTION_ALLOWLIST: "Only these connections",
}
# Form fields of the template's options. Each field has the same name as the stored option.
SWITCHES = ("upsert", "adopt_on_conflict", "enterprise", "trust_connection_addresses")
CHOSEN = ("server_profile", "scope", "update_mode", "user_name_proof")
OPTIONS = (*CHOSEN, *SWITCHES, "requests_per_second")
_PROOFS = {
    "verified": "An email address that this service has verified",
    "never": "Nothing: such an account is written only through an existing link",
    "always": "An equal userName. Dangerous: an attacker who signs up with the address of a user gets that user's account",
}
_MODES = {
    "put": "PUT: sends the whole user and clears attributes without a value",
    "patch": "PATCH without a path: sends the attributes that have a value, and clears no attribute",
    "patch_per_attribute": "PATCH with an operation per attribute: clears attributes that have become empty",
}


def _secret(help_text: str, *, is_masked: bool = False) -> forms.CharField:
    """Return a field that never shows the stored value."""
    widget = forms.PasswordInput(attrs={"autocomplete": "off"}) if is_masked else forms.TextInput(attrs={"autocomplete": "off", "size": 60})
    return forms.CharField(required=False, help_text=help_text, widget=widget)


class ActionForm(ServiceForm):
    template = forms.ChoiceField(
        choices=[(SCIM_USER_PROVISIONING, "Outbound SCIM 2.0 user provisioning"), ("", "An installed entry point")], required=False
    )
    server_profile = forms.ChoiceField(
        choices=[(name, profile.label) for name, profile in PROFILES.items()],
        required=False,
        label="Server",
        help_text="Sets defaults for options that are empty below, and shows notes on this server.",
    )
    scope = forms.CharField(
        required=False,
        max_length=MAX_CHARACTERS,
        label="Users to provision",
        widget=forms.TextInput(attrs={"size": 60, "spellcheck": "false", "autocomplete": "off"}),
        help_text="An expression, as in the attribute mapping of the action, that is true or false, such as "
        "app_metadata.department == 'Sales'. Other users are skipped; their existing accounts do not change. Empty: all users.",
    )
    update_mode = forms.ChoiceField(
        choices=[("", "Default of the chosen server, otherwise PUT"), *((name, _MODES[name]) for name in UPDATE_MODES)],
        required=False,
        label="Update mode",
        help_text="A connection test with a write check tries all modes and recommends one.",
    )
    upsert = forms.BooleanField(
        required=False,
        label="Create an account if an update finds no account",
        help_text="Required if earlier users were never synchronized. If this option is off, such an update is skipped with a warning.",
    )
    adopt_on_conflict = forms.BooleanField(
        required=False,
        label="Take over an account with the same userName",
        help_text="Used if the server answers that the user already exists. The service takes over the account only if the account has "
        "no externalId and a proof shows that its userName belongs to the user.",
    )
    user_name_proof = forms.ChoiceField(
        required=False,
        label="Proof for accounts without an externalId",
        choices=[("", "Default: an email address that this service has verified"), *_PROOFS.items()],
        help_text="Used only if the server refuses to search by externalId, or refuses to create a user that exists. An account "
        "without a proof is never written; the event becomes a dead letter.",
    )
    trust_connection_addresses = forms.BooleanField(
        required=False,
        label="Trust verified email addresses of all connections",
        help_text="If off, only email addresses of database and passwordless connections prove an account: other providers can mark "
        "every address as verified.",
    )
    enterprise = forms.BooleanField(
        required=False,
        label="Enterprise User extension",
        help_text="The attribute mapping of the action gets six more rows, such as department and manager.",
    )
    requests_per_second = forms.FloatField(
        required=False,
        min_value=SLOWEST_RATE,
        max_value=FASTEST_RATE,
        label="Requests per second",
        help_text="Limit for all workers together. Deliveries over the limit wait without using up an attempt. "
        "Retry-After of the server pauses all deliveries. Empty: the limit of the chosen server, usually none.",
    )
    options = ValuesField(label="Options of the entry point", help_text=f"Passed to the entry point unchanged. {HOW_TO_ENTER}")
    SCIM_BASE_URL = _secret(
        "Base URL of the SCIM 2.0 server, such as https://example.com/scim/v2. Required. If you change the server, enter its token as well."
    )
    SCIM_BEARER_TOKEN = _secret("Token issued by the SCIM server. Required.", is_masked=True)
    SCIM_TIMEOUT_MS = _secret(f"Milliseconds per request, a whole number. Default: {scim.DEFAULT_TIMEOUT_MS}.")
    SCIM_MAX_RETRIES = _secret(f"Repeats of a request on 429, 5xx and network errors. Default: {scim.DEFAULT_MAX_RETRIES}.")
    SCIM_CONNECTION_ALLOWLIST = _secret("Comma-separated names of connections. Only their users are provisioned. Empty: all connections.")
    other_secrets = SecretRowsField(help_text="Further secrets that the action reads by name. Values are never shown.")
    removed_secrets = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Remove secrets",
        help_text="Removed secrets get their default, if they have one.",
    )

    class Meta:
        model = Action
        fields = ("name", "template", "entry_point")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        is_new = self.instance._state.adding
        self._options_before = dict(self.instance.options)
        known = [] if is_new else sorted(self.instance.secrets.values_list("name", flat=True))
        for name, label in SECRETS.items():
            if name in self.fields:
                self.fields[name].label = label
                self.fields[name].help_text += f" Stored as {name}."
                self.fields[name].widget.attrs["placeholder"] = "Set. Leave empty to keep it." if name in known else "Not set"
        own = [name for name in known if name in SECRETS and name in self.fields]
        if "removed_secrets" in self.fields:
            self.fields["removed_secrets"].choices = [(name, name) for name in own]  # type: ignore[attr-defined]  # a choice field
        if "other_secrets" in self.fields:
            self.fields["other_secrets"].name_stored([name for name in known if name not in own])  # type: ignore[attr-defined]  # rows
        if is_new:
            self.initial["template"] = self.initial.get("template") or SCIM_USER_PROVISIONING
        else:
            self.initial.update({name: self.instance.options[name] for name in OPTIONS if name in self.instance.options})
            self.initial["options"] = self.instance.options

    def clean_scope(self) -> str:
        """Report an invalid expression at its field."""
        scope: str = self.cleaned_data["scope"]
        try:
            if scope:
                compile_expression(scope)
        except ExpressionRefused as error:
            raise forms.ValidationError(str(error)) from error
        return scope

    def clean(self) -> dict[str, Any]:
        """Report invalid secrets at their fields; the service checks them again."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if self.is_of_template:
            for name in SECRETS:
                self._check_secret(name, values.get(name) or "")
            self._check_address(values)
        for name in set(values.get("removed_secrets") or ()) & set(self._entered()):
            self.add_error("removed_secrets", f"{name} cannot be entered and removed at the same time.")
        return values

    @property
    def is_of_template(self) -> bool:
        """Tell whether the action uses the SCIM template. For a new action, the submitted form decides; otherwise the stored action."""
        chosen = self.cleaned_data.get("template") if self.instance._state.adding else self.instance.template
        return chosen == SCIM_USER_PROVISIONING

    def chosen_options(self) -> dict[str, Any]:
        """Return the options to store, without options that equal the default."""
        if not self.is_of_template:
            return dict(self.cleaned_data.get("options") or {})
        values = self.cleaned_data
        chosen: dict[str, Any] = {name: True for name in SWITCHES if values.get(name)}
        chosen |= {name: values[name] for name in CHOSEN if values.get(name)}
        if values.get("requests_per_second") is not None:
            chosen["requests_per_second"] = values["requests_per_second"]
        return chosen

    def has_other_options(self) -> bool:
        """Tell whether the options differ from the stored options."""
        return self.chosen_options() != self._options_before

    def secrets(self) -> dict[str, Any]:
        """Return the entered secrets by name; None marks a secret to remove."""
        return {**self._entered(), **dict.fromkeys(self.cleaned_data.get("removed_secrets") or ())}

    def _entered(self) -> dict[str, Any]:
        values = self.cleaned_data
        own = {name: values[name] for name in SECRETS if values.get(name)}
        return {**own, **(values.get("other_secrets") or {})}

    def _check_address(self, values: dict[str, Any]) -> None:
        """Require the token if the stored token would be sent to another server; the service checks this again."""
        address = values.get(scim.BASE_URL)
        if not address or self.instance._state.adding or scim.BEARER_TOKEN in self.secrets():
            return
        if takes_token_elsewhere(self.instance, address):
            self.add_error(scim.BEARER_TOKEN, TOKEN_NEEDED)

    def _check_secret(self, name: str, value: str) -> None:
        try:
            if value:
                scim.check_secret(name, value, allow_http=settings.OUTBOUND_ALLOW_HTTP)
        except scim.SecretRefused as error:
            self.add_error(name, str(error))
