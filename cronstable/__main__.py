"""``python -m cronstable`` is the same program as ``cronstable``."""

import sys

from cronstable.commands.main import main

sys.exit(main())
