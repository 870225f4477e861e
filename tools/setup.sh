#!/bin/sh
# Prepare .venv and a Java runtime. `make setup` calls this; PYTHON=... chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."
. tools/system.sh

ensure_java
python=$(find_python) || exit 1
if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    say "Creating .venv with $("$python" --version) ($python)"
    rm -rf .venv
    "$python" -m venv .venv
fi
say "Installing the locked dependencies; Spark alone is a download of more than 400 MB the first time"
.venv/bin/python -m pip install --disable-pip-version-check -r requirements.lock
.venv/bin/python -m pip install --disable-pip-version-check --no-deps --editable .
.venv/bin/python -m compileall -q plait
say "Starting Spark once, so that it starts faster from now on"
.venv/bin/python tools/first_start.py || say "That failed; the first run will show why"
touch .venv/.ready
say "Ready: .venv/bin/plait --help"
