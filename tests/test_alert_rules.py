"""The alert rules use only existing metrics, and the runbook has a section for every alert."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioning.models import Alert

ROOT = Path(__file__).resolve().parents[1]
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"] for rule in group["rules"]
]
RUNBOOK = (ROOT / "docs/how-to/runbook.md").read_text()
FIGURES = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", (ROOT / "docs/reference/metrics.md").read_text(), re.MULTILINE))
# Words that occur in expressions and are not metrics of this service. `up` is a metric of Prometheus.
WORDS = {"and", "or", "by", "max", "sum", "rate", "increase", "histogram_quantile", "up"}
HEADINGS = set(re.findall(r"^## (.+)$", RUNBOOK, re.MULTILINE))


def figures_of(expression: str) -> set[str]:
    """Return the names of the metrics in an expression, without labels and functions."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)", "", expression)
    return set(re.findall(r"\b[a-z][a-z_]+\b", bare)) - WORDS


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_every_rule_uses_only_existing_metrics(rule: dict[str, Any]) -> None:
    for name in figures_of(rule["expr"]):
        figure = name.removesuffix("_bucket")
        assert figure in FIGURES, name
        assert (name != figure) == (FIGURES[figure] == "histogram"), f"{name} is a {FIGURES[figure]}"
        assert ("rate(" in rule["expr"] or "increase(" in rule["expr"]) == (FIGURES[figure] != "gauge"), rule["expr"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_every_rule_has_a_severity_and_a_description(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["alert"] in HEADINGS


def test_the_runbook_has_no_section_for_a_removed_alert() -> None:
    # The headings of these sections are names of alerts. The headings of other sections are sentences.
    named = {heading for heading in HEADINGS if " " not in heading}

    assert named == {rule["alert"] for rule in RULES}


def test_the_runbook_has_a_section_for_every_alert_that_is_sent_by_mail() -> None:
    told = re.findall(r"^## Mailed: .+\n\n\*\*Means\*\* \(`(\w+)`\)", RUNBOOK, re.MULTILINE)

    assert sorted(told) == sorted(Alert.Kind.values)
