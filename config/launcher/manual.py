"""Builds the manual for `make docs`: into `.manual/html`, with warnings as errors and every link followed."""

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
    """Build what the sources say now.

    1. Install Sphinx and its theme from `requirements/docs.lock` into an environment of their own.
    2. Write the OpenAPI document, which is too large to be kept beside the sources.
    3. Build; a warning, such as a link to a heading that is not there, is an error.
    4. Follow every link of the built pages, and see that they load nothing from elsewhere.
    """
    environment = PLACE / "python"
    if not tool_environment.install(ROOT / "requirements" / "docs.lock", environment):
        print("docs: pip could not install the packages of requirements/docs.lock", file=sys.stderr)
        return 1
    # Built anew each time: Sphinx itself would keep pages of what is gone, and say a warning once only.
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
