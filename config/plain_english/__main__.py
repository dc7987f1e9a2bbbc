"""`python -m config.plain_english [path ...]`: print every refused word with its file and line; part of `make lint`."""

from __future__ import annotations

import sys

from config.plain_english.checking import CLEAN, ROOT, findings


def main(arguments: list[str]) -> int:
    """Check the paths given as arguments, by default those in `CLEAN`; return 1 if a word was refused."""
    found = list(findings(ROOT, tuple(arguments) or CLEAN))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
