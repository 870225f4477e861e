"""`python -m plait`: the same as `plait`, where no environment is activated."""

from plait.cli.main import main

if __name__ == "__main__":
    main()
