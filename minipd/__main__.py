"""`python -m minipd` is the `minipd` command."""

import sys

from minipd.cli import main

if __name__ == "__main__":
    sys.exit(main())
