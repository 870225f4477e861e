"""``python -m benchmarks NAME``: run one benchmark, from the root of the repository; without NAME list them all."""

from __future__ import annotations

import sys

from benchmarks.commands import BENCHES, listing
from plait.cli.exit_status import report
from plait.errors import OptionError

_USAGE = """usage: python -m benchmarks NAME [OPTION ...]
       python -m benchmarks NAME --help

What NAME is:"""


def main(arguments: list[str]) -> int:
    """Run what the first argument names with all the others, `--help` among them. Raises OptionError."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE)
        width = max(map(len, BENCHES))
        for kind, name, summary in listing():
            print(f"  {name:{width}}  {kind}: {summary}")
        return 0
    name, *others = arguments
    if name not in BENCHES:
        raise OptionError(f"unknown benchmark '{name}'; expected one of {', '.join(sorted(BENCHES))}")
    return BENCHES[name](others)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Exception as error:  # the outermost frame: every error becomes a message and a status
        sys.exit(report(error))
