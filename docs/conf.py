"""Configuration of Sphinx, which builds the manual in `make docs` with warnings as errors."""

from __future__ import annotations

project = "Identity service"
extensions = ["myst_parser"]
exclude_patterns = ["_static"]
nitpicky = True

# Builds anchors of headings like code hosts, so that links work in both places.
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
