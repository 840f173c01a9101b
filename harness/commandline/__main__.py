"""`python -m harness.commandline`: the command, where no script is on the PATH."""

from __future__ import annotations

import sys

from harness.commandline.main import run

if __name__ == "__main__":
    sys.exit(run())
