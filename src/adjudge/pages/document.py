"""A page in one file, which needs nothing else and runs nothing else.

The browser is told to run no script but the page's own and to ask nobody, should a text that a model wrote ever be
taken for markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from adjudge.pages.markup import Markup, element

_FOLDER = Path(__file__).parent
BASE = _FOLDER / "base.css"
"""The look that every page shares, the dashboard's included: colours, type, tables."""

_FIGURES = _FOLDER / "figures.css"
_PLOTS = _FOLDER / "plots.js"

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath d='M2 13h12M4 13V8m4 5V3m4 10V6' stroke='%231f6f6b' stroke-width='2.4'/%3E%3C/svg%3E"
)


def document(
    title: str, brand: str, top: Markup, body: Markup, *, styles: Sequence[Path] = (), scripts: Sequence[Path] = ()
) -> str:
    """Return a page as HTML.

    Args:
        title: of the window.
        brand: the small line above the heading: which command made the page.
        top: the heading, and what stands with it.
        body: the rest.
        styles: CSS that only this kind of page needs.
        scripts: JavaScript modules that only this kind of page needs.
    """
    look = Markup("\n".join(path.read_text(encoding="utf-8") for path in (BASE, _FIGURES, *styles)))
    code = [Markup(path.read_text(encoding="utf-8")) for path in (_PLOTS, *scripts)]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, code))}; style-src {_hash(look)}; "
        "img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    head = element(
        "head",
        None,
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("meta", {"name": "referrer", "content": "no-referrer"}),
        element("title", None, f"{title} – adjudge"),
        element("link", {"rel": "icon", "href": _ICON}),
        element("style", None, look),
        *(element("script", {"type": "module"}, script) for script in code),
    )
    header = element("header", None, element("p", {"class": "brand"}, brand), top)
    content = element("body", None, header, element("main", None, body))
    return f"<!doctype html>\n{element('html', {'lang': 'en'}, head, content)}\n"


def _hash(text: str) -> str:
    """What the policy calls an inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
