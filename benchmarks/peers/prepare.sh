#!/bin/sh
# Prepare an environment for each system that benchmarks compare Plait with: one for each benchmarks/peers/NAME.txt, with the
# jars of benchmarks/peers/NAME.jars (Maven coordinates) in it. `make peers` calls this; PLAIT_PEERS says where they are kept,
# PYTHON=... chooses the interpreter. What is there and up to date stays; one that fails does not stop the others.
set -u
cd "$(dirname "$0")/../.."
. tools/system.sh

peers=${PLAIT_PEERS:-.peers}

prepare() {
    name=$1
    target=$peers/$name
    wanted=$(cat "benchmarks/peers/$name".*)
    if [ "$(cat "$target/.ready" 2>/dev/null)" = "$wanted" ]; then
        say "$name is ready: $target"
        return 0
    fi
    say "Preparing $name in $target"
    rm -rf "$target"
    "$python" -m venv "$target" || return 1
    "$target/bin/python" -m pip install --disable-pip-version-check -r "benchmarks/peers/$name.txt" || return 1
    if [ -f "benchmarks/peers/$name.jars" ]; then
        fetch_jars "benchmarks/peers/$name.jars" "$target/jars" || return 1
    fi
    printf '%s\n' "$wanted" > "$target/.ready"
    say "$name is ready: $target"
}

fetch_jars() {
    if ! command -v mvn >/dev/null 2>&1; then
        say "mvn is missing, which fetches jars: install Maven (apt-get install maven) and run \`make peers\` again"
        return 1
    fi
    grep -v '^#' "$1" | while read -r artifact; do
        mvn --quiet --batch-mode dependency:copy -Dartifact="$artifact" -DoutputDirectory="$(realpath -m "$2")" || exit 1
    done
}

python=$(find_python) || exit 1
status=0
for file in benchmarks/peers/*.txt; do
    name=$(basename "$file" .txt)
    prepare "$name" || { say "$name could not be prepared, see above; the others go on"; status=1; }
done
exit $status
