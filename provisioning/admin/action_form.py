"""The form of an action: options as fields, and write-only secrets."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.conf import settings

from foundation.admin.secret_rows import SecretRowsField
from foundation.admin.value_fields import HOW_TO_ENTER, ValuesField
from foundation.expressions.language import MAX_CHARACTERS, ExpressionRefused, compile_expression
from identity.admin.service_form import ServiceForm
from provisioning.actions.registry import PACKAGE
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
    scim.TIMEOUT_MS: "Time limit of a request",
    scim.MAX_RETRIES: "Repeats of a request",
    scim.CONNECTION_ALLOWLIST: "Only users of these connections",
}
# Form fields of the template's options. Each field has the same name as the stored option.
SWITCHES = ("upsert", "adopt_on_conflict", "enterprise", "trust_connection_addresses")
CHOSEN = ("server_profile", "scope", "update_mode", "user_name_proof")
OPTIONS = (*CHOSEN, *SWITCHES, "requests_per_second")
_PROOFS = {
    "verified": "The userName is the user's email address, and the address is verified",
    "never": "No proof: the service writes to an account without an externalId only if an account link exists",
    "always": "The userName alone. Dangerous: an attacker who signs up with the address of a user gets that user's account",
}
# The templates of actions in words. The empty template is the code of an entry point.
TEMPLATES = {SCIM_USER_PROVISIONING: "Provision users to a SCIM 2.0 server", "": "Run other installed code (an entry point)"}
_WHAT_IT_DOES = "What the action does. Cannot be changed later."
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
        choices=list(TEMPLATES.items()),
        required=False,
        help_text=_WHAT_IT_DOES,
    )
    server_profile = forms.ChoiceField(
        choices=[(name, profile.label) for name, profile in PROFILES.items()],
        required=False,
        label="Kind of server",
        help_text="Determines the update mode and the requests per second, unless you set them below. The page of the action shows notes "
        "on this kind of server.",
    )
    scope = forms.CharField(
        required=False,
        max_length=MAX_CHARACTERS,
        label="Users to provision (scope)",
        widget=forms.TextInput(attrs={"size": 60, "spellcheck": "false", "autocomplete": "off"}),
        help_text="An expression that is true for the users to provision, such as app_metadata.department == 'Sales'. The page Mapping of "
        "the action explains expressions. Other users are skipped: their accounts on the server do not change. Empty: all users.",
    )
    update_mode = forms.ChoiceField(
        choices=[("", "Default: the mode for the kind of server, usually PUT"), *((name, _MODES[name]) for name in UPDATE_MODES)],
        required=False,
        label="Update mode",
        help_text="How the service changes an existing account. A connection test with a write check tries all modes and recommends one.",
    )
    upsert = forms.BooleanField(
        required=False,
        label="Create an account if an update finds no account",
        help_text="Turn this on if users that existed before the stream were never synchronized. If this is off, the update of a user "
        "without an account is skipped.",
    )
    adopt_on_conflict = forms.BooleanField(
        required=False,
        label="Take over an account with the same userName",
        help_text="Used if the server refuses to create a user because an account with this userName exists. The service takes over the "
        "account only if the account has no externalId, and if the proof above shows that its userName belongs to the user.",
    )
    user_name_proof = forms.ChoiceField(
        required=False,
        label="Proof that a userName belongs to the user",
        choices=[("", "Default: a verified email address"), *_PROOFS.items()],
        help_text="Needed if the server refuses to search by externalId, or to create the user. The service then searches for an account "
        "by its userName. It writes to an account without an externalId only with this proof. Otherwise the event becomes a dead letter.",
    )
    trust_connection_addresses = forms.BooleanField(
        required=False,
        label="Trust verified email addresses of all connections",
        help_text="If this is off, only verified addresses of database and passwordless connections prove that a userName belongs to "
        "the user. Turn this on only if you trust all external providers: a provider can mark any address as verified.",
    )
    enterprise = forms.BooleanField(
        required=False,
        label="Enterprise User extension",
        help_text="Also sends attributes such as “department” and “manager”: enables the rows of this extension in the mapping.",
    )
    requests_per_second = forms.FloatField(
        required=False,
        min_value=SLOWEST_RATE,
        max_value=FASTEST_RATE,
        label="Requests per second",
        help_text="Limit for all workers together. Deliveries above the limit wait, and waiting uses up no attempt. If the server answers "
        "with Retry-After, all deliveries of the action pause. Empty: the limit for the kind of server, usually none.",
    )
    options = ValuesField(label="Options of the entry point", help_text=f"Passed to the entry point unchanged. {HOW_TO_ENTER}")
    SCIM_BASE_URL = _secret(
        "Base URL of the SCIM 2.0 server, such as https://example.com/scim/v2. Required. If you change the server, also enter its token."
    )
    SCIM_BEARER_TOKEN = _secret("Token issued by the SCIM server. Required.", is_masked=True)
    SCIM_TIMEOUT_MS = _secret(f"Milliseconds per request. A slower request fails. Default: {scim.DEFAULT_TIMEOUT_MS}.")
    SCIM_MAX_RETRIES = _secret(
        "The maximum number of times that one attempt sends a request again after the status 429 or 5xx, or a network error. "
        f"Default: {scim.DEFAULT_MAX_RETRIES}."
    )
    SCIM_CONNECTION_ALLOWLIST = _secret(
        "Names of connections, separated by commas. Users of other connections are not provisioned. Empty: users of all connections."
    )
    other_secrets = SecretRowsField(
        help_text="Further secrets, which the code of an installed entry point reads by name. Values are never shown."
    )
    removed_secrets = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Remove secrets",
        help_text="Deletes the stored values of the selected secrets. A setting with a default, such as the time limit, then has its "
        "default again.",
    )

    class Meta:
        model = Action
        fields = ("name", "template", "entry_point")
        help_texts: ClassVar[dict[str, str]] = {
            "template": _WHAT_IT_DOES,
            "entry_point": f"The dotted path of the class that runs, under {PACKAGE}. Only for other installed code.",
        }

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
