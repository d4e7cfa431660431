"""The site: the pages of this folder, and a reference that is written from the code as it is built."""

from __future__ import annotations

import gc
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

project = "Fire Circle"
author = "the authors of Fire Circle"
release = version = installed_version("firecircle")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]
suppress_warnings = ["myst.header"]  # decisions and parts of pages may begin below the first level

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"
html_title = f"Fire Circle {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_copyright = False
smartquotes = False  # an option is called --json, with two hyphens

# Docstrings are plain sentences with `names` in them.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True

copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True


def setup(app: Sphinx) -> None:
    """Write the reference before anything is read."""
    from docs.reference_pages import write_reference

    gc.disable()  # nearly all that is built lives until the end
    app.connect("builder-inited", lambda _: write_reference(HERE / "reference"))
    app.connect("doctree-read", _leave_decisions_out_of_the_sidebar)


def _leave_decisions_out_of_the_sidebar(app: Sphinx, _: object) -> None:
    """A page lists them: eighty entries beside every page bury the others and double the time of building."""
    if app.env.docname.startswith("decisions/"):
        app.env.metadata[app.env.docname]["orphan"] = True
