"""The forms of a guided setup: the server, the user of the preview, and how the deliveries begin."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioning.admin.action_form import SECRETS, ActionForm
from provisioning.scim import settings as scim
from provisioning.scim.settings import BEARER_TOKEN, REQUIRED

_HELP = {
    scim.BASE_URL: "The base URL of SCIM 2.0, such as https://example.com/scim/v2. If you change the server, also enter its token.",
    scim.BEARER_TOKEN: "Copy the token from the settings of the server, where it is often called API token or secret token.",
    scim.TIMEOUT_MS: f"Milliseconds per request. A slower request fails. Default: {scim.DEFAULT_TIMEOUT_MS}.",
    scim.MAX_RETRIES: "The maximum number of times that one attempt sends a request again after an error of the server or the network. "
    f"Default: {scim.DEFAULT_MAX_RETRIES}.",
    scim.CONNECTION_ALLOWLIST: "Names of connections, separated by commas. Users of other connections are not provisioned. "
    "Empty: users of all connections.",
}
_FURTHER = (scim.TIMEOUT_MS, scim.MAX_RETRIES, scim.CONNECTION_ALLOWLIST)
_NAMES = {
    scim.BASE_URL: "the address",
    scim.BEARER_TOKEN: "the token",
    scim.TIMEOUT_MS: "the time limit",
    scim.MAX_RETRIES: "the number of repeats",
    scim.CONNECTION_ALLOWLIST: "the list of connections",
}


class ServerForm(ActionForm):
    """Server profile, name, and the five values that the SCIM template stores as secrets: URL, token, time limit, repeats and connections.
    Other options are set later on the page of the action.

    If other fields had errors when staff last sent this form, `kept_token` is the token that staff entered then. Staff need not enter it
    again.
    """

    template = scope = update_mode = upsert = adopt_on_conflict = enterprise = None  # type: ignore[assignment]  # fields left out
    requests_per_second = options = other_secrets = removed_secrets = None  # type: ignore[assignment]
    user_name_proof = trust_connection_addresses = None  # type: ignore[assignment]

    class Meta(ActionForm.Meta):
        fields = ("name",)  # type: ignore[assignment]  # a subset

    def __init__(self, *args: Any, kept_token: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kept_token = kept_token
        known = set() if self.instance._state.adding else set(self.instance.secrets.values_list("name", flat=True))
        for name in REQUIRED:
            self.fields[name].required = name not in known
        for name, text in _HELP.items():
            self.fields[name].help_text = text
            if name not in known:
                del self.fields[name].widget.attrs["placeholder"]
        if kept_token:
            self.fields[BEARER_TOKEN].required = False
            self.fields[BEARER_TOKEN].widget.attrs["placeholder"] = "Entered. Leave empty to use it."
        self.fields["server_profile"].help_text = (
            "Determines how the service updates accounts and how many requests it sends per second. The next steps show notes on this kind "
            "of server."
        )
        # The profile determines the defaults of all other fields.
        self.order_fields(["server_profile", "name", *SECRETS])

    def clean(self) -> dict[str, Any]:
        """Use the kept token if no token was entered."""
        if self._kept_token and BEARER_TOKEN in self.cleaned_data and not self.cleaned_data[BEARER_TOKEN]:
            self.cleaned_data[BEARER_TOKEN] = self._kept_token
        return super().clean()

    def add_error(self, field: str | None, error: Any) -> None:
        """Replace the names of secrets in an error by the labels of the form fields."""
        if isinstance(error, str):
            for name, label in _NAMES.items():
                error = error.replace(name, label)
            error = error[:1].upper() + error[1:]
        super().add_error(field, error)

    @property
    def further(self) -> list[forms.BoundField]:
        """The fields that most servers do not need. The page folds these fields unless one of them has an error."""
        return [self[name] for name in _FURTHER]

    @property
    def has_further_errors(self) -> bool:
        return bool(set(_FURTHER) & set(self.errors))

    @property
    def usable_token(self) -> str:
        """The entered or kept token if other fields of the form have errors; empty if the token itself was refused."""
        return "" if BEARER_TOKEN in self.errors else str(self.cleaned_data.get(BEARER_TOKEN) or "")

    @property
    def is_of_template(self) -> bool:
        return True


class PreviewForm(forms.Form):
    user = forms.CharField(max_length=320, label="User", help_text="A user id or an email address.")


class EnableForm(forms.Form):
    """The form of the last step: how the deliveries begin. If a test is missing, failed or outdated, staff must confirm."""

    begin = forms.ChoiceField(
        label="Existing users",
        widget=forms.RadioSelect,
        initial="synchronize",
        choices=[
            ("synchronize", "Synchronize existing users first. Then the stream is enabled, and also delivers the changes made meanwhile"),
            ("changes", "Do not synchronize existing users. The stream is enabled now, and delivers only future changes"),
        ],
    )
    accept_untested = forms.BooleanField(label="Go live without these tests")

    def __init__(self, *args: Any, untested: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not untested:
            del self.fields["accept_untested"]
