"""How Sphinx builds the manual: `make docs` runs it, with warnings as errors."""

from __future__ import annotations

project = "Identity service"
extensions = ["myst_parser"]
exclude_patterns = ["_static"]
nitpicky = True

# Links name headings as code hosts do, so the same files read well in both places.
myst_heading_anchors = 4
suppress_warnings = [
    # Captions and examples in blocks of languages that the highlighter does not know are shown as they are.
    "misc.highlighting_failure",
]

html_theme = "furo"
html_title = "Identity service"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
# What is made at each build, such as the OpenAPI document.
html_extra_path = ["../.manual/extra"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
