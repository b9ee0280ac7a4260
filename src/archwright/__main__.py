"""`python -m archwright` is `archwright`."""

import sys

from archwright.apps.cli import main

sys.exit(main())
