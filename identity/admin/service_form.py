"""Forms whose values a service checks. If the service refuses a value, the refusal becomes an error of the form's field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from foundation.admin.shown_values import ShowsValues
from identity.admin.refusals import add_to_form

if TYPE_CHECKING:

    class _ModelForm(forms.ModelForm[Any]):
        """The base class for the type checker."""
else:
    _ModelForm = forms.ModelForm


class ServiceForm(ShowsValues, _ModelForm):
    """Checks single fields only. The service checks uniqueness and other rules on locked rows.

    `refusal` is the service's refusal of the submitted values. The admin sets it on a subclass made for one request.
    """

    refusal: ClassVar[Exception | None] = None

    def _post_clean(self) -> None:
        super()._post_clean()
        if self.refusal is not None:
            add_to_form(self, self.refusal)

    def _get_validation_exclusions(self) -> set[str]:
        # The service checks the rules and constraints of the model.
        return {field.name for field in self.instance._meta.fields}

    def validate_unique(self) -> None:
        """Do nothing: the service and the database check uniqueness."""

    def changes(self, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the new values of the changed fields."""
        return {name: self.cleaned_data[name] for name in self.changed_data if name in self.cleaned_data and name not in without}
