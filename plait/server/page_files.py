"""The page: three files that are served as they are, and that load nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("page")

FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
"""By path: the file and its kind."""


def page_files() -> dict[str, tuple[bytes, str]]:
    """Return what is served under each path, and its kind."""
    return {path: ((FOLDER / name).read_bytes(), kind) for path, (name, kind) in FILES.items()}


__all__ = ["FILES", "FOLDER", "page_files"]
