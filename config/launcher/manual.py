"""Builds the manual for `make docs` into `.manual/html`, with warnings as errors and every link checked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from config.launcher import built_pages, tool_environment
from config.launcher.options import ROOT

PLACE = ROOT / ".manual"
HTML = PLACE / "html"
OPENAPI = PLACE / "extra" / "reference" / "management" / "openapi.json"


def main() -> int:
    """Build the manual from the present sources.

    1. Install Sphinx and its theme from `requirements/docs.lock` into a separate environment.
    2. Write the OpenAPI document, which is too large to be stored with the sources.
    3. Build; a warning, such as a link to a missing heading, is an error.
    4. Check every link of the built pages, and that they load nothing from other hosts.
    """
    environment = PLACE / "python"
    if not tool_environment.install(ROOT / "requirements" / "docs.lock", environment):
        print("docs: pip could not install the packages of requirements/docs.lock", file=sys.stderr)
        return 1
    # Build everything each time: an incremental build would keep pages of deleted sources, and report a warning only once.
    shutil.rmtree(HTML, ignore_errors=True)
    describe = [sys.executable, "manage.py", "describe", "--openapi", str(OPENAPI)]
    sphinx = [str(environment / "bin" / "sphinx-build"), "-q", "-W", "--keep-going", "-E", "-b", "html", "-d", str(PLACE / "doctrees")]
    for command in (describe, [*sphinx, "docs", str(HTML)]):
        settings = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings.test"}
        if subprocess.run(command, cwd=ROOT, env=settings, check=False).returncode != 0:
            return 1
    problems = built_pages.problems(HTML)
    for problem in problems:
        print(f"docs: {problem}", file=sys.stderr)
    if not problems:
        print(f"The manual: {HTML / 'index.html'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
