"""The dashboards in `deploy/grafana` use only existing metrics, labels and values of labels."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from authapi.logs.sign_in_types import IN_WORDS
from tests.test_alert_rules import HEADINGS

ROOT = Path(__file__).resolve().parents[1]
BOARDS: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "deploy/grafana").glob("*.json"))}
# The type and the labels of each metric, by the name of the metric.
FIGURES = {
    name: (kind, set(labels.split()))
    for name, kind, labels in re.findall(
        r"^\| `(\w+)` \| (\w+) \| `?([\w ]*?)`? \|", (ROOT / "docs/reference/metrics.md").read_text(), re.MULTILINE
    )
}
# Labels that Prometheus adds to every metric, and `le`, the label of the buckets of a histogram.
ADDED = {"instance", "job", "le"}
WORDS = {"max", "sum", "rate", "histogram_quantile", "topk", "by"}
PANELS = [(name, panel) for name, board in BOARDS.items() for panel in board["panels"] if panel["type"] != "row"]
TARGETS = [(f"{name}: {panel['title']}", target["expr"]) for name, panel in PANELS for target in panel["targets"]]

_SELECTED = re.compile(r"\b([a-z_]+)\{([^}]*)\}")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"([^\"]*)\"")
_GROUPS = re.compile(r"\bby \(([^)]*)\)")


def names_in(expression: str) -> set[str]:
    """Return the names of the metrics in an expression."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)", "", expression)
    return set(re.findall(r"\b[a-z][a-z_]+\b", bare)) - WORDS


def labels_in(expression: str) -> set[str]:
    """Return the labels that an expression selects or groups by."""
    matched = {label for _, matchers in _SELECTED.findall(expression) for label, _ in _MATCHER.findall(matchers)}
    return matched | {label.strip() for labels in _GROUPS.findall(expression) for label in labels.split(",")}


def test_there_is_a_dashboard_for_events_and_a_dashboard_for_requests() -> None:
    assert BOARDS.keys() == {"identity-edge", "identity-operators"}
    assert {name: board["uid"] for name, board in BOARDS.items()} == {name: name for name in BOARDS}


@pytest.mark.parametrize("expression", [expr for _, expr in TARGETS], ids=[name for name, _ in TARGETS])
def test_every_panel_uses_existing_metrics_and_labels(expression: str) -> None:
    names = names_in(expression)
    assert len(names) == 1
    for name in names:
        figure = name.removesuffix("_bucket")
        kind, labels = FIGURES[figure]
        assert (name != figure) == (kind == "histogram")
        assert ("rate(" in expression) == (kind != "gauge")
        assert labels_in(expression) <= labels | ADDED


@pytest.mark.parametrize("expression", [expr for _, expr in TARGETS if "sign_in_log_lines" in expr])
def test_panels_select_only_existing_types_of_sign_in_log_lines(expression: str) -> None:
    [(_, value)] = _MATCHER.findall(expression)
    for alternative in value.split("|"):
        assert [code for code in IN_WORDS if re.fullmatch(alternative, code)], alternative


def test_the_panels_fill_their_rows_without_overlapping() -> None:
    for board in BOARDS.values():
        ids = [panel["id"] for panel in board["panels"]]
        assert len(ids) == len(set(ids))
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            assert not cells & taken, panel["title"]
            taken |= cells
        assert {x for x, _ in taken} == set(range(24))


@pytest.mark.parametrize(("name", "panel"), PANELS, ids=[f"{name}: {panel['title']}" for name, panel in PANELS])
def test_every_panel_has_a_description_that_names_existing_sections_of_the_runbook(name: str, panel: dict[str, Any]) -> None:
    assert panel["description"].endswith(".")
    assert set(re.findall(r"Runbook: (\w+)", panel["description"])) <= HEADINGS


def test_the_list_of_streams_is_read_from_an_existing_metric() -> None:
    [variable] = [each for each in BOARDS["identity-operators"]["templating"]["list"] if each["name"] == "stream"]
    found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"])
    assert found is not None
    assert found[2] in FIGURES[found[1]][1]
