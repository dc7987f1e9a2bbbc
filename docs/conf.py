"""Configuration of Sphinx, which builds the manual in `make docs` with warnings as errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

project = "Identity service"
extensions = ["myst_parser"]
exclude_patterns = ["_static"]
nitpicky = True

# Headings get the same anchors as on code hosts, so that links work in the manual and on code hosts.
myst_heading_anchors = 4
suppress_warnings = [
    # Code blocks in languages without a highlighter are shown as plain text.
    "misc.highlighting_failure",
]

html_theme = "furo"
html_title = "Identity service"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
# Files that each build generates, such as the OpenAPI document.
html_extra_path = ["../.manual/extra"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}

# Replacements in the pages. They add attributes that the theme lacks, and that screen readers and users of a keyboard need.
_ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages of the manual">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="Headings of this page">',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}


def setup(app: Any) -> None:
    """Let Sphinx call `_make_accessible` when all pages are written."""
    app.connect("build-finished", _make_accessible)


def _make_accessible(app: Any, problem: Exception | None) -> None:
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for given, wanted in _ACCESSIBLE.items():
            text = text.replace(given, wanted)
        page.write_text(text, encoding="utf-8")
