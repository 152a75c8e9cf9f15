"""How Sphinx makes the site: `cargo xtask doc`."""

import datetime
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "docs")]

import ferrax  # noqa: E402

project = "Ferrax"
author = "the authors of Ferrax"
copyright = f"{datetime.date.today().year}, {author}"
version = release = ferrax.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "charts", "examples", "reference"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"Ferrax {version}"
html_static_path = ["static"]
html_show_search_summary = False  # a page opened from a folder may not read its neighbours, which summaries are made of
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "friendly", "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["ref.python"]  # names such as `nse` that several classes have
default_role = "code"
add_module_names = False
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
napoleon_google_docstring, napoleon_numpy_docstring = True, False
