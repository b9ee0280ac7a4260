"""`archwright`, and `python -m archwright`."""

import sys

from archwright.cli.interrupts import ending_at_once

with ending_at_once():
    from archwright.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
