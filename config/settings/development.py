"""Settings of a checkout: as in production, plus the values of `.data/environment` from `make up`, so that commands find the servers that
`make up` started.
"""

from __future__ import annotations

import os
from pathlib import Path

_written_by_make_up = Path(os.environ.get("DATA_DIR", Path(__file__).resolve().parents[2] / ".data")) / "environment"
if _written_by_make_up.exists():
    for _line in _written_by_make_up.read_text().splitlines():
        _name, _separator, _value = _line.partition("=")
        if _separator and _name not in os.environ:
            os.environ[_name] = _value

# Without `make up`, mail is written to standard output.
os.environ.setdefault("EMAIL_URL", "console:")
# Staff need no second factor to try the service out. They can add a factor at any time.
os.environ.setdefault("STAFF_SECOND_FACTOR", "off")

from config.settings.base import *  # noqa: E402, F403  (the file above must be read first)
