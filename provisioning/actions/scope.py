"""Evaluates the scope of an action: an expression over the user's document that is true or false. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foundation.expressions.language import ExpressionFailed, compile_expression
from provisioning.runs.failures import DataFailure

OUTSIDE = "outside the scope"


def is_in_scope(document: Mapping[str, Any], scope: str) -> bool:
    """Tell whether the user is in the scope; an empty scope includes all users.

    A missing value is treated as false. Any other value that is not a boolean raises `DataFailure`, because the string "false" must neither
    include nor exclude a user.
    """
    if not scope:
        return True
    try:
        value = compile_expression(scope)(document)
    except ExpressionFailed as error:
        raise DataFailure(f"the scope cannot be evaluated for this user: {error}") from error
    if value is not None and not isinstance(value, bool):
        raise DataFailure("the scope is neither true nor false for this user")
    return value is True
