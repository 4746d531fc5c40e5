"""cronstable: a cron replacement that accounts for every slot."""

from cronstable.version import __version__

__all__ = ["__version__"]
