"""The form in which staff enter claims to preview a profile. Each row has a claim and its value; each field is a part of `sent_claims`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.openid_claims import ANOTHER_SUBJECT
from authapi.upstream.provider import rules_of
from authapi.upstream.saml.claims import EMAIL_FORMAT, PERSISTENT, TRANSIENT
from authapi.upstream.sample_claims import speaks_assertions
from authapi.upstream.sent_claims import ATTRIBUTES, DOCUMENT, FORM, ID_TOKEN, NAME_ID, NAME_ID_FORMAT, USERINFO
from authapi.upstream.social.known_providers import Peculiarity
from foundation.admin.column_rows import Cells, Column, RowsField, is_cell
from foundation.admin.value_fields import HOW_TO_ENTER, ValuesField
from identity.models import Connection

_LONGEST_NAME = 512
_LONGEST_VALUE = 4096
# An attribute with more values than this, such as a long list of groups, has no rows: Django accepts only 1000 inputs in one request.
_MOST_VALUES = 20
_MOST_ROWS = 200
_FORMATS = (("", "Not specified"), (PERSISTENT, "Persistent"), (EMAIL_FORMAT, "Email address"), (TRANSIENT, "Transient"))


class AttributesField(RowsField):
    """Rows, each with the name of an attribute and one value. An attribute with several values has a row for each value."""

    def __init__(self, **options: Any) -> None:
        columns = (Column("claim", "Claim", longest=_LONGEST_NAME), Column("value", "Value", longest=_LONGEST_VALUE))
        super().__init__(columns=columns, **options)

    def rows_of(self, stored: Mapping[str, Any]) -> tuple[list[Cells], dict[str, Any]]:
        rows: list[Cells] = []
        kept: dict[str, Any] = {}
        for name, given in stored.items():
            values = _texts_in(given) or []
            are_cells = 0 < len(values) <= _MOST_VALUES and all(is_cell(value, _LONGEST_VALUE) for value in values)
            if are_cells and is_cell(name, _LONGEST_NAME) and len(rows) + len(values) <= _MOST_ROWS:
                rows += [(name, value) for value in values]
            else:
                kept[name] = given
        return rows, kept

    def to_python(self, value: Any) -> Any:
        found = {name: _texts_in(given) for name, given in super().to_python(value).items()}
        if wrong := next((name for name, texts in found.items() if texts is None), None):
            raise ValidationError(f"The attribute “{wrong[:40]}” must be a string or a list of strings.")
        return {name: texts for name, texts in found.items() if texts is not None}

    def map_of(self, rows: list[tuple[int, Cells]]) -> dict[str, Any]:
        found: dict[str, list[str]] = {}
        for number, (name, value) in rows:
            if not name:
                raise ValidationError(f"Row {number}: enter the claim for the value “{value[:40]}”.")
            found.setdefault(name, []).append(value)
        return found


def _texts_in(given: Any) -> list[str] | None:
    """Return the values of an attribute; None if they are not texts."""
    values = given if isinstance(given, list) else [given]
    return values if all(isinstance(value, str) for value in values) else None


class SampleForm(forms.Form):
    """Claims of a provider. Each subclass has the fields for one protocol. Each field has the name of a part of `sent_claims`."""

    # The field that shows why a login with the claims would fail.
    error_field: ClassVar[str]

    def place_of(self, failed: UpstreamFailed) -> str:
        """Return the field that shows why a login with the claims would fail."""
        return self.error_field

    @property
    def parts(self) -> dict[str, Any]:
        """Return the entered claims."""
        return dict(self.cleaned_data)


class OpenIdForm(SampleForm):
    """Claims of OpenID Connect."""

    error_field = ID_TOKEN
    id_token = ValuesField(head="Claim", label="Claims of the ID token", help_text=HOW_TO_ENTER)
    userinfo = ValuesField(
        head="Claim",
        label="Claims of the userinfo endpoint",
        help_text="A login reads this endpoint only if the ID token has no email or no name. The claim “sub” must have the same "
        "value as in the ID token.",
    )

    def place_of(self, failed: UpstreamFailed) -> str:
        return USERINFO if failed.detail == ANOTHER_SUBJECT else self.error_field

    @property
    def parts(self) -> dict[str, Any]:
        """Return the entered claims, without empty optional parts.

        Without claims of the userinfo endpoint, the preview assumes that the endpoint cannot be read.
        """
        optional = {name: self.cleaned_data.get(name) for name in (FORM, USERINFO)}
        return {ID_TOKEN: self.cleaned_data[ID_TOKEN], **{name: claims for name, claims in optional.items() if claims}}


class PostedNameForm(OpenIdForm):
    """Claims of OpenID Connect, and the name that the browser posts at the first login."""

    form = ValuesField(
        head="Claim",
        label="Name that the browser posts",
        help_text="The provider sends the name at the first login only, and not in the ID token. Claims of the ID token override it.",
    )


class DocumentForm(SampleForm):
    """The profile that the provider returns for an access token."""

    error_field = DOCUMENT
    document = ValuesField(head="Claim", label="Claims of the profile", help_text=HOW_TO_ENTER)


class AssertionForm(SampleForm):
    """The NameID and the attributes of an assertion."""

    error_field = NAME_ID
    name_id = forms.CharField(
        label="NameID",
        required=False,
        strip=False,
        max_length=_LONGEST_VALUE,
        widget=forms.TextInput(attrs={"size": 60, "spellcheck": "false", "autocomplete": "off"}),
    )
    name_id_format = forms.ChoiceField(label="Format of the NameID", required=False, choices=_FORMATS)

    def __init__(self, data: Any = None, *, initial: Mapping[str, Any]) -> None:
        super().__init__(data, initial=dict(initial))
        stored = initial.get(NAME_ID_FORMAT, "")
        if stored not in dict(_FORMATS):
            self.fields[NAME_ID_FORMAT].choices = (*_FORMATS, (stored, stored))  # type: ignore[attr-defined]  # a choice
        # The rows leave out values that no row can represent. The field takes these values from `initial`.
        self.fields[ATTRIBUTES] = AttributesField(
            label="Attributes", initial=initial.get(ATTRIBUTES, {}), help_text="An attribute with several values has a row for each value."
        )


def sample_form(connection: Connection, parts: Mapping[str, Any], data: Any = None) -> SampleForm:
    """Return the form for the protocol of a connection, filled with the submitted `data` or, without `data`, with `parts`."""
    if speaks_assertions(connection):
        return AssertionForm(data, initial=parts)
    row = rules_of(connection).row
    kind = DocumentForm if row.calls else PostedNameForm if row.has(Peculiarity.NAME_IN_FORM) else OpenIdForm
    return kind(data, initial=dict(parts))
