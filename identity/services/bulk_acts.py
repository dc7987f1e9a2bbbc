"""What staff may do to many rows at once, each act by its name: the page that asks and the worker that goes on mean the same.

An app registers the acts on its rows in its `row_acts`. Every act goes through the service that a single row goes through.
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
    """One act: `do` calls the service with a row; where that leaves a job behind, it returns it.

    `label` is what lists and the audit log call it, `done` the word for rows it was done to.
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
        """The name under which a job keeps it."""
        return f"{self.model._meta.label_lower}:{self.name}"

    @property
    def tenant_path(self) -> str:
        """The lookup from a row to the id of its tenant."""
        path = path_to_tenant(self.model)
        if path is None:
            raise LookupError(f"{self.model._meta.label} leads to no tenant.")
        return path

    def rows_of(self, tenant_id: str) -> models.QuerySet[Any]:
        """Return the tenant's rows of this kind."""
        return models.QuerySet(self.model).filter(**{self.tenant_path: tenant_id})

    def is_allowed(self, staff: Staff | None, tenant_id: str) -> bool:
        """Tell whether the account may do it to rows of the tenant now."""
        if staff is None or staff.tenant_id not in (None, tenant_id):
            return False
        return staff.has_perm(self.permission) and (staff.is_platform_operator or not self.for_operators_only)


_acts: dict[str, BulkAct] = {}


def register(act: BulkAct) -> BulkAct:
    """Make the act known to workers, and return it."""
    _acts[act.key] = act
    return act


def deletion_of_rows(model: type[models.Model], delete: Callable[[Any], Job | None], *, for_operators_only: bool = False) -> BulkAct:
    """Register how a row of `model` is deleted."""
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
    """Return the act that a job names; None for one that is gone since."""
    return _acts.get(key)


def deletion_act(model: type[models.Model]) -> BulkAct:
    """Return the act that deletes rows of `model`."""
    return _acts[f"{model._meta.label_lower}:{DELETE}"]


def acted_models() -> set[type[models.Model]]:
    """Return the kinds of rows that there are acts on."""
    return {act.model for act in _acts.values()}


def act_on(act: BulkAct, row: models.Model) -> Job | None:
    """Do the act to one row, inside the caller's transaction, and note it where such rows do not tell of their changes themselves.

    Return the job that goes on with it, if there is one. Raises what the service refuses.
    """
    if act.model in watched():
        outcome = act.do(row)
    else:
        # The note needs the key, which a deleted row no longer has.
        noted, before = copy(row), image_of(row)
        outcome = act.do(row)
        record(act.label, about=noted, before=before, after=image_of(noted))
    return outcome if isinstance(outcome, Job) else None
