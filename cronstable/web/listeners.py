"""
The addresses of C{web.listen}: each bound on its own, kept over a reload, tried again when it
could not be bound.

docs/http-api.md, "Listeners", tells operators what is bound.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
from collections.abc import Iterable
from typing import Any

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred

from cronstable.config.addresses import Listener, listener, without_userinfo
from cronstable.threads import in_thread
from cronstable.web import sockets
from cronstable.web.requests import ApiSite

log = logging.getLogger("cronstable")


class Bound:
    """One entry of C{web.listen} that is served, by one port or more."""

    def __init__(self, where: Listener, ports: list[Any]) -> None:
        self.where = where
        self._ports = ports

    @property
    def number(self) -> int | None:
        """The port number that the system gave, None for a unix socket."""
        return getattr(self._ports[0].getHost(), "port", None)

    def unbind(self) -> Deferred[Any]:
        """Stop to accept connections; fires when the port is free again."""
        return DeferredList([maybeDeferred(port.stopListening) for port in self._ports])


class Listeners:
    """
    Binds what is wanted, and only that.

    C{site} serves all plain addresses; what C{secure} returns for it serves the C{https} ones.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._bound: dict[str, Bound] = {}
        self._said: dict[str, str] = {}

    @property
    def urls(self) -> list[str]:
        """The entries that are served, as they were written but without credentials."""
        return [without_userinfo(url) for url in self._bound]

    @property
    def bound(self) -> list[Listener]:
        """The entries that are served, taken apart."""
        return [bound.where for bound in self._bound.values()]

    def number(self, url: str) -> int | None:
        """Return the port number of an entry that is served."""
        return self._bound[url].number

    async def want(
        self, urls: Iterable[str], site: ApiSite, secure: Any, socket_mode: str | None
    ) -> bool:
        """
        Serve exactly C{urls}; return whether at least one of them is served now.

        An entry that is served already keeps its port.  What cannot be bound is a warning, once
        for each reason.
        """
        wanted = list(dict.fromkeys(urls))
        gone = [url for url in self._bound if url not in wanted]
        await self._unbind(gone)
        for url in wanted:
            if url not in self._bound:
                await self._bind(url, site, secure, socket_mode)
        self._bound = {url: self._bound[url] for url in wanted if url in self._bound}
        self._said = {url: said for url, said in self._said.items() if url in wanted}
        return bool(self._bound)

    async def close(self) -> None:
        """Serve nothing any more."""
        await self._unbind(list(self._bound))
        self._said.clear()

    async def _unbind(self, urls: Iterable[str]) -> None:
        for url in urls:
            await self._bound.pop(url).unbind()

    async def _bind(self, url: str, site: ApiSite, secure: Any, socket_mode: str | None) -> None:
        where = listener(url)
        if where is None:
            self._say(
                url,
                "Ignoring web listen url %s: %s",
                "write http://host:port, https://host:port or unix:///path",
            )
            return
        if where.scheme == "unix" and not sockets.unix_supported():
            self._say(url, "Ignoring web listen url %s: %s", "no unix sockets on this platform")
            return
        try:
            if where.scheme == "unix":
                bound = self._unix(where, site, socket_mode)
            else:
                factory = secure(site) if where.scheme == "https" else site
                bound = await self._tcp(where, factory)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._say(url, "web: could not listen on %s: %s", reason)
            return
        self._bound[url] = bound
        self._said.pop(url, None)
        log.info("web: started listening on %s", shown(url, where, bound))

    def _unix(self, where: Listener, site: ApiSite, mode: str | None) -> Bound:
        port = sockets.listen_unix(self._reactor, where.path, site)
        _set_mode(where.path, mode)
        return Bound(where, [port])

    async def _tcp(self, where: Listener, factory: Any) -> Bound:
        port = where.port or 0
        if _literal(where.host):
            addresses = sockets.resolve(where.host, port)
        else:
            addresses = await in_thread(self._reactor, "resolve", sockets.resolve, where.host, port)
        made: list[socket.socket] = []
        trouble: OSError | None = None
        for family, address in addresses:
            try:
                made.append(sockets.listen_tcp(family, address))
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL or trouble is None:
                    trouble = error
        if trouble is not None and not (made and trouble.errno == errno.EADDRNOTAVAIL):
            for each in made:
                each.close()
            raise trouble
        return Bound(where, self._adopt(made, factory))

    def _adopt(self, made: list[socket.socket], factory: Any) -> list[Any]:
        ports = []
        for each in made:
            with each:
                adopted = self._reactor.adoptStreamPort(each.fileno(), each.family, factory)
            ports.append(adopted)
        return ports

    def _say(self, url: str, message: str, reason: str) -> None:
        if self._said.get(url) != reason:
            self._said[url] = reason
            log.warning(message, without_userinfo(url), reason)


def shown(url: str, where: Listener, bound: Bound) -> str:
    """Return C{url} for the log, with the port that the system chose."""
    text = without_userinfo(url)
    if where.port == 0:
        host = f"[{where.host}]" if ":" in where.host else where.host
        return f"{where.scheme}://{host}:{bound.number}"
    return text


def _literal(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host)
            return True
    return False


def _set_mode(path: str, mode: str | None) -> None:
    if mode is None or not mode.strip():
        return
    try:
        os.chmod(path, int(mode.strip().removeprefix("0o"), 8))
    except ValueError:
        log.warning("web: socketMode %r is not an octal number; %s keeps its mode", mode, path)
    except (OSError, OverflowError) as error:
        log.warning("web: could not change the mode of %s: %s", path, error)
