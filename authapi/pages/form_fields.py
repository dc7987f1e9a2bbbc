"""Fields of the forms on hosted pages: their labels and hints, and the attributes for browsers and password managers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from authapi.custom_texts import custom_text
from identity.options.connection_options import login_identifiers

LONGEST_EMAIL = 254
LONGEST_PASSWORD = 4096
# The type of an input that users do not see. The input tells a password manager the account to which the password belongs.
ACCOUNT_NAME = "hidden-username"
# Id of the summary of problems (`hosted/errors.html`).
_SUMMARY = "errors"
LOGIN_SCREEN, RESET_SCREEN = "login.login", "reset-password.reset-password-request"
# The minimum that an email address must match. Only a sent mail shows whether the address exists.
_EMAIL = re.compile(r"[^\s@]+@[^\s@.]+(\.[^\s@.]+)*")


@dataclass(frozen=True)
class Problem:
    """A problem with a field, or with the whole form if `field` is empty.

    `address` is the URL of a page on which the user can solve the problem.
    """

    text: str
    field: str = ""
    address: str = ""


@dataclass(frozen=True)
class FieldLink:
    """A link below a field."""

    address: str
    text: str


@dataclass(frozen=True)
class Field:
    """A form field. The name of the field is also its id, so the name must be unique on a page.

    A page shows typed input again, except for secrets.
    """

    name: str
    label: str
    type: str = "text"
    value: str = ""
    autocomplete: str = "off"
    inputmode: str = ""
    maxlength: int = LONGEST_EMAIL
    hints: tuple[str, ...] = ()
    is_required: bool = True
    # Whether the user can read the value but not change it. The server ignores the submitted value and uses the stored value.
    is_fixed: bool = False
    link: FieldLink | None = None
    # Values with their labels, if the field is a list.
    choices: tuple[tuple[str, str], ...] = ()
    # `form_fields` sets the following members.
    errors: tuple[str, ...] = ()
    is_marked: bool = False
    has_legend: bool = False
    has_focus: bool = False
    # Whether a problem of the whole form may be caused by this field.
    is_suspected: bool = False

    @property
    def is_secret(self) -> bool:
        return self.type == "password"

    @property
    def is_account_name(self) -> bool:
        return self.type == ACCOUNT_NAME

    @property
    def described_by(self) -> str:
        """The ids of the texts that screen readers read with the field."""
        found = {f"{self.name}-error": self.errors, f"{self.name}-hint": self.hints, _SUMMARY: self.is_suspected}
        return " ".join(name for name, is_there in found.items() if is_there)


def form_fields(fields: Iterable[Field], problems: Sequence[Problem | Mapping[str, str] | str] = ()) -> list[Field]:
    """Return the fields with their problems. Also set which fields are marked as required, and which field gets the focus.

    The first wrong field gets the focus, otherwise the first empty field. If a form has a single field, the field is not marked as
    required: there is no optional field to distinguish it from.
    """
    found = [_as_problem(problem) for problem in problems]
    given = list(fields)
    visible = [field for field in given if not field.is_account_name]
    open_fields = [field for field in visible if not field.is_fixed]
    is_marked = len(open_fields) > 1 and any(field.is_required for field in open_fields)
    is_whole = any(not problem.field for problem in found)
    errors = {field.name: tuple(problem.text for problem in found if problem.field == field.name) for field in visible}
    focused = next((field.name for field in open_fields if errors[field.name]), None) or _first_empty(open_fields)
    return [
        field
        if field.is_account_name
        else replace(
            field,
            errors=errors[field.name],
            is_marked=is_marked and field.is_required and not field.is_fixed,
            has_legend=is_marked,
            has_focus=field.name == focused,
            is_suspected=is_whole,
        )
        for field in given
    ]


def has_secret(fields: object) -> bool:
    """Tell whether one of the fields is a password. Such a field has a button that shows the password."""
    return isinstance(fields, list) and any(isinstance(field, Field) and field.is_secret for field in fields)


def email_problem(typed: str) -> str:
    """Return an error text for an obviously invalid email address, empty for a valid address. Does not reveal whether an account exists."""
    if not typed:
        return _("Enter your email address.")
    if len(typed) > LONGEST_EMAIL or _EMAIL.fullmatch(typed) is None:
        return _("Enter an email address like name@example.com.")
    return ""


def identifier_field(options: Mapping[str, Any], *, value: str = "", screen: str = LOGIN_SCREEN, **values: str) -> Field:
    """Return the field for the account name of a connection with these options.

    A tenant may replace the label on each screen. `values` are the values of the placeholders in the label.
    """
    names = login_identifiers(options)
    kind, inputmode = _KINDS.get(names, ("text", "email" if "email" in names else ""))
    name, text = _LABELS.get(names, _ANY_LABEL)
    label = custom_text(_path_of_label(screen, name), _(text), **values)
    return Field("username", label, type=kind, inputmode=inputmode, value=value, autocomplete="username", maxlength=LONGEST_EMAIL)


def identifier_problem(options: Mapping[str, Any], typed: str) -> str:
    """Return an error text for an obviously invalid account name, empty for a valid name. Does not reveal whether the account exists."""
    names = login_identifiers(options)
    if not typed or len(typed) > LONGEST_EMAIL:
        return _("Enter your email address.") if names == ("email",) else _("Enter the name of your account.")
    # A name with an "@" may be a username, if the connection allows usernames. A name without an "@" is always accepted: it may be a
    # username that earlier rules of the connection allowed.
    return email_problem(typed) if "@" in typed and "username" not in names else ""


def identifier_labels() -> set[tuple[str, str]]:
    """Return the path and English text of every label that `identifier_field` can have."""
    return {(_path_of_label(screen, name), text) for screen in (LOGIN_SCREEN, RESET_SCREEN) for name, text in _LABELS.values()}


def _path_of_label(screen: str, name: str) -> str:
    """Return the path that identifies a label in client libraries. Each screen uses a different pattern."""
    return f"{screen}.placeholder{name[:1].upper()}{name[1:]}" if screen == RESET_SCREEN else f"{screen}.{name}Placeholder"


# Type and input mode of the field, for a connection with a single kind of identifier.
_KINDS: Mapping[tuple[str, ...], tuple[str, str]] = {("email",): ("email", "email"), ("phone_number",): ("tel", "tel")}


# The label of each kind of identifier, with its key in `templates/hosted/texts.toml`.
_ANY_LABEL = ("phoneOrUsernameOrEmail", gettext_noop("Email address, username or phone number"))
_LABELS: Mapping[tuple[str, ...], tuple[str, str]] = {
    ("email",): ("email", gettext_noop("Email address")),
    ("username",): ("usernameOnly", gettext_noop("Username")),
    ("phone_number",): ("phone", gettext_noop("Phone number")),
    ("email", "username"): ("username", gettext_noop("Email address or username")),
    ("email", "phone_number"): ("phoneOrEmail", gettext_noop("Email address or phone number")),
    ("username", "phone_number"): ("phoneOrUsername", gettext_noop("Username or phone number")),
    ("email", "username", "phone_number"): _ANY_LABEL,
}


def _first_empty(visible: Sequence[Field]) -> str | None:
    return next((field.name for field in visible if field.is_secret or not field.value), None)


def _as_problem(problem: Problem | Mapping[str, str] | str) -> Problem:
    if isinstance(problem, Problem):
        return problem
    return Problem(problem) if isinstance(problem, str) else Problem(problem["text"], problem.get("field", ""))
