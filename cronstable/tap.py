"""What C{twistd cronstable} needs: its options, and the service for them."""

from __future__ import annotations

import gc
import logging
import os
from typing import Any

from twisted.application.service import Service
from twisted.logger import ILogObserver
from twisted.python import usage

log = logging.getLogger("cronstable")


class Options(usage.Options):
    """The options of C{twistd cronstable}."""

    synopsis = "[options]"
    optParameters = [  # noqa: RUF012 - Twisted's way to declare options
        ["config", "c", None, "A configuration file, a crontab, or a directory of them."],
        ["log-level", "l", "INFO", "DEBUG, INFO, WARNING, ERROR or CRITICAL."],
    ]

    def postOptions(self) -> None:  # noqa: N802 - the name is Twisted's
        """Check the level and fill in the default path, before there is a reactor."""
        from cronstable.commands.defaults import default_config
        from cronstable.commands.loglevel import level_number
        from cronstable.platform import open_standard_descriptors

        open_standard_descriptors()
        try:
            self["level"] = level_number(self["log-level"])
        except ValueError as error:
            raise usage.UsageError(str(error)) from error
        if self["config"] is None:
            self["config"] = default_config()


def makeService(options: Options) -> Service:  # noqa: N802 - the name is Twisted's
    """
    Return the daemon as a service; a bad configuration ends the process with exit status 1.
    """
    from cronstable.signals import EarlySignals

    EarlySignals().install()
    # Nearly all that is made until the daemon has begun stays for good: looking for garbage in it
    # again and again would take a tenth of the start.
    gc.disable()
    from twisted.internet import reactor

    from cronstable import daemon
    from cronstable.commands.loglevel import log_to_stderr
    from cronstable.config.errors import ConfigError

    log_to_stderr(options["level"])
    try:
        made = daemon.make(reactor, options["config"], os.environ)
    except ConfigError as error:
        log.error("Configuration error: %s", error)
        raise SystemExit(1) from None
    return _OwnLogging(made)


class _OwnLogging(Service):
    """Puts the daemon under twistd's application, whose log then goes where the daemon's goes."""

    def __init__(self, daemon: Service) -> None:
        self._daemon = daemon

    def setServiceParent(self, parent: Any) -> None:  # noqa: N802 - the name is Twisted's
        """Join C{parent} and replace its log observer, which would write to stdout."""
        from cronstable.logs import TwistedToStandard

        super().setServiceParent(parent)
        parent.setComponent(ILogObserver, TwistedToStandard())

    def startService(self) -> None:
        """Start the daemon."""
        super().startService()
        self._daemon.startService()

    def stopService(self) -> Any:
        """Stop the daemon in its phases."""
        super().stopService()
        return self._daemon.stopService()
