"""Whom an action is about: its scope, an expression over the user's document that is true or false. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioning.mapping.expressions import ExpressionFailed, compile_expression
from provisioning.runs.failures import DataFailure

OUTSIDE = "outside the scope"


def is_in_scope(document: Mapping[str, Any], scope: str) -> bool:
    """Tell whether the action is about this user; an empty scope is about everybody.

    What is not there counts as false. Anything else that is no boolean raises `DataFailure`: the text "false" must neither
    open an account nor leave one alone.
    """
    if not scope:
        return True
    try:
        value = compile_expression(scope)(document)
    except ExpressionFailed as error:
        raise DataFailure(f"the scope has no answer for this user: {error}") from error
    if value is not None and not isinstance(value, bool):
        raise DataFailure("the scope is neither true nor false for this user")
    return value is True
