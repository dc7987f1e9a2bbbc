"""Every test module of the plans has a test with its name in this folder, or a reason for its absence."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.openid.plans import BANK_PLANS, PLANS, ids, name_of_test
from tests.conformance.openid.unwritten import UNWRITTEN

_MODULES = {plan: {module for modules in variants.values() for module in modules} for plan, variants in PLANS.items()}
_MODULES |= {plan: {module for modules in variants.values() for module in modules} for plan, variants in BANK_PLANS.items()}


@cache
def written() -> frozenset[str]:
    """Return the names of the tests in this folder that have the name of a module."""
    trees = [ast.parse(file.read_text()) for file in Path(__file__).parent.glob("test_*.py")]
    functions = [node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    named = [name for name in functions if name.startswith(("test_oidcc_", "test_fapi"))]
    assert len(named) == len(set(named)), "two tests have the name of the same module"
    return frozenset(named)


@pytest.mark.parametrize("plan", _MODULES)
def test_each_module_of_a_plan_has_a_test_or_a_reason(plan: str) -> None:
    assert _MODULES[plan]
    assert {module for module in _MODULES[plan] if name_of_test(module) not in written()} - UNWRITTEN.keys() == set()


def test_exactly_the_modules_without_a_reason_for_absence_have_a_test() -> None:
    assert written() == {name_of_test(module) for module in ids() - UNWRITTEN.keys()}
    assert UNWRITTEN.keys() <= ids()
    assert all(reason.endswith(".") for reason in UNWRITTEN.values())
