"""Text in, checked values out; no reactor, no I/O but reading files."""
