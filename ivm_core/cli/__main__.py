"""`python -m ivm_core.cli` is `tideview`."""

import sys

from ivm_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
