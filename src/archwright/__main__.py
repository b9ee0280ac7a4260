"""`python -m archwright` is `archwright`."""

import sys

from archwright.cli.main import main

sys.exit(main())
