"""The release this package is."""

__version__ = "2.0.0.dev0"
