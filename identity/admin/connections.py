"""Admin pages of connections."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.http import urlencode

from foundation.admin.badges import badge
from foundation.admin.json_fields import pretty
from foundation.admin.line_fields import LinesField
from foundation.admin.list_filters import RecentValuesFilter
from foundation.admin.pair_fields import PairsField
from foundation.admin.secret_rows import SecretRowsField, has_entries
from foundation.admin.value_fields import HOW_TO_ENTER
from identity.admin.connection_options import (
    field_name,
    form_fields,
    guide_of,
    missing_fields,
    other_options,
    put_together,
    replaced_secrets,
    sealed_path,
    sends_json,
    strategy_in_words,
    typed_secrets,
    unused_map,
    with_entered_objects,
    with_secrets,
)
from identity.admin.deletions import DeletedInPartsAdmin
from identity.admin.row_pages import RowPagesAdmin
from identity.admin.service_form import ServiceForm
from identity.admin.sources.activity_field import ActivityField
from identity.admin.sources.other_options import OptionsField
from identity.admin.sources.shown_options import label_of_activity, shown_activity_of, shown_option, shown_others
from identity.admin.sources.tabs import METADATA, ORGANIZATIONS, USERS, ConnectionTabs
from identity.hosts import address_beside
from identity.models import Connection
from identity.models.connections import known_strategies
from identity.options.guide_fields import Guide
from identity.options.guides import CALLBACK_PATH, GUIDES
from identity.options.own_guides import DATABASE
from identity.options.schemas.nodes import Members, is_kept, split
from identity.options.stored_guides import STORED_GUIDES
from identity.services import connections

_ACTIVITIES = ("authentication", "connected_accounts")
_MORE = ["realms", "enabled_clients", "is_domain_connection", "show_as_button", *_ACTIVITIES, "metadata"]
# Accounts that may not change the connection see the activities as read-only lines.
_SHOWN: dict[str, Any] = {name: shown_activity_of(name) for name in _ACTIVITIES}
# The maximum number of metadata pairs, as in the management interface.
_METADATA_PAIRS = 10
_STORED_ONLY = "This service stores the value and sends it in events. The logins of this service do not use it."


def strategy_choices() -> list[tuple[str, str]]:
    return [(name, strategy_in_words(name)) for name in known_strategies()]


class ButtonChoice(forms.NullBooleanSelect):
    """A choice between "yes", "no" and "not set"."""

    def __init__(self) -> None:
        super().__init__()
        self.choices = [("unknown", "Not set"), ("true", "Yes"), ("false", "No")]


class ConnectionForm(ServiceForm):
    """The form of a connection. For a strategy with a guide, the form has a field for each option in the guide; other options are rows."""

    # Set on subclasses for one strategy.
    guide: ClassVar[Guide | None] = None

    strategy = forms.ChoiceField(choices=strategy_choices, help_text="How the users log in. Cannot be changed later.")
    options = OptionsField(
        label="Options",
        help_text=f"Options without a field of their own. Secrets, and options that this service does not know, are "
        f"encrypted. {HOW_TO_ENTER}",
    )
    more_secrets = SecretRowsField(
        label="Secrets", has_objects=True, help_text="Secret options without a field of their own. Encrypted and never shown again."
    )
    realms = LinesField(
        label="Realms",
        help_text="Further names with which clients can request this connection, in the parameters “connection” and “realm”. One name per "
        "line. If empty, only the name of the connection works.",
    )
    enabled_clients = LinesField(label="Applications", help_text="Client ids of the applications that use the connection, one per line.")
    is_domain_connection = forms.BooleanField(
        required=False,
        label="For applications that register themselves",
        help_text="Self-registered applications can use this connection, although they are not listed under Applications.",
    )
    show_as_button = forms.NullBooleanField(
        required=False,
        label="Button on the login page",
        widget=ButtonChoice(),
        help_text="Not set: only social providers have a button. Users of other connections enter their email address, and its domain "
        "selects the connection.",
    )
    metadata = PairsField(
        most=_METADATA_PAIRS, label="Metadata", help_text="Your own notes, at most ten pairs. To remove a pair, empty its row."
    )
    authentication = ActivityField(
        label=label_of_activity("authentication"), help_text=f"Says whether other programs use the connection for logins. {_STORED_ONLY}"
    )
    connected_accounts = ActivityField(
        label=label_of_activity("connected_accounts"),
        help_text="For connections of a provider. Says whether other programs let users connect the accounts that they have at"
        f" this provider. {_STORED_ONLY}",
    )

    class Meta:
        model = Connection
        fields = ()  # The admin class defines in its fieldsets which fields are shown.
        help_texts = {
            "name": "Applications request the connection by this name. Cannot be changed later, because user ids can contain the name.",
            "display_name": "The name on the button of the login page. Empty: the name of the provider or of the connection.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["options"] = other_options(self.guide, self.instance)
        if "options" in self.fields:
            self.fields["options"].schema = self._schema  # type: ignore[attr-defined]  # options
        for name in _ACTIVITIES:
            if name in self.fields:
                self.fields[name].name_stored(getattr(self.instance, name))  # type: ignore[attr-defined]  # activity
        if "more_secrets" in self.fields:
            own = {sealed_path(option) for option in self.guide.fields} if self.guide else set()
            self.fields["more_secrets"].name_stored([path for path in self.instance.sealed_options if path not in own])  # type: ignore[attr-defined]  # rows

    @property
    def _schema(self) -> Members:
        """The schema of the options. For a new connection, the submitted form contains the strategy."""
        return Connection(strategy=self.instance.strategy or self.data.get("strategy", "")).option_schema

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        self._own_options = cleaned.get("options") or {}
        if "options" in self.errors or "more_secrets" in self.errors:
            return cleaned
        cleaned["options"] = with_secrets(self._own_options, cleaned.get("more_secrets") or {}, self.instance.sealed_options, self._schema)
        if self.guide is None:
            return cleaned
        cleaned["options"] = put_together(self.guide, cleaned, self.instance)
        for name in missing_fields(self.guide, cleaned["options"], self.instance):
            self.add_error(name, "Enter a value. Users cannot log in without it.")
        for name in replaced_secrets(self.guide, cleaned, self.instance):
            self.add_error(name, "Enter this value again. It is part of the same secret as the value that you changed.")
        if unused := unused_map(cleaned, self.changed_data):
            self.add_error(*unused)
        return cleaned

    def changes(self, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the new values of the changed fields. Option fields change `options`."""
        own = {"more_secrets", *(field_name(option) for option in (self.guide.fields if self.guide else ()))}
        found = super().changes(without=(*without, *own))
        if own & set(self.changed_data) and "options" in self.cleaned_data:
            found["options"] = self.cleaned_data["options"]
        return found

    def _post_clean(self) -> None:
        super()._post_clean()
        if self.guide is not None:
            self._name_fields(self.guide)
        if self.errors:
            self._forget_secrets(getattr(self, "_own_options", {}), self.cleaned_data.get("more_secrets") or {})

    def _name_fields(self, guide: Guide) -> None:
        """Show an error of the service at the field of the option that the error names."""
        for text in map(str, self.errors.pop("options", ())):
            option = next((one for one in guide.fields if re.match(rf"(Missing required property )?{re.escape(one.name)}\b", text)), None)
            self.add_error(field_name(option) if option else "options", text)

    def _forget_secrets(self, options: dict[str, Any], more: dict[str, Any]) -> None:
        """Remove entered secrets from a refused form, so that they are not sent back."""
        parts = split(self._schema, options)
        if parts.secrets:
            self.data = {**dict(self.data.items()), self.add_prefix("options"): pretty(parts.shown)}
        if names := {*parts.secrets, *(name for name, value in more.items() if value is not None)}:
            self.add_error(None, f"Pages do not show secrets. Enter these again: {', '.join(sorted(names))}.")


