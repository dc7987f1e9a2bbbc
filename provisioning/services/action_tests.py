"""The mapping preview of an action, for the interface and the admin alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from identity.services.failures import Invalid
from provisioning.failures import DataFailure
from provisioning.mapping import MappingFailed, MappingRefused, Operation, parse_table
from provisioning.mapping_preview import Preview, document_of_user, preview
from provisioning.scim_sessions import require_scim, set_up_of
from provisioning.services.actions import mapping_problems
from provisioning.setups import Setup

_AS_SET_UP: Any = object()


def mapping_preview(
    setup: Setup, *, user_id: str, operation: Operation, mapping: Any = _AS_SET_UP, enterprise: bool | None = None
) -> Preview:
    """Return exactly what would be sent for a user, with the table of the action or with one that is not saved yet.

    Raises `NotFound`, `NotSupported`, `Misconfigured`, `Invalid` for a table that cannot be used, or where it or the scope does
    not fit this user.
    """
    require_scim(setup)
    options, table = set_up_of(setup)
    if enterprise is not None:
        options = replace(options, enterprise=enterprise)
    try:
        if mapping is not _AS_SET_UP or enterprise is not None:
            table = parse_table(setup.mapping if mapping is _AS_SET_UP else mapping, enterprise=options.enterprise)
        return preview(document_of_user(tenant_id=setup.tenant_id, user_id=user_id), table, options, operation)
    except MappingRefused as error:
        raise Invalid(mapping_problems(error)) from error
    except DataFailure as error:
        raise Invalid({"options": [str(error)]}) from error
    except MappingFailed as error:
        raise Invalid({"mapping": [str(error)]}) from error
