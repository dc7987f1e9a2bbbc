"""Reading the file of an import: a JSON array or JSON lines, bytes in pieces of any size, and the position of an error."""

from __future__ import annotations

import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.imports.import_file import LONGEST_ROW, BadImportFile, read_rows

_SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_ROWS = st.lists(st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))


class Dripping(io.BytesIO):
    """A file that returns at most `step` bytes at a time, so that every value is split at some point."""

    step = 1

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.step)


def dripped(content: bytes, step: int) -> Dripping:
    file = Dripping(content)
    file.step = step
    return file


def refusal(content: bytes) -> str:
    with pytest.raises(BadImportFile) as refused:
        list(read_rows(io.BytesIO(content)))
    with pytest.raises(BadImportFile) as again:
        list(read_rows(dripped(content, 3)))
    assert str(again.value) == str(refused.value)
    return str(refused.value)


@given(rows=_ROWS, indent=st.none() | st.just(1), is_ascii=st.booleans(), step=st.integers(1, 9))
def test_an_array_is_read_correctly_for_any_split_of_its_bytes(rows: list[Any], indent: int | None, is_ascii: bool, step: int) -> None:
    content = json.dumps(rows, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    try:
        content.decode()
    except UnicodeDecodeError:
        return
    assert list(read_rows(dripped(content, step))) == rows


@given(
    rows=st.lists(st.dictionaries(st.text(alphabet=st.characters(exclude_categories=["Cs"])), _SCALARS), min_size=1), step=st.integers(1, 9)
)
def test_each_line_is_read_as_it_was_written(rows: list[dict[str, Any]], step: int) -> None:
    content = "\r\n\n".join(json.dumps(row) for row in rows).encode()
    assert list(read_rows(dripped(content, step))) == rows


@pytest.mark.parametrize("content", ['\ufeff[{"a": 1}]', ' \n[{"a": 1}]\n ', '\ufeff{"a": 1}', '{"a": 1}\r\n', '\n\n{"a": 1}'])
def test_a_byte_order_mark_and_white_space_around_the_rows_are_ignored(content: str) -> None:
    assert list(read_rows(io.BytesIO(content.encode()))) == [{"a": 1}]


def test_an_empty_array_has_no_rows() -> None:
    assert list(read_rows(io.BytesIO(b" [ ] "))) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "The file is empty."),
        (b" \n\t ", "The file is empty."),
        (b"nope", "Line 1: expecting value."),
        (b'{"a": 1}\n\n{"b": }', "Line 3: expecting value."),
        (b'{"a": 1} {"b": 2}', "Line 1: extra data."),
        (b'[{"a": 1},\n {"b" 2}]', "Line 2, row 1 of the array: expecting ':' delimiter."),
        (b'[{"a": 1}', "Line 1, row 1 of the array: a comma or the closing bracket is missing."),
        (b'[{"a": 1},]', "Line 1, row 1 of the array: expecting value."),
        (b'[{"a": 1} {"b": 2}]', "Line 1, row 1 of the array: a comma or the closing bracket is missing."),
        (b'[{"a": 1}]\n[]', "Line 2: something follows the array."),
        (b'[{"a": "', "Line 1, row 0 of the array: unterminated string starting at."),
        (b"[NaN]", "Line 1, row 0 of the array: a number that JSON does not allow, or with too many digits."),
        (b"[" + b"9" * 5000 + b"]", "Line 1, row 0 of the array: a number that JSON does not allow, or with too many digits."),
        (b'["\xff"]', "The file is not UTF-8: byte 3."),
        (b'{"a": "\xc3', "The file is not UTF-8: byte 8."),
        (b"[" * 100_000, "Line 1, row 0 of the array: nested too deep."),
        (b'{"a":' + b"[" * 300 + b"]" * 300 + b"}", "Line 1: nested too deep."),
    ],
)
def test_an_invalid_file_is_refused_with_its_position(content: bytes, said: str) -> None:
    assert refusal(content) == said


def test_a_refusal_repeats_no_content_of_the_file() -> None:
    assert "secret" not in refusal(b'[{"password_hash": "secret", "secret" 1}]')


@pytest.mark.parametrize("around", [(b"[", b"]"), (b"", b"\n")])
def test_an_endless_row_is_refused_before_it_is_read_completely(around: tuple[bytes, bytes]) -> None:
    file = io.BytesIO(around[0] + b'{"a": "' + b"x" * (8 * LONGEST_ROW) + b'"}' + around[1])
    with pytest.raises(BadImportFile, match="longer than"):
        list(read_rows(file))
    assert file.tell() < 6 * LONGEST_ROW


@pytest.mark.parametrize("separator", [b",", b"\n"])
def test_memory_does_not_grow_with_the_length_of_the_file(separator: bytes) -> None:
    row = b'{"email": "ada@example.test", "user_metadata": {"text": "' + b"x" * 400 + b'"}}'
    content = separator.join([row] * 20_000)
    file = io.BytesIO(b"[" + content + b"]" if separator == b"," else content)
    tracemalloc.start()
    count = sum(1 for _ in read_rows(file))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 3 * 1024 * 1024
