"""Warnings about an action. They do not prevent saving; the admin and the management interface show them."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings

from provisioning.actions.secrets import open_sealed
from provisioning.actions.setups import draft_setup
from provisioning.mapping.review import undescribed
from provisioning.mapping.table import MappingRefused, parse_table
from provisioning.models.actions import SCIM_USER_PROVISIONING, Action
from provisioning.runs.failures import Misconfigured
from provisioning.scim.settings import MAX_RETRIES, TIMEOUT_MS, SecretRefused, budget_warning, parse_max_retries, parse_timeout_ms


def budget_warning_of(action: Action) -> str:
    """Return a sentence if a run of the draft may exceed its budget, otherwise ""; raise `Misconfigured` if a number cannot be read."""
    if action.template != SCIM_USER_PROVISIONING:
        return ""
    setup = draft_setup(action)
    # Decrypt only the numbers, because this function runs for each action of a list.
    numbers = open_sealed(replace(setup, sealed={name: setup.sealed[name] for name in (TIMEOUT_MS, MAX_RETRIES) if name in setup.sealed}))
    try:
        timeout_ms, max_retries = parse_timeout_ms(numbers.get(TIMEOUT_MS, "")), parse_max_retries(numbers.get(MAX_RETRIES, ""))
    except SecretRefused as error:
        raise Misconfigured(str(error)) from error
    return budget_warning(timeout_ms, max_retries, budget_ms=round(settings.DELIVERY_BUDGET_SECONDS * 1000))


def warnings_of(action: Action) -> list[str]:
    """Return warnings about the draft: a run that may exceed its budget, attributes outside the schemas, and secrets that cannot be
    decrypted."""
    if action.template != SCIM_USER_PROVISIONING:
        return []
    try:
        budget = budget_warning_of(action)
    except Misconfigured as error:
        budget = f"{error}."
    try:
        rows = undescribed(parse_table(action.mapping))
    except MappingRefused as error:
        rows = [str(error)]
    return [budget, *rows] if budget else rows
