# What the system must bring: Python 3.10 to 3.13 able to make virtual environments, and Java 17 or newer.
# Sourced by setup.sh. On Debian and Ubuntu, as root or with sudo, what is missing is installed.

say() { printf '%s\n' "plait setup: $*" >&2; }

die() {
    say "$*"
    exit 1
}

# Print how to become root ("" when root already, "sudo"), or fail where apt-get or the rights are missing.
apt_prefix() {
    command -v apt-get >/dev/null 2>&1 || return 1
    if [ "$(id -u)" = 0 ]; then
        echo ""
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        echo "sudo"
    elif command -v sudo >/dev/null 2>&1 && [ -t 0 ]; then
        echo "sudo"
    else
        return 1
    fi
}

# apt_install PACKAGE...: install packages with apt-get, or fail.
apt_install() {
    prefix=$(apt_prefix) || return 1
    say "Installing $* with apt-get"
    $prefix env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2 || say "apt-get update failed; trying with the lists at hand"
    $prefix env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >&2
}

is_suitable_python() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

# A Debian python3 without its -venv package lacks ensurepip.
can_make_environments() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

# Print the interpreter to use. A name on the PATH proves nothing (version managers put shims there): each one is run.
find_python() {
    suitable=""
    for candidate in ${PYTHON:-python3.12 python3.13 python3.11 python3.10 python3 python}; do
        is_suitable_python "$candidate" || continue
        if can_make_environments "$candidate"; then
            command -v "$candidate"
            return
        fi
        suitable=${suitable:-$candidate}
    done
    if [ -n "${PYTHON:-}" ] && [ -z "$suitable" ]; then
        die "PYTHON=$PYTHON is not a working Python 3.10 to 3.13; name another one"
    elif [ -z "$suitable" ]; then
        apt_install python3 python3-venv || die "No Python 3.10 to 3.13 was found. Install one, or name it: make setup PYTHON=/path/to/python3"
        suitable=python3
        is_suitable_python python3 || die "$(python3 --version) came with apt-get; Plait needs 3.10 to 3.13. Install one, or name it: make setup PYTHON=/path/to/python3"
    fi
    if ! can_make_environments "$suitable"; then
        version=$("$suitable" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        apt_install "python$version-venv" && can_make_environments "$suitable" ||
            die "$suitable cannot make virtual environments (its module ensurepip is missing). Install python$version-venv, or name another interpreter: make setup PYTHON=/path/to/python3"
    fi
    command -v "$suitable"
}

# Print the major version of the Java runtime that Spark would start; nothing if there is none.
java_version() {
    java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    "$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1
}

ensure_java() {
    version=$(java_version)
    [ "${version:-0}" -ge 17 ] && return
    found=${version:+"Java $version"}
    if [ -z "${JAVA_HOME:-}" ] && { apt_install openjdk-17-jre-headless || apt_install openjdk-21-jre-headless; }; then
        version=$(java_version)
        [ "${version:-0}" -ge 17 ] && return
    fi
    die "Spark needs a Java runtime, 17 or newer; found ${found:-none}${JAVA_HOME:+ in JAVA_HOME=$JAVA_HOME}. \
Install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; Fedora: dnf install java-21-openjdk-headless; \
macOS: brew install openjdk@21), see that 'java -version' shows it or set JAVA_HOME to it, and run this again"
}
