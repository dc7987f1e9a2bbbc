"""Secrets and key lists in files that `<name>_FILE` names."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env

VALUE = "postgresql://identity:p4ss@db.example.test/identity"
KEY = "k" * 40


@pytest.fixture(autouse=True)
def only_these_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "SETTINGS", {})
    for name in ("SOME_SECRET", "SOME_SECRET_FILE", "SOME_KEYS", "SOME_KEYS_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_a_secret_is_read_from_its_file_without_the_last_line_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text(f"{VALUE}\n")
    monkeypatch.setenv("SOME_SECRET_FILE", str(tmp_path / "secret"))

    assert env.secret("SOME_SECRET", "default", "Test.") == VALUE


def test_a_key_list_is_read_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keys").write_text(f"b:{KEY},\na:{KEY}\n")
    monkeypatch.setenv("SOME_KEYS_FILE", str(tmp_path / "keys"))

    assert env.keys("SOME_KEYS", "", "Test.") == {"b": KEY, "a": KEY}


def test_the_variable_and_then_the_default_are_used_if_there_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.secret("SOME_SECRET", "default", "Test.") == "default"
    monkeypatch.setenv("SOME_SECRET_FILE", "")
    monkeypatch.setenv("SOME_SECRET", VALUE)
    assert env.secret("SOME_SECRET", "default", "Test.") == VALUE


def test_a_variable_and_its_file_together_are_refused_without_showing_the_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text(VALUE)
    monkeypatch.setenv("SOME_SECRET_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("SOME_SECRET", VALUE)

    with pytest.raises(ImproperlyConfigured, match="SOME_SECRET and SOME_SECRET_FILE are both set") as refused:
        env.secret("SOME_SECRET", "", "Test.")
    assert "p4ss" not in str(refused.value)


@pytest.mark.parametrize("content", [None, b"", b" \n", b"p4ss\xff"], ids=["missing", "empty", "blank", "no text"])
def test_an_unusable_file_prevents_the_start_and_its_content_is_not_shown(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("SOME_SECRET_FILE", str(file))

    with pytest.raises(ImproperlyConfigured, match=f"SOME_SECRET_FILE='{file}'") as refused:
        env.secret("SOME_SECRET", "default", "Test.")
    assert "p4ss" not in str(refused.value)
    assert refused.value.__cause__ is None
