"""Reads the file of a user import row by row: a JSON array, or one JSON object per line. Pure; memory use is constant.

The scanner of the standard library finds the end of each row, so rows follow Python's JSON grammar.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import IO, Any, NoReturn

# A user's profile may have 1 MB; hashes and factors are additional.
LONGEST_ROW = 2 * 1024 * 1024
# The maximum nesting of a row: deeper than any stored value, and far below Python's recursion limit.
_DEEPEST = 200
_READ_BYTES = 256 * 1024
# If a number, or another JSON word, ends at most this many characters before the end of the window, it may be incomplete.
_UNDECIDED_NUMBER = 2
_UNDECIDED_WORD = 16
_SPACE = " \t\r\n"
_BYTE_ORDER_MARK = "\ufeff"


class BadImportFile(ValueError):
    """The file is not a JSON array and not JSON lines; the message names the position."""


def read_rows(file: IO[bytes]) -> Iterator[Any]:
    """Yield the rows of a file of either form, unchecked. Raises `BadImportFile` at the first place that is not a row.

    A file that begins with a bracket is an array. Any other file is read line by line; blank lines are counted but contain no row.
    """
    text = _Text(file)
    text.skip_mark()
    start = text.skip_space()
    if start == "":
        raise BadImportFile("The file is empty.")
    return _rows_of_array(text) if start == "[" else _rows_of_lines(text)


class _Text:
    """A window on the decoded file: `window[at:]` is not consumed yet."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._bytes_read = 0
        self._is_over = False
        self.window = ""
        self.at = 0
        self.line = 1

    def more(self) -> bool:
        """Append more of the file to the window, and drop the consumed part. False at the end of the file."""
        if self._is_over:
            return False
        data = self._file.read(_READ_BYTES)
        try:
            decoded = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            # `error.start` counts from the first byte that the decoder kept from the earlier read.
            place = self._bytes_read + len(data) - len(error.object) + error.start
            raise BadImportFile(f"The file is not UTF-8: byte {place + 1}.") from error
        self._bytes_read += len(data)
        self._is_over = not data
        self.window = self.window[self.at :] + decoded
        self.at = 0
        return True

    def skip_mark(self) -> None:
        while not self.window and self.more():
            pass
        if self.window.startswith(_BYTE_ORDER_MARK):
            self.at = 1

    def skip_space(self) -> str:
        """Skip white space and return the next character; empty at the end of the file."""
        while True:
            while self.at < len(self.window):
                character = self.window[self.at]
                if character not in _SPACE:
                    return character
                self.line += character == "\n"
                self.at += 1
            if not self.more():
                return ""

    def take(self, end: int) -> None:
        self.line += self.window.count("\n", self.at, end)
        self.at = end


def _rows_of_array(text: _Text) -> Iterator[Any]:
    text.take(text.at + 1)
    if text.skip_space() != "]":
        number = 0
        while True:
            text.skip_space()
            yield _next_row(text, number)
            number += 1
            following = text.skip_space()
            if following == "]":
                break
            if following != ",":
                raise _refusal(text, number, "a comma or the closing bracket is missing")
            text.take(text.at + 1)
    text.take(text.at + 1)
    if text.skip_space() != "":
        raise BadImportFile(f"Line {text.line}: something follows the array.")


def _next_row(text: _Text, number: int) -> Any:
    """Return the value that begins here. Near the end of the window, the value may be incomplete: further text can change the value or the
    error. Then the function reads further text and tries again."""
    while True:
        try:
            row, end = _SCANNER.raw_decode(text.window, text.at)
        except RecursionError as error:
            raise _refusal(text, number, "nested too deep") from error
        except ValueError as error:
            if _is_final(error, text) or not _grown(text, number):
                raise _refusal(text, number, _reason(error)) from error
            continue
        # `12` and `12e` may both be the beginning of `12e+5`.
        if len(text.window) - end > _UNDECIDED_NUMBER or not _grown(text, number):
            _refuse_deep(row, text, end)
            text.take(end)
            return row


def _is_final(error: ValueError, text: _Text) -> bool:
    """Tell whether the error would remain after more text.

    An unterminated string may end in later text. Its error has the position of the beginning of the string.
    """
    if not isinstance(error, json.JSONDecodeError):
        return True
    return not error.msg.startswith("Unterminated") and error.pos < len(text.window) - _UNDECIDED_WORD


def _grown(text: _Text, number: int) -> bool:
    """Read more until twice as much text of the row is in the window, so that a long row is scanned only a few times.

    Returns False at the end of the file.
    """
    wanted = 2 * (len(text.window) - text.at)
    if wanted > 2 * LONGEST_ROW:
        raise _refusal(text, number, f"longer than {LONGEST_ROW} characters")
    grown = text.more()
    while grown and len(text.window) - text.at < wanted and text.more():
        pass
    return grown


def _rows_of_lines(text: _Text) -> Iterator[Any]:
    while text.skip_space() != "":
        yield _row_of_line(text)


def _row_of_line(text: _Text) -> Any:
    end = text.window.find("\n", text.at)
    while end < 0:
        if len(text.window) - text.at > LONGEST_ROW:
            raise BadImportFile(f"Line {text.line}: longer than {LONGEST_ROW} characters.")
        scanned = len(text.window) - text.at
        if not text.more():
            end = len(text.window)
            break
        end = text.window.find("\n", scanned)
    line = text.window[text.at : end]
    try:
        row = _DECODE(line)
    except RecursionError as error:
        raise BadImportFile(f"Line {text.line}: nested too deep.") from error
    except ValueError as error:
        raise BadImportFile(f"Line {text.line}: {_reason(error)}.") from error
    _refuse_deep(row, text, end)
    text.take(end)
    return row


def _refuse_deep(row: Any, text: _Text, end: int) -> None:
    """Refuse a row that nests deeper than later code can process."""
    if text.window.count("[", text.at, end) + text.window.count("{", text.at, end) <= _DEEPEST:
        return
    level = [row]
    for _ in range(_DEEPEST):
        level = [
            inner for value in level if isinstance(value, dict | list) for inner in (value.values() if isinstance(value, dict) else value)
        ]
    if level:
        raise BadImportFile(f"Line {text.line}: nested too deep.")


def _refusal(text: _Text, number: int, reason: str) -> BadImportFile:
    return BadImportFile(f"Line {text.line}, row {number} of the array: {reason}.")


def _reason(error: ValueError) -> str:
    """Return why a text is not JSON. The reason does not quote the text, because rows contain hashes."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:]}"
    return "a number that JSON does not allow, or with too many digits"


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError


_SCANNER = json.JSONDecoder(parse_constant=_refuse_constant)
_DECODE = _SCANNER.decode
