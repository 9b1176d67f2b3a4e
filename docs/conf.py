"""How the pages are built: ``sphinx-build -W docs docs/_build``."""

import shutil
import sys
from pathlib import Path

import pgmult

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import api_pages

project = "pgmult"
author = copyright = "The pgmult developers"
release = pgmult.__version__

# Made when the pages are built: the reference, and the notebooks as tutorials.
api_pages.write(HERE / "api")
(HERE / "tutorials").mkdir(exist_ok=True)
for notebook in (HERE.parent / "notebooks").glob("*.py"):
    shutil.copyfile(notebook, HERE / "tutorials" / notebook.name)

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxarg.ext",
]
exclude_patterns = ["_build", "_templates", "*.py", "paper", "pictures"]
templates_path = ["_templates"]

# Docstrings: pgmult's public names, where they are public.
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words, with shapes
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
default_role = "code"  # `name` is a name, in docstrings as in Markdown

# Tutorials run when the pages are built: what they show is what they give.
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "force"
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath"]
myst_heading_anchors = 2

html_theme = "pydata_sphinx_theme"
html_title = "pgmult"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
alone = ("index", "install", "gallery")  # no pages below them
html_sidebars = {page: [] for page in alone}
html_show_sourcelink = False
