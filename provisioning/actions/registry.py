"""Finds the class that runs an action: the class of a template by the name of the template, an installed entry point by its path."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from provisioning.actions.event_stream.v1.objects import Api, Event
from provisioning.models.actions import SCIM_USER_PROVISIONING

TRIGGER = "event-stream"
TRIGGER_VERSION = "v1"
ENTRY_POINTS = ("onExecuteEventStream", "on_execute_event_stream")
PACKAGE = "provisioning.actions.event_stream.v1"

TEMPLATES = {SCIM_USER_PROVISIONING: f"{PACKAGE}.ScimUserProvisioning"}


class EntryPointRefused(ValueError):
    """The entry point is not an installed action."""


class EntryPoint(Protocol):
    """The function called for each event. A normal return means that the event was delivered; a `Result` adds details."""

    def __call__(self, event: Event, api: Api) -> Any: ...


def entry_point(*, template: str, path: str) -> EntryPoint:
    """Return the entry point of a template or of an installed class; raise `EntryPointRefused`.

    Only classes in `PACKAGE` are allowed, because a tenant must not run other code. This package contains the classes for
    one version of the trigger `event-stream`.
    """
    dotted = TEMPLATES.get(template, "") if template else path
    module_name, _, class_name = dotted.rpartition(".")
    if not (module_name == PACKAGE or module_name.startswith(f"{PACKAGE}.")) or not class_name.isidentifier():
        raise EntryPointRefused(f"{template or path!r} is neither a template nor a class under {PACKAGE}.")
    try:
        named = getattr(import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise EntryPointRefused(f"{dotted!r} is not installed.") from error
    # Compare the module that defines the class, because a class that the named module only imports is not an entry point.
    if not isinstance(named, type) or not f"{named.__module__}.".startswith(f"{PACKAGE}."):
        raise EntryPointRefused(f"{dotted!r} is not an action class.")
    for name in ENTRY_POINTS:
        if callable(getattr(named, name, None)):
            found: EntryPoint = getattr(named(), name)
            return found
    raise EntryPointRefused(f"{dotted!r} has no {ENTRY_POINTS[0]}.")
