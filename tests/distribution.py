"""A pytest plugin that distributes the tests to the workers of `-n`: tests with a shared start stay together, and long tests come first.

Without the plugin, xdist distributes files, starting with the files that have the most tests. Every file of a folder would then start
the folder's servers again. The few tests that take a minute each would run last, while other workers are idle.
"""

from __future__ import annotations

from collections import Counter

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

# All tests of these folders use the services of one `make up`, so one worker runs all tests of a folder.
_TOGETHER = ("tests/journeys",)
# Each test in these folders runs once per server, as `test_name[server]` or `test_name[server-more]`.
_PER_SERVER = ("tests/conformance", "tests/peers/accounts")
# The longest tests. Two tests that start a whole service are not adjacent, so that they do not slow each other down.
_FIRST = (
    "tests/journeys",
    "tests/identity/test_deletions.py",
    "tests/config/console/test_admin_lists.py",
    "tests/config/test_openapi_conformance.py",
    "tests/config/launcher/test_make_up.py",
    "tests/config/test_seed_demo.py",
    "tests/events/commands/test_tail.py",
    "tests/conformance/test_over_a_url.py",
    "tests/config/console/test_admin_two_tenants.py",
    "tests/config/server/test_unfinished_bodies.py",
    "tests/provisioning/synchronization/test_commands.py",
    "tests/events/test_state_machine.py",
    "tests/events/test_relation_machine.py",
    "tests/authapi/client_auth/test_assertion_replay.py",
    "tests/conformance/test_two_processes.py",
    "tests/conformance/test_slow_readers.py",
    "tests/config/test_two_tenants.py",
    "tests/provisioning/trials/test_peculiar_patches.py",
    "tests/config/launcher/test_scim_server.py",
    "tests/config/launcher/test_peers.py",
    "tests/config/manual/test_pages.py",
    "tests/config/console/dashboard/test_figures_and_charts.py",
    "tests/identity/test_tenant_deletion.py",
    "tests/peers/test_admin_console.py",
    "tests/peers/test_sign_in_timing.py",
    "tests/peers/test_scim_deliveries.py",
    "tests/peers/test_deploy_tools.py",
)


class SharedStarts(LoadFileScheduling):  # type: ignore[misc]  # xdist declares no types
    """Distributes units instead of files."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """Return the unit that one worker runs as a whole: a file, a folder, or the tests of one server in a folder."""
    file, _, name = nodeid.partition("::")
    folder = file.rpartition("/")[0]
    if folder in _TOGETHER:
        return folder
    _, is_parametrised, parameters = name.partition("[")
    if folder in _PER_SERVER and is_parametrised:
        return f"{folder}[{parameters.rstrip(']').partition('-')[0]}]"
    return file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """Replace the scheduler of xdist."""
    return SharedStarts(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort a worker's tests into the order of distribution. Every worker computes the same order."""
    if not hasattr(config, "workerinput"):
        return
    units = {item: unit_of(item.nodeid) for item in items}
    sizes = Counter(units.values())
    ranks = {unit: rank for rank, unit in enumerate(_FIRST)}
    items.sort(key=lambda item: (ranks.get(units[item], len(ranks)), -sizes[units[item]], units[item]))
