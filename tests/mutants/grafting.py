"""Replaces the code of functions in a process that has already imported their module. Imports no module of the product.

Importing the product takes longer than most runs of tests. So a process that has imported the product gets only the changed code of the
functions of a mutant. Every reference to such a function then runs the changed code. A change outside of functions, such as a change of a
constant, requires a new import.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType, FunctionType

# A graft: the changed code of functions, by the qualified names of the functions.
Graft = Mapping[str, CodeType]


def graft_of(file: Path, original: str, changed: str) -> Graft | None:
    """Return the functions of `file` that differ between the two source texts.

    Return None if the texts are equal, if they differ outside of functions, or if `changed` cannot be compiled.
    """
    try:
        before, after = (dict(_parts(compile(text, str(file), "exec"))) for text in (original, changed))
    except (SyntaxError, ValueError):
        return None
    differing = {name for name in before.keys() | after.keys() if _told(before.get(name)) != _told(after.get(name))}
    if not differing or not all(isinstance(before.get(name), CodeType) and isinstance(after.get(name), CodeType) for name in differing):
        return None
    return {name: code for name, code in after.items() if name in differing and isinstance(code, CodeType)}


class LoadedFunctions:
    """Every function of this process, by file and qualified name.

    `called` contains the code that ran during the imports. A change of this code requires a new import, because the code must run again.
    """

    def __init__(self, root: Path, called: Set[CodeType]) -> None:
        self._called = {(code.co_filename, code.co_qualname) for code in called}
        self._of: dict[tuple[str, str], list[FunctionType]] = {}
        # A program may have frozen its objects after its start. `gc.get_objects` does not list frozen objects.
        gc.unfreeze()
        for found in gc.get_objects():
            # Do not use `isinstance`: it would read the class of lazy objects, and so load these objects.
            if type(found) is FunctionType and found.__code__.co_filename.startswith(str(root)):
                self._of.setdefault((found.__code__.co_filename, found.__code__.co_qualname), []).append(found)

    def can_take(self, graft: Graft) -> bool:
        """Tell whether each function of the graft is loaded, has not run during the imports, and can get the changed code."""
        for name, code in graft.items():
            functions = self._of.get((code.co_filename, name), [])
            if not functions or (code.co_filename, name) in self._called:
                return False
            # Several functions can have one name, such as the getter and the setter of a property.
            if len({function.__code__ for function in functions}) > 1:
                return False
            if any(function.__code__.co_freevars != code.co_freevars for function in functions):
                return False
        return True

    def take(self, graft: Graft) -> None:
        """Replace the code of each function of the graft in this process."""
        for name, code in graft.items():
            for function in self._of[code.co_filename, name]:
                function.__code__ = code


@contextmanager
def noted_calls(root: Path) -> Iterator[Set[CodeType]]:
    """Yield a set. The code from files below `root` that runs during the block is added to the set."""
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(root)):
            called.add(frame.f_code)

    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)


def _parts(code: CodeType) -> Iterator[tuple[str, CodeType | tuple[object, ...]]]:
    """Yield each outermost function of a module with its name. Also yield the code outside of functions: the module and each class."""
    numbers: dict[str, int] = {}
    own: list[object] = []
    for constant in code.co_consts:
        if not isinstance(constant, CodeType):
            own.append(repr(constant))
        elif _is_function(constant):
            numbers[constant.co_qualname] = numbers.get(constant.co_qualname, 0) + 1
            # In a process, functions with the same name, such as the getter and the setter of a property, cannot be distinguished. So the
            # second of them gets a name that no loaded function has, and a change of it requires a new import.
            yield (constant.co_qualname if numbers[constant.co_qualname] == 1 else f"={constant.co_qualname}"), constant
        else:
            yield from _parts(constant)
    for name, count in numbers.items():
        if count > 1:
            yield f"*{name}", (count,)
    yield f"<{code.co_qualname}>", (code.co_code, tuple(own), code.co_names)


def _is_function(code: CodeType) -> bool:
    # CO_OPTIMIZED (1) and CO_NEWLOCALS (2) are both set for functions only.
    return code.co_flags & 0x3 == 0x3


def _told(part: CodeType | tuple[object, ...] | None) -> object:
    """Return a value that is equal for two parts if they differ only in line numbers."""
    if not isinstance(part, CodeType):
        return part
    constants = tuple(_told(constant) if isinstance(constant, CodeType) else repr(constant) for constant in part.co_consts)
    return (
        part.co_code,
        constants,
        part.co_names,
        part.co_varnames,
        part.co_freevars,
        part.co_cellvars,
        part.co_flags,
        part.co_exceptiontable,
    )
