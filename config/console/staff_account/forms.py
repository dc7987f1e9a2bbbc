"""Forms for the password and the factors of a staff account. They never send an entered secret back."""

from __future__ import annotations

from typing import Any

from django import forms

_NAME_HELP = "A name by which you recognize the factor, such as “My phone”."


class OnceInput(forms.TextInput):
    """A text field without a mask. It is empty when the form is shown again."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__({"autocapitalize": "none", "spellcheck": "false", "autofocus": True, **attributes})

    def format_value(self, value: Any) -> None:
        return None


class CodeForm(forms.Form):
    """A code of an authenticator app, or a recovery code."""

    code = forms.CharField(
        max_length=64,
        widget=OnceInput(autocomplete="one-time-code"),
        help_text="The six-digit code of your authenticator app, or one of your recovery codes.",
    )


class PasswordForm(forms.Form):
    """The password of the account."""

    password = forms.CharField(
        strip=False, max_length=1024, widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True})
    )


class NameForm(forms.Form):
    """The name of a factor."""

    name = forms.CharField(max_length=60, help_text=_NAME_HELP)


class AuthenticatorForm(NameForm):
    """A new authenticator app, with a code that it shows."""

    name = forms.CharField(max_length=60, initial="Authenticator app", help_text=_NAME_HELP)
    code = forms.CharField(
        max_length=12,
        widget=OnceInput(autocomplete="one-time-code", inputmode="numeric", autofocus=False),
        help_text="The six digits that the app shows now.",
    )


class PasskeyForm(NameForm):
    """A new passkey. The script fills in the browser's response."""

    name = forms.CharField(max_length=60, initial="Passkey", help_text=_NAME_HELP)


class RemovalForm(forms.Form):
    """Confirms the removal of a factor; has a checkbox if the factor is the last one."""

    is_last_known = forms.BooleanField(label="I know that this is my last second factor", label_suffix="")

    def __init__(self, *args: Any, is_last: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_last:
            del self.fields["is_last_known"]
