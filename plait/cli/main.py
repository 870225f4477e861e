"""The command `plait`: whatever ends it, a Ctrl-C while its modules are loaded too, ends with a line and a status.

Nothing of ours is imported before that is so: it takes a second or two, in which a stack trace would say nothing.
"""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; always leaves by SystemExit."""
    try:
        from plait.cli.app import run_command

        run_command()
    except KeyboardInterrupt:
        print("plait: interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:  # the parser of arguments says nothing
            print("plait: interrupted", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
