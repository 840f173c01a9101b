"""`python -m harness.commandline`: the command, if its script is not on the PATH."""

from __future__ import annotations

import sys

from harness.commandline.main import run

if __name__ == "__main__":
    sys.exit(run())
