"""How the package is installed."""

from pathlib import Path

import plait

PROJECT = Path(plait.__file__).parents[1] / "pyproject.toml"


def test_an_editable_install_puts_the_clone_on_the_path() -> None:
    # With a finder instead, which setuptools takes unless this stands there, a script beside a clone named plait
    # imports the folder of the clone, as a namespace, before the finder is asked for the package in it.
    assert 'package-dir = { "" = "." }\n' in PROJECT.read_text()