# Strategies with a form. The strategies through which users can log in come first.
_FORMS = {**GUIDES, **STORED_GUIDES}


def _strategy_of(request: HttpRequest, row: Connection | None) -> str:
    """Return the strategy: of the existing row, or of the submitted new row, or from the link that opened the form."""
    if row is not None and row.strategy:
        return row.strategy
    return request.POST.get("strategy") or request.GET.get("strategy", "")


def _folded(title: str, fields: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    return (title, {"fields": fields, "classes": ["collapse"]})


def _touches_a_secret(row: Connection, data: Any) -> bool:
    """Tell whether a submitted form sets or removes a sealed member of the connection."""
    if has_entries(data, "more_secrets"):
        return True
    field = OptionsField()
    field.schema = row.option_schema
    try:
        sent = field.to_python(field.widget.value_from_datadict(data, {}, "options"))
    except ValidationError:
        # The form refuses invalid values, so nothing is saved.
        return False
    named = split(row.option_schema, sent).secrets
    if named or _holds_null(sent):
        return True
    guide = guide_of(row.strategy)
    if guide and sends_json(guide, data):
        return True
    whole = with_entered_objects(guide, sent, data) if guide else sent
    return not all(is_kept(path, shown=row.shown_options, sent=whole) for path in row.sealed_options)


def _holds_null(value: object) -> bool:
    return value is None or (isinstance(value, dict) and any(_holds_null(inner) for inner in value.values()))


class StrategyFilter(RecentValuesFilter):
    """A filter by strategy that shows the names of strategies."""

    def choices(self, changelist: Any) -> Any:
        return ({**choice, "display": strategy_in_words(str(choice["display"]))} for choice in super().choices(changelist))


class ConnectionAdmin(RowPagesAdmin[Connection], DeletedInPartsAdmin[Connection]):
    form = ConnectionForm
    grows = False
    list_display = ("name", "source", "display_name", "id", "created_at", "tenant")
    list_filter = (("strategy", StrategyFilter), "created_at")
    list_select_related = ("tenant",)
    sortable_by = ("name", "created_at")
    search_fields = ("name", "display_name", "id__exact")
    empty_text = "No connections yet. Each user belongs to a connection. Add a database connection for users with a password."
    deletion_effect = "All users of the connection are deleted first, with one event for each user. This can take a while."

    change_form_template = "admin/connection_form.html"
    first_tab = "Settings"
    id_field = "id"
    # The name of the provider page. The app of logins adds this page.
    primary_action = "provider"
    # Applies the saved attribute map to the newest claims of the connection. The app of logins sets this function.
    preview_of: Callable[[Connection], Mapping[str, Any] | None] | None = None

    def __init__(self, model: type[Connection], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        own = ConnectionTabs(admin_site)
        self.tabs = {USERS: [own.users], ORGANIZATIONS: [own.organizations], METADATA: [own.metadata]}

    @admin.display(description="Strategy")
    def source(self, row: Connection) -> str:
        return strategy_in_words(row.strategy)

    def badge_of(self, row: Connection) -> str:
        return super().badge_of(row) or (badge("Enabled", "good") if row.enabled_clients else badge("No applications", "warn"))

    def get_form(self, request: HttpRequest, obj: Connection | None = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        guide = guide_of(_strategy_of(request, obj))
        if guide is not None:
            shown = {name: None for name in self.get_readonly_fields(request, obj) if name in ConnectionForm.base_fields}
            named = {**form_fields(guide, obj), **shown, "guide": guide}
            kwargs["form"] = type("GuidedConnectionForm", (ConnectionForm,), named)
        return super().get_form(request, obj, change=change, **kwargs)

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        row = context.get("original")
        strategy = _strategy_of(request, row)
        context["guide"] = guide_of(strategy)
        if context["guide"]:
            context["callback"] = self._callback(request, context["guide"], row)
        if row is None:
            named = {settings.DATABASE_STRATEGY if name == DATABASE else name: guide.label for name, guide in _FORMS.items()}
            context["guides"] = [(name, label, name == strategy) for name, label in named.items()]
        response = super().render_change_form(request, context, *args, **kwargs)
        if row is not None and response.context_data["is_form_shown"]:
            response.context_data["mapped"] = self._mapped(context["guide"], row)
        return response

    def _mapped(self, guide: Guide | None, row: Connection) -> Mapping[str, Any] | None:
        has_map = guide is not None and any(option.kind == "claims" for option in guide.fields)
        return self.preview_of(row) if has_map and self.preview_of is not None else None

    def _callback(self, request: HttpRequest, guide: Guide, row: Connection | None) -> str:
        """Return the callback URL to enter at the provider.

        Empty if there is no such URL, or if the URL needs the name of a row that is not saved yet.
        """
        if not guide.callback or (guide.callback == "named" and row is None):
            return ""
        tenant = row.tenant_id if row else self.tenant_for_new(request)
        name = f"?{urlencode({'connection': row.name})}" if row and guide.callback == "named" else ""
        return f"{address_beside(request.get_host(), tenant)}/{CALLBACK_PATH}{name}"

    def get_fieldsets(self, request: HttpRequest, obj: Connection | None = None) -> Any:
        guide = guide_of(_strategy_of(request, obj))
        may_change = obj is None or self.has_change_permission(request, obj)
        others = ["options", "more_secrets"] if may_change else [shown_others(guide), "secrets"]
        first = ["name", "strategy" if obj is None else "source", "display_name"]
        if obj is not None and not self.is_bound(request):
            first.append("tenant")
        # Users of a database connection log in with the form of the login page, so such a connection has no button.
        offered = [name for name in _MORE if name != "show_as_button" or _strategy_of(request, obj) != settings.DATABASE_STRATEGY]
        more = offered if may_change else [_SHOWN.get(name, name) for name in offered]
        dated = [] if obj is None else ["created_at", "updated_at"]
        fields = self._guided(guide, may_change=may_change) if guide else [("Options", {"fields": others})]
        if guide:
            fields.append(_folded("Other options", others))
        return [(None, {"fields": first}), *fields, _folded("More", [*more, *dated])]

    def _guided(self, guide: Guide, *, may_change: bool) -> list[Any]:
        """Return the sections with the fields of a strategy. Without the permission to change, the sections have read-only values."""
        named = {option.name: field_name(option) if may_change else shown_option(option) for option in guide.fields}
        usual = [named[option.name] for option in guide.fields if not option.is_further]
        further = [named[option.name] for option in guide.fields if option.is_further]
        return [(guide.label, {"fields": usual}), *([_folded("Advanced", further)] if further else [])]

    def wants_proof(self, request: HttpRequest, object_id: str | None) -> bool:
        """Require a proof if a secret option is entered or removed."""
        if super().wants_proof(request, object_id):
            return True
        if request.method != "POST" or not self.has_change_permission(request):
            return False
        row = None if object_id is None else self.get_object(request, unquote(object_id))
        guide = guide_of(_strategy_of(request, row))
        if guide is not None and typed_secrets(guide, request.POST):
            return True
        return _touches_a_secret(row or Connection(strategy=request.POST.get("strategy", "")), request.POST)

    def get_readonly_fields(self, request: HttpRequest, obj: Connection | None = None) -> Any:
        own = ("id", "secrets", "created_at", "updated_at")
        return own if obj is None else (*own, "name", "strategy", "source", "tenant")

    @admin.display(description="Secret options")
    def secrets(self, row: Connection) -> str:
        return f"Set: {', '.join(sorted(row.sealed_options))}." if row.sealed_options else "Not set."

    def create(self, request: HttpRequest, form: Any) -> Connection:
        names = {"name", "strategy", "options", *connections.EDITABLE}
        values = {name: value for name, value in form.cleaned_data.items() if name in names and value not in (None, "", {}, [])}
        return connections.create_connection(tenant_id=self.tenant_for_new(request), **values)

    def change(self, request: HttpRequest, row: Connection, form: Any) -> None:
        changes = form.changes()
        if changes:
            connections.update_connection(tenant_id=row.tenant_id, connection_id=row.pk, changes=changes)
