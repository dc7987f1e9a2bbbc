"""The list of breached passwords: how it is created, searched and replaced, and what happens if it is damaged."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from foundation.outbound.outcomes import Answer, ConnectionLost
from foundation.outbound.session import OutboundSession
from identity.breaches import current_list
from identity.breaches.current_list import is_in_breach, list_status
from identity.breaches.list_building import BuildRefused, Plan, building
from identity.breaches.list_file import HEAD_BYTES, RANGES, BreachList, ListUnreadable
from identity.breaches.list_sources import RangeInterface, SourceRefused, Taking, packed_range, ranges_of_directory, ranges_of_file
from tests.factories.breach_list import write_list

LEAKED = [f"leaked-{number}" for number in range(200)]
ALL = Taking(may_lack_ranges=True)


def digest(password: str) -> str:
    return hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper()


def lines_of(*passwords: str, count: int = 3) -> str:
    return "".join(f"{found}:{count}\r\n" for found in sorted(digest(password) for password in passwords))


@pytest.fixture
def place(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """Set the path of the list in the settings, empty the cache of the open list, and return the path. No list exists yet."""
    settings.BREACHED_PASSWORDS_FILE = str(tmp_path / "list")
    current_list._current = current_list.CurrentList()
    yield tmp_path / "list"
    current_list._current = current_list.CurrentList()


def run(*arguments: str) -> str:
    written = StringIO()
    call_command("breached_passwords", *arguments, stdout=written)
    return written.getvalue()


def test_no_password_is_found_without_a_list_and_the_status_says_why(place: Path, settings: Any) -> None:
    assert not is_in_breach("leaked-1")
    assert run("status").startswith("Passwords are not checked: there is no file")
    settings.BREACHED_PASSWORDS_FILE = ""
    assert run("status") == "Passwords are not checked: the operator of the service has not set BREACHED_PASSWORDS_FILE.\n"
    with pytest.raises(CommandError, match="Set BREACHED_PASSWORDS_FILE"):
        run("refresh")


def test_a_list_of_an_imported_file_contains_no_password_and_no_whole_digest(place: Path, tmp_path: Path) -> None:
    source = tmp_path / "pwned.txt"
    source.write_text(lines_of(*LEAKED))
    said = run("import", str(source), "--allow-missing")
    assert "The list is ready: 200 passwords." in said
    assert all(is_in_breach(password) for password in LEAKED)
    assert not any(is_in_breach(f"fresh-{number}") for number in range(500))
    assert not is_in_breach("lone surrogate \udcff")
    stored = place.read_bytes()
    assert b"leaked-1" not in stored
    assert bytes.fromhex(digest("leaked-1")) not in stored
    assert sorted(path.name for path in tmp_path.iterdir()) == ["list", "list.lock", "pwned.txt"]
    assert "200 passwords" in run("status")


def test_padding_lines_and_passwords_below_the_minimum_count_are_not_stored(tmp_path: Path) -> None:
    suffix = digest("a")[5:]
    other = digest("b")[5:]
    body = f"{suffix}:9\r\n{other}:2\r\n{'0' * 35}:0\r\n".encode()
    assert len(packed_range(body, Taking(), name="x")) == 12
    assert packed_range(body.lower(), Taking(at_least=5), name="x") == bytes.fromhex(suffix[:12])


@pytest.mark.parametrize(
    "body", [b"<html>Too many requests</html>", b"", b"00:1", digest("a").encode() + b":1", b"\xff\xfe", b"Z" * 35 + b":1"]
)
def test_a_range_with_invalid_lines_is_refused(body: bytes) -> None:
    with pytest.raises(SourceRefused, match="range 00000"):
        packed_range(body, Taking(), name="00000")


def test_incomplete_unsorted_and_unrelated_files_do_not_replace_the_list(place: Path, tmp_path: Path) -> None:
    write_list(place, "kept")
    source = tmp_path / "pwned.txt"
    ntlm = "8846F7EAEE8FB117AD06BDD830B7586C:3\n"
    unsorted = "".join(reversed(lines_of(*LEAKED).splitlines(keepends=True)))
    for text, said in ((lines_of(*LEAKED), "is missing"), (unsorted, "not sorted"), (ntlm, "not DIGEST:COUNT"), ("x" * 300, "digest")):
        source.write_text(text)
        arguments = [] if said == "is missing" else ["--allow-missing"]
        with pytest.raises(CommandError, match=said):
            run("import", str(source), "--restart", *arguments)
        assert is_in_breach("kept")
    source.write_text("")
    with pytest.raises(CommandError, match="contains no password"):
        run("import", str(source), "--restart", "--allow-missing")
    assert BreachList(place).holds("kept")


def test_a_much_smaller_list_replaces_the_old_list_only_on_request(place: Path, tmp_path: Path) -> None:
    write_list(place, *LEAKED)
    source = tmp_path / "pwned.txt"
    source.write_text(lines_of("leaked-1"))
    with pytest.raises(CommandError, match="Nothing was replaced"):
        run("import", str(source), "--allow-missing")
    assert BreachList(place).facts.count == 200
    # The first run has built the new list, but has not put it in place. The second run puts it in place without reading the source again.
    run("import", str(source), "--allow-missing", "--accept-smaller")
    assert BreachList(place).facts.count == 1


def test_searches_use_the_old_list_until_an_interrupted_run_has_resumed_and_ended(place: Path, tmp_path: Path) -> None:
    write_list(place, "old")
    source = tmp_path / "pwned.txt"
    source.write_text(lines_of(*LEAKED))
    plan = Plan(place, str(source))

    def stopped() -> Iterator[bytes]:
        for number, records in enumerate(ranges_of_file(source, ALL, start=0)):
            if number == 700_000:
                raise KeyboardInterrupt
            yield records

    with pytest.raises(KeyboardInterrupt), building(plan) as builder:
        builder.add_all(stopped(), tell=lambda _: None)
    assert is_in_breach("old")
    assert not is_in_breach("leaked-1")
    # After a power failure, the last writes can be lost. Then the file of the records is shorter than its journal says.
    part = plan.beside("part")
    with part.open("r+b") as file:
        file.truncate(part.stat().st_size - 20)
    with pytest.raises(BuildRefused, match="another source"), building(Plan(place, "elsewhere")):
        pass
    with building(plan) as builder:
        assert 0 < builder.done < 700_000
        with pytest.raises(BuildRefused, match="Another process"), building(plan):
            pass
        with pytest.raises(BuildRefused, match="ranges are complete"):
            builder.finish()
        builder.add_all(ranges_of_file(source, ALL, start=builder.done), tell=lambda _: None)
        builder.finish()
    found = BreachList(place)
    assert all(found.holds(password) for password in LEAKED)
    assert found.facts.count == 200


def test_a_new_list_is_used_within_a_second_although_the_old_list_is_open(place: Path, tmp_path: Path) -> None:
    write_list(place, "first")
    opened = BreachList(place)
    assert is_in_breach("first")
    write_list(tmp_path / "next", "second").replace(place)
    assert opened.holds("first")
    current_list._current._place = ("", 0.0)
    assert is_in_breach("second")
    assert not is_in_breach("first")


def test_a_damaged_list_is_treated_as_a_missing_list_and_every_password_is_accepted(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_list(place, "secret-password")
    whole = place.read_bytes()
    for damaged in (whole[:-1], whole[:HEAD_BYTES], b"", b"x" * len(whole), whole.replace(b'"count": 1', b'"count": 9')):
        place.write_bytes(damaged)
        with pytest.raises(ListUnreadable):
            BreachList(place)
    assert list_status().facts is None
    assert not is_in_breach("secret-password")
    # Truncate the open file in place. A search must then find nothing, and must not crash the process.
    place.write_bytes(whole)
    current_list._current = current_list.CurrentList()
    assert is_in_breach("secret-password")
    os.truncate(place, HEAD_BYTES)
    assert not is_in_breach("secret-password")
    assert "passwords are not checked for breaches" in caplog.text
    assert "secret-password" not in caplog.text


def test_a_list_whose_table_points_outside_the_file_is_refused(tmp_path: Path) -> None:
    path = write_list(tmp_path / "list", "a")
    with path.open("r+b") as file:
        file.seek(HEAD_BYTES + 6)
        file.write((1 << 40).to_bytes(8, "little") * 16)
    with pytest.raises(ListUnreadable):
        BreachList(path).records_of(3)


def test_a_missing_range_in_a_directory_is_reported(tmp_path: Path) -> None:
    for number in (RANGES - 3, RANGES - 1):
        (tmp_path / f"{number:05X}.txt").write_text(f"{'A' * 35}:1\r\n")
    found = list(ranges_of_directory(tmp_path, ALL, start=RANGES - 3))
    assert found == [b"\xaa" * 6, b"", b"\xaa" * 6]
    with pytest.raises(SourceRefused, match="FFFFE is missing"):
        list(ranges_of_directory(tmp_path, Taking(), start=RANGES - 3))


class Interface(OutboundSession):
    """A range interface with fixed responses. `asked` contains the URL of each request, and whether the request was conditional."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, bool]] = []

    def send(self, method: str, url: str, *, headers: Any, body: bytes | None, deadline: float) -> Answer:
        self.asked.append((url, "If-Modified-Since" in headers))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_refresh_repeats_failed_requests_and_reports_its_failure(tmp_path: Path) -> None:
    body = f"{'A' * 35}:1".encode()
    pauses: list[float] = []
    present = BreachList(write_list(tmp_path / "list", "old"))
    server = Interface(Answer(429, {"Retry-After": "7"}, b""), ConnectionLost(), Answer(200, {}, body), Answer(304, {}, b""))
    interface = RangeInterface(server, "https://ranges.test/", 1, present, pauses.append)
    assert list(interface.ranges(Taking(), start=RANGES - 2)) == [b"\xaa" * 6, b""]
    assert pauses == [7.0, 2.0]
    assert server.asked == [("https://ranges.test/FFFFE", True)] * 3 + [("https://ranges.test/FFFFF", True)]
    for answers, said in (([Answer(404, {}, b"")], "with 404"), ([Answer(503, {}, b"")] * 6, "to resume there")):
        failing = RangeInterface(Interface(*answers), "https://ranges.test/", 1, None, pauses.append)
        with pytest.raises(SourceRefused, match=said):
            list(failing.ranges(Taking(), start=RANGES - 1))
    # A response 304 to an unconditional request is refused.
    with pytest.raises(SourceRefused, match="304"):
        list(RangeInterface(Interface(Answer(304, {}, b"")), "https://ranges.test/", 1).ranges(Taking(), start=RANGES - 1))
