"""Forms of actions on one row. In their fields, staff choose other rows of the same tenant."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.db.models.functions import Lower
from django.http import HttpRequest

from identity.models import User

# A field offers its rows as choices if there are at most this many. If there are more, staff enter a name or an id.
MOST_CHOICES = 100
_NAMED_USERS = 5


class UserField(forms.CharField):
    """A user of the tenant, by email address or user id."""

    tenant_id: str

    def __init__(self, **options: Any) -> None:
        options.setdefault("label", "User")
        options.setdefault(
            "widget", forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "placeholder": "ada@example.com"})
        )
        options.setdefault("help_text", "Email address or user id.")
        super().__init__(max_length=300, **options)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        users = User.objects.of(self.tenant_id)
        with_address = users.alias(lower_email=Lower("email")).filter(lower_email=text.lower())
        users = users.filter(user_id=text) if "|" in text else with_address
        found = list(users.order_by("pk")[:_NAMED_USERS])
        if not found:
            raise ValidationError("No user has this email address or user id.")
        if len(found) > 1:
            ids = ", ".join(user.user_id for user in found)
            raise ValidationError(f"Several users have this email address. Enter the id of one of them, such as {ids}.")
        return found[0]


class RowField(forms.CharField):
    """A field for a row with a name: a choice if there are few rows, otherwise an input for the name or id.

    `identifier` is the column with the id.
    """

    def __init__(self, *, identifier: str = "pk", **options: Any) -> None:
        super().__init__(max_length=300, **options)
        self._rows: QuerySet[Any] | None = None
        self._identifier = identifier

    def offer(self, rows: QuerySet[Any]) -> None:
        """Set the rows that the field accepts."""
        self._rows = rows
        found = list(rows.order_by("name", "pk")[: MOST_CHOICES + 1])
        if len(found) > MOST_CHOICES:
            self.help_text = "Name or id."
            return
        empty = ("", "Choose" if self.required else "Not set")
        self.widget = forms.Select(choices=[empty, *((getattr(row, self._identifier), str(row)) for row in found)])
        self.widget.is_required = self.required

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text or self._rows is None:
            return None
        found = list(self._rows.filter(Q(**{self._identifier: text}) | Q(name=text))[:2])
        exact = [row for row in found if getattr(row, self._identifier) == text] or found
        if not exact:
            raise ValidationError("No object has this name or id.")
        if len(exact) > 1:
            raise ValidationError("Several objects have this name. Enter an id.")
        return exact[0]


class RowForm(forms.Form):
    """The form of an action on one row."""

    def fit(self, request: HttpRequest, row: Any) -> None:
        """Limit the fields to the tenant of the row. Subclasses set the choices of their fields."""
        for field in self.fields.values():
            if isinstance(field, UserField):
                field.tenant_id = row.tenant_id
