"""Creates, changes, deploys and deletes actions, and sets their secrets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone

from events.models import EventStream
from foundation.database.transactions import lock_name, unit_of_work
from identity.services.failures import Conflict, Invalid, NotFound
from identity.services.saving import validated_save
from provisioning.actions.registry import EntryPointRefused, entry_point
from provisioning.actions.secrets import seal_secret, takes_token_elsewhere
from provisioning.mapping.review import check_sendable
from provisioning.mapping.table import MappingRefused, parse_table
from provisioning.models.actions import SCIM_USER_PROVISIONING, Action, ActionSecret, ActionVersion
from provisioning.scim.options import OptionsRefused, parse_options
from provisioning.scim.settings import (
    BASE_URL,
    BEARER_TOKEN,
    REQUIRED,
    SecretRefused,
    check_secret,
)
from provisioning.services import action_versions

MAX_ACTIONS = 100
MAX_SECRETS = 30
MAX_SECRET_CHARACTERS = 4096
TOKEN_NEEDED = (
    f"{BASE_URL} names another server than before, so enter {BEARER_TOKEN} as well: a stored token is never sent to a new address."
)
_EDITABLE = ("name", "options", "mapping")


class ActionInUse(Conflict):
    """A stream is bound to the action."""


@unit_of_work
def create_action(
    *,
    tenant_id: str,
    name: str,
    template: str = "",
    entry_point_path: str = "",
    options: Mapping[str, Any] | None = None,
    mapping: list[dict[str, Any]] | None = None,
    secrets: Mapping[str, str] | None = None,
    deploy: bool = False,
) -> Action:
    """Create an action from a template or an installed entry point; raise `Invalid`, `AlreadyExists`, or `Conflict` if the tenant has too
    many actions."""
    if bool(template) == bool(entry_point_path):
        raise Invalid({"template": ["Name either a template or an entry point."]})
    _check_entry_point(template, entry_point_path)
    action = Action(
        tenant_id=tenant_id,
        name=name,
        template=template,
        entry_point=entry_point_path,
        options=dict(options or {}),
        mapping=mapping,
        built_at=timezone.now(),
    )
    _check_set_up(action, is_mapping_new=True)
    lock_name(f"actions of {tenant_id}")
    if Action.objects.of(tenant_id).count() >= MAX_ACTIONS:
        raise Conflict(f"A tenant has at most {MAX_ACTIONS} actions.")
    validated_save(action)
    _set_secrets(action, secrets or {})
    if deploy:
        _deploy(action, action_versions.contents_of_draft(action))
    return action


@unit_of_work
def update_action(
    *,
    tenant_id: str,
    action_id: Any,
    changes: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str | None] | None = None,
    only_secrets: Collection[str] | None = None,
) -> Action:
    """Replace the given fields of the draft and set the given secrets. Deliveries continue with the deployed version.

    Other secrets are kept, unless `only_secrets` is given: then all secrets that it does not name are removed. Raises `Invalid` if
    `only_secrets` names a secret without a value, or if the base URL names another server and no new token is given.

    A new `name` takes effect immediately. `entry_point` can be changed if the action has an entry point; a template cannot be changed.
    """
    action = locked_action(tenant_id=tenant_id, action_id=action_id)
    fields = dict(changes or {})
    editable = _EDITABLE if action.template else (*_EDITABLE, "entry_point")
    unknown = {field: ["Unknown field."] for field in fields if field not in editable}
    if unknown:
        raise Invalid(unknown)
    for field, value in fields.items():
        setattr(action, field, value)
    if "entry_point" in fields:
        _check_entry_point(action.template, action.entry_point)
    _check_set_up(action, is_mapping_new="mapping" in fields)
    validated_save(action, fields=list(fields))
    if only_secrets is not None:
        action.secrets.exclude(name__in=only_secrets).delete()
    _set_secrets(action, secrets or {})
    if only_secrets is not None and (unset := sorted(set(only_secrets) - set(action.secrets.values_list("name", flat=True)))):
        raise Invalid({"secrets": [f"{unset[0]} has no value yet."]})
    return action


@unit_of_work
def set_secret(*, tenant_id: str, action_id: Any, name: str, value: str | None) -> None:
    """Set one secret, or remove it with None or an empty string; raise `Invalid` if the value is invalid or requires another new secret."""
    _set_secrets(locked_action(tenant_id=tenant_id, action_id=action_id), {name: value})


@unit_of_work
def deploy_action(*, tenant_id: str, action_id: Any) -> Action:
    """Deploy the draft as a new version, which workers use from their next turn on. Does nothing if the draft is already deployed.

    Raises `Invalid` with the names of required secrets without a value.
    """
    action = locked_action(tenant_id=tenant_id, action_id=action_id)
    if not action_versions.is_draft_deployed(action, deployed_version(action)):
        _deploy(action, action_versions.contents_of_draft(action))
    return action


@unit_of_work
def deploy_version(*, tenant_id: str, action_id: Any, version_id: Any, update_draft: bool = False) -> ActionVersion:
    """Deploy an earlier version again, as a new version; with `update_draft`, also copy it into the draft."""
    action = locked_action(tenant_id=tenant_id, action_id=action_id)
    earlier = version_of(action, version_id)
    try:
        _check_entry_point(earlier.template, earlier.entry_point)
    except Invalid as error:
        raise Conflict(f"Version {earlier.number} cannot be deployed: its entry point is no longer installed.") from error
    version = _deploy(action, action_versions.contents_of(earlier))
    if update_draft:
        action_versions.set_draft(action, version)
        validated_save(action, fields=["entry_point", "options", "mapping"])
    return version


def deployed_version(action: Action) -> ActionVersion | None:
    """Return the version that deliveries run."""
    return next((version for version in action.versions.all() if version.is_deployed), None)


def version_of(action: Action, version_id: Any) -> ActionVersion:
    """Return one version of the action; raise `NotFound`."""
    try:
        return ActionVersion.objects.select_related("action").get(pk=version_id, action=action)
    except (ActionVersion.DoesNotExist, ValidationError) as error:
        raise NotFound("The action has no such version.") from error


@unit_of_work
def delete_action(*, tenant_id: str, action_id: Any, force: bool = False) -> None:
    """Delete an action and its secrets; raise `ActionInUse` if a stream is bound to the action and `force` is not set."""
    action = locked_action(tenant_id=tenant_id, action_id=action_id)
    bound = EventStream.objects.of(tenant_id).filter(destination_type="action", destination__action_id=str(action.id))
    if not force and bound.exists():
        raise ActionInUse
    action.delete()


def mapping_problems(refused: MappingRefused) -> dict[str, list[str]]:
    """Return the problems of a mapping table by position, such as `mapping[2].source`; positions start at 0."""
    found: dict[str, list[str]] = {}
    for problem in refused.problems:
        row = "" if problem.index is None else f"[{problem.index}]"
        place = f"mapping{row}.{problem.field}" if problem.field else f"mapping{row}"
        found.setdefault(place, []).append(problem.text)
    return found


def locked_action(*, tenant_id: str, action_id: Any) -> Action:
    """Return the action with its row locked until the transaction ends; raise `NotFound`."""
    try:
        action = Action.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=action_id).first()
    except ValidationError as error:
        raise NotFound("The action does not exist.") from error
    if action is None:
        raise NotFound("The action does not exist.")
    return action


def _deploy(action: Action, contents: dict[str, Any]) -> ActionVersion:
    """Deploy the contents as a new version; raise `Invalid` with the names of required secrets without a value."""
    known = {secret["name"] for secret in contents["secrets"]}
    if contents["template"] == SCIM_USER_PROVISIONING and (missing := [name for name in REQUIRED if name not in known]):
        raise Invalid({"secrets": [f"{name} is required and has no value: the action cannot be deployed without it." for name in missing]})
    version = action_versions.add_version(action, contents)
    action.is_deployed = True
    action.built_at = timezone.now()
    # `updated_at` stays the time of the last change of the draft.
    action.save(update_fields=["is_deployed", "built_at"])
    return version


def _check_entry_point(template: str, path: str) -> None:
    try:
        entry_point(template=template, path=path)
    except EntryPointRefused as error:
        raise Invalid({"template" if template else "entry_point": [str(error)]}) from error


def _check_set_up(action: Action, *, is_mapping_new: bool) -> None:
    """Raise `Invalid` for invalid options or an invalid table. Only a changed table is also checked against the schema."""
    if action.template != SCIM_USER_PROVISIONING:
        return
    try:
        parse_options(action.options)
    except OptionsRefused as error:
        raise Invalid({"options": [str(error)]}) from error
    try:
        table = parse_table(action.mapping)
        if is_mapping_new:
            check_sendable(table)
    except MappingRefused as error:
        raise Invalid(mapping_problems(error)) from error


def _set_secrets(action: Action, secrets: Mapping[str, str | None]) -> None:
    entered = {name: _checked_secret(action, name, value) for name, value in secrets.items() if value not in (None, "")}
    if BASE_URL in entered and BEARER_TOKEN not in secrets:
        _check_address(action, entered[BASE_URL])
    for name, value in entered.items():
        seal_secret(action, name, value)
    action.secrets.filter(name__in=set(secrets) - set(entered)).delete()
    if secrets and action.secrets.count() > MAX_SECRETS:
        raise Invalid({"secrets": [f"An action has at most {MAX_SECRETS} secrets."]})


def _check_address(action: Action, base_url: str) -> None:
    """Require a new token if the base URL names another host, because the stored token was not issued for that server."""
    if takes_token_elsewhere(action, base_url):
        raise Invalid({"secrets": [TOKEN_NEEDED]})


def _checked_secret(action: Action, name: str, value: object) -> str:
    try:
        ActionSecret.NAME_VALIDATOR(name)
        if not isinstance(value, str):
            raise SecretRefused(f"{name} must be a text.")
        if len(value) > MAX_SECRET_CHARACTERS:
            raise SecretRefused(f"{name} has more than {MAX_SECRET_CHARACTERS} characters.")
        if action.template == SCIM_USER_PROVISIONING:
            check_secret(name, value, allow_http=settings.OUTBOUND_ALLOW_HTTP)
        return value
    except (ValidationError, SecretRefused) as error:
        text = error.messages[0] if isinstance(error, ValidationError) else str(error)
        raise Invalid({"secrets": [text]}) from error
