"""The files of the page, and the headers that keep it to itself.

The page loads nothing from anywhere else and runs no script but its own: the browser is told so, in case a text that a
model wrote should ever be taken for markup.
"""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

FILES = {
    "/": "index.html",
    "/dashboard/page.css": "page.css",
    "/dashboard/page.js": "page.js",
    "/dashboard/charts.js": "charts.js",
    "/dashboard/samples.js": "samples.js",
    "/dashboard/scorer.js": "scorer.js",
    "/dashboard/words.js": "words.js",
    "/dashboard/icon.svg": "icon.svg",
}
"""Path in the address to file."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def content(path: str) -> tuple[bytes, str]:
    """Return the bytes and the media type of a path of `FILES`."""
    file = _FOLDER / FILES[path]
    return file.read_bytes(), _TYPES[file.suffix]
