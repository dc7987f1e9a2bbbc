"""Acts of staff on many rows at once, registered by name, so that the page and the worker run the same act.

An app registers the acts on its rows in its `row_acts`. Every act calls the service that also handles a single row.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

from django.db import models

from identity.audit.entries import image_of, record
from identity.audit.row_audit import watched
from identity.models import Job, Staff
from identity.purging import path_to_tenant

DELETE = "delete"


@dataclass(frozen=True)
class BulkAct:
    """One act. `do` calls the service with a row, and returns a job if the service has started a job.

    `label` is the name of the act in lists and in the audit log; `done` describes rows after the act.
    """

    name: str
    model: type[models.Model]
    label: str
    done: str
    permission: str
    do: Callable[[Any], object]
    for_operators_only: bool = False

    @property
    def key(self) -> str:
        """The key under which a job stores the act."""
        return f"{self.model._meta.label_lower}:{self.name}"

    @property
    def tenant_path(self) -> str:
        """The lookup from a row to the id of its tenant."""
        path = path_to_tenant(self.model)
        if path is None:
            raise LookupError(f"{self.model._meta.label} has no path to a tenant.")
        return path

    def rows_of(self, tenant_id: str) -> models.QuerySet[Any]:
        """Return the tenant's rows of this kind."""
        return models.QuerySet(self.model).filter(**{self.tenant_path: tenant_id})

    def is_allowed(self, staff: Staff | None, tenant_id: str) -> bool:
        """Tell whether the account may do the act on rows of the tenant now."""
        if staff is None or staff.tenant_id not in (None, tenant_id):
            return False
        return staff.has_perm(self.permission) and (staff.is_platform_operator or not self.for_operators_only)


_acts: dict[str, BulkAct] = {}


def register(act: BulkAct) -> BulkAct:
    """Register the act for workers, and return it."""
    _acts[act.key] = act
    return act


def deletion_of_rows(model: type[models.Model], delete: Callable[[Any], Job | None], *, for_operators_only: bool = False) -> BulkAct:
    """Register the deletion of rows of `model`."""
    options = model._meta
    return register(
        BulkAct(
            name=DELETE,
            model=model,
            label=f"Delete selected {options.verbose_name_plural}",
            done="deleted",
            permission=f"{options.app_label}.delete_{options.model_name}",
            do=delete,
            for_operators_only=for_operators_only,
        )
    )


def act_named(key: str) -> BulkAct | None:
    """Return the act with this key, or None if the service no longer has the act."""
    return _acts.get(key)


def deletion_act(model: type[models.Model]) -> BulkAct:
    """Return the act that deletes rows of `model`."""
    return _acts[f"{model._meta.label_lower}:{DELETE}"]


def acted_models() -> set[type[models.Model]]:
    """Return the models that have acts."""
    return {act.model for act in _acts.values()}


def act_on(act: BulkAct, row: models.Model) -> Job | None:
    """Do the act on one row, inside the caller's transaction. Writes an audit entry unless the signals of the model write one.

    Returns the job that continues the act, if there is one. Raises the refusals of the service.
    """
    if act.model in watched():
        outcome = act.do(row)
    else:
        # The audit entry needs the key, which a deleted row no longer has.
        noted, before = copy(row), image_of(row)
        outcome = act.do(row)
        record(act.label, about=noted, before=before, after=image_of(noted))
    return outcome if isinstance(outcome, Job) else None
