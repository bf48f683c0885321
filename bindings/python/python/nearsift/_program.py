"""The console script `nearsift`: the program, which the package's library holds."""

from __future__ import annotations

import sys

from nearsift import _native


def main() -> None:
    """Runs the program with the arguments of this process, and ends with its exit status."""
    sys.exit(_native.run_program(["nearsift", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
