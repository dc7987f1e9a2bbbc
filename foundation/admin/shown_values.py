"""Forms that refuse to overwrite a value that has changed since the page was opened.

The page contains a digest of each value that it shows. The field gets an error if two conditions are met: its saved value no longer has
this digest, and the submitted value is neither the shown value nor the saved value. The error contains the saved value. The page then has
new digests, so that saving again overwrites the value knowingly. A request without digests, such as a request of a script, is not checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.http import QueryDict
from django.utils.crypto import salted_hmac
from django.utils.html import format_html
from django.utils.safestring import SafeString

from foundation.admin.choice_labels import labels_of

# The name of the hidden input.
INPUT = "_shown"
_LONGEST_SHOWN = 200
_DIGEST_LENGTH = 12

if TYPE_CHECKING:
    _Form = forms.BaseForm
else:
    _Form = object


class ShowsValues(_Form):
    """The mixin of a form that refuses to overwrite newer values.

    The template of the form must render `shown_values` inside the `<form>` element.
    """

    # The saved values by field name. They are set if the initial values of the form are proposals; otherwise the initial values are the
    # saved values.
    saved: dict[str, Any] | None = None

    def shown_values(self) -> SafeString:
        """Return the hidden input with the digests of the saved values."""
        return digests_input({name: self._saved(name) for name in self._checked()})

    def _saved(self, name: str) -> Any:
        return self[name].initial if self.saved is None else self.saved.get(name)

    def _checked(self) -> list[str]:
        """Return the fields whose saved value the page shows: no secrets and no files."""
        return [
            name
            for name, field in self.fields.items()
            if not field.disabled and not isinstance(field.widget, forms.PasswordInput | forms.FileInput | forms.HiddenInput)
        ]

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # Django's hook after all other checks
        for name in changed_since(self.data, {name: self._saved(name) for name in self._checked()}):
            bound = self[name]
            if bound._has_changed():  # type: ignore[attr-defined]  # django-stubs omits it
                self.add_error(name, _problem(bound))


def digests_input(saved: Mapping[str, Any]) -> SafeString:
    """Return the hidden input with the digests of values by name, for a page without `ShowsValues`."""
    digests = {name: _digest(value) for name, value in saved.items()}
    return format_html('<input type="hidden" name="{}" value="{}">', INPUT, json.dumps(digests, separators=(",", ":")))


def changed_since(data: Mapping[str, Any], saved: Mapping[str, Any]) -> list[str]:
    """Return the names of the values that were saved after the submitted page was opened; empty if `data` has no digests."""
    try:
        shown = json.loads(data.get(INPUT) or "{}")
    except (ValueError, RecursionError):
        return []
    return [name for name, value in saved.items() if isinstance(shown, dict) and name in shown and shown[name] != _digest(value)]


def _digest(value: Any) -> str:
    """Return a keyed digest of a value. Readers of a page do not have the key, so they cannot compute the digest of a guessed value and
    compare it with the digest on the page."""
    return salted_hmac(__name__, repr(value)).hexdigest()[:_DIGEST_LENGTH]


def _problem(bound: forms.BoundField) -> str:
    saved = _in_words(bound.field, bound.initial)
    is_now = f" The saved value is now: {saved}." if saved else ""
    return f"This value has changed since you opened the page.{is_now} To replace the saved value with your value, save again."


def _in_words(field: forms.Field, value: Any) -> str:
    """Return the value as the page shows it; empty if the value is too long or has no short form."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value in (None, "", []):
        return "empty"
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not all(isinstance(one, str | int | float) for one in values):
        return ""
    labels = labels_of(field, values)
    text = ", ".join(str(labels.get(str(one), one)) for one in values)
    return text if len(text) <= _LONGEST_SHOWN else ""


def without_shown(data: QueryDict) -> QueryDict:
    """Return submitted values without the digests, for a form that saves nothing, such as the form of a preview."""
    copied = data.copy()
    copied.pop(INPUT, None)
    return copied
