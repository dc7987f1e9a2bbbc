"""Log lines never contain secrets."""

from __future__ import annotations

import io
import json
import logging

import pytest
import structlog

from config.logging import logging_settings, mask_secrets, masked, rendered

SECRETS = [
    "Authorization: Bearer abcdefghijklmnop",
    "Basic dXNlcjpzZWNyZXQtdmFsdWU=",
    "token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
    '{"client_secret": "s3cr3t-value", "grant_type": "client_credentials"}',
    "client_secret=s3cr3t-value&grant_type=client_credentials",
    "SCIM_BEARER_TOKEN=s3cr3t-value",
    "postgresql://user:s3cr3t-value@127.0.0.1/identity",
]


@pytest.mark.parametrize("line", SECRETS)
def test_a_credential_in_a_line_is_masked(line: str) -> None:
    shown = masked(line)
    assert "[masked]" in shown
    for secret in ("abcdefghijklmnop", "dXNlcjpzZWNyZXQ", "c2lnbmF0dXJl", "s3cr3t-value"):
        assert secret not in shown


def test_an_ordinary_line_is_not_changed() -> None:
    line = "a change of user 4 had gone around the signals; recorded now"
    assert masked(line) == line


def test_a_secret_anywhere_in_a_log_record_is_masked() -> None:
    for entry in (
        {"event": "sent", "seen": ["x", {"deep": "Bearer abcdefghijklmnop"}]},
        {"event": "sent", "note": ("é\n", "BASIC dXNlcjpzZWM=")},
    ):
        shown = rendered(mask_secrets(None, "info", entry))
        assert "[masked]" in shown
        assert "abcdefghijklmnop" not in shown
        assert "dXNlcjpzZWM" not in shown


@pytest.mark.parametrize("value", [2**70, "half a pair \ud800", object(), {1: "x"}, float("nan")])
def test_a_line_is_written_for_any_content(value: object) -> None:
    line = structlog.processors.JSONRenderer(serializer=rendered)(None, "info", {"event": "sent", "value": value})
    assert json.loads(line)["event"] == "sent"


def test_log_lines_are_json_with_a_level_and_without_secrets() -> None:
    settings = logging_settings(level="INFO", as_json=True)
    formatter = structlog.stdlib.ProcessorFormatter(
        **{name: value for name, value in settings["formatters"]["line"].items() if name != "()"}
    )
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    logger = logging.getLogger("tests.masking")
    logger.addHandler(handler)
    try:
        try:
            raise ValueError("Bearer abcdefghijklmnop")
        except ValueError:
            logger.exception("failed with password=%s", "hunter2-hunter2")
        structlog.get_logger("tests.masking").warning("sent", headers={"Authorization": "Bearer abcdefghijklmnop"})
    finally:
        logger.removeHandler(handler)
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert first["level"] == "error"
    assert second["level"] == "warning"
    assert "hunter2" not in out.getvalue()
    assert "abcdefghijklmnop" not in out.getvalue()
