"""Only classes of the package of action classes can be entry points."""

from __future__ import annotations

from importlib import import_module

import pytest

from provisioning.actions.registry import PACKAGE, EntryPointRefused, entry_point


class Foreign:
    """A class with an entry point, which a module of the package has imported."""

    async def on_execute_event_stream(self, event: object, api: object) -> None:
        """Do nothing."""


@pytest.mark.parametrize("module", [f"{PACKAGE}0.things", "tests.things"], ids=["name begins like the package", "other package"])
def test_a_class_that_the_package_only_imports_is_refused(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setattr(Foreign, "__module__", module)
    monkeypatch.setattr(import_module(PACKAGE), "Foreign", Foreign, raising=False)
    with pytest.raises(EntryPointRefused, match="is not an action class"):
        entry_point(template="", path=f"{PACKAGE}.Foreign")
