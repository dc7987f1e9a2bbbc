"""Forms whose rules are those of a service: what the service refuses becomes an error of the field it concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from identity.admin.refusals import add_to_form

if TYPE_CHECKING:

    class _ModelForm(forms.ModelForm[Any]):
        """What the type checker sees."""
else:
    _ModelForm = forms.ModelForm


class ServiceForm(_ModelForm):
    """Checks single fields only. Uniqueness and the rest are decided by the service, on locked rows.

    `refusal` is what the service answered to exactly this input; the admin sets it on a subclass made for one request.
    """

    refusal: ClassVar[Exception | None] = None

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # Django's own hook for rules beyond the fields
        if self.refusal is not None:
            add_to_form(self, self.refusal)

    def _get_validation_exclusions(self) -> set[str]:
        # The rules of the model are checked once, by the service, and so are its constraints.
        return {field.name for field in self.instance._meta.fields}

    def validate_unique(self) -> None:
        """Leave it to the service and the database."""

    def changes(self, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the new values of the fields that somebody changed."""
        return {name: self.cleaned_data[name] for name in self.changed_data if name in self.cleaned_data and name not in without}
