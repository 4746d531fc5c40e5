"""What serves the API: the application in force, its listeners, and what outlives a rebuild."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import attrs

from cronstable.config.addresses import listener
from cronstable.config.secret_values import SecretResolver, SecretUnavailable
from cronstable.config.sections_values import WebConfig
from cronstable.web.auth import Token, TokensUnavailable, load_tokens
from cronstable.web.context import Context, House
from cronstable.web.front import Front
from cronstable.web.joblist import JobList
from cronstable.web.jobviews import JobViews
from cronstable.web.listeners import Listeners
from cronstable.web.node import NodeFacts
from cronstable.web.requests import ApiSite
from cronstable.web.slices import next_turn
from cronstable.web.streams import Streams

log = logging.getLogger("cronstable")


FLUSHED_WITHIN = 2.0
"""Seconds that open connections get at the stop to take what was written to them."""

FLUSH_LOOK = 0.01
"""Seconds between two looks at whether they have."""


class Unavailable(Exception):
    """The section cannot be served; the text tells an operator why, without any secret."""


@attrs.frozen
class Material:
    """What was read for the section: its tokens, and the TLS options of its https entries."""

    tokens: tuple[Token, ...]
    tls: Any = None


def load_material(web: WebConfig, environ: Mapping[str, str]) -> Material:
    """
    Read tokens and TLS files; this may block.

    Raises L{Unavailable}.
    """
    try:
        tokens = load_tokens(web, SecretResolver(environ))
    except (SecretUnavailable, TokensUnavailable) as error:
        raise Unavailable(str(error)) from None
    if not any(is_secure(url) for url in web.listen):
        return Material(tokens)
    from cronstable import tls

    try:
        return Material(tokens, tls.load(web.tls))
    except tls.MaterialError as error:
        raise Unavailable(str(error)) from None


def is_secure(url: str) -> bool:
    """Return whether an entry of C{web.listen} is served with TLS."""
    found = listener(url)
    return found is not None and found.scheme == "https"


class Running:
    """
    The application on its addresses.

    Ports, connections and what is known of jobs stay over a change of the section; the
    application behind them is exchanged in one go.
    """

    def __init__(self, house: House) -> None:
        self._house = house
        self._texts = JobViews(house)
        self._texts.configured()
        self._list = JobList(house, self._texts)
        self.streams = Streams(house.clock)
        house.registry.collectors.append(self.streams.families)
        self.node = NodeFacts(house)
        self._listeners = Listeners(house.reactor)
        self._site: ApiSite | None = None
        self._creator: Any = None
        self._web: WebConfig | None = None
        self._silent = False
        self._warned = False

    @property
    def front(self) -> Front:
        """The application in force."""
        assert self._site is not None
        front: Front = self._site.resource
        return front

    def number(self, url: str) -> int | None:
        """Return the port number that an entry is served on."""
        return self._listeners.number(url)

    def configuration_changed(self) -> None:
        """Show what another configuration has made of the jobs."""
        self._texts.configured()

    def serve(self, web: WebConfig, material: Material) -> None:
        """Put a section in force; L{bind} comes after."""
        context = Context(
            self._house,
            web,
            self._texts,
            self._list,
            self.streams,
            self.node,
            lambda: self._listeners.urls,
        )
        front = Front(context, material.tokens)
        if material.tls is not None:
            self._secure(material.tls)
        if self._site is None:
            self._site = ApiSite(front, self._house.reactor)
        else:
            self._site.resource = front
            self._end_connections()
        self._web = web
        self.node.want(web.node_history)
        if web.bonjour.enabled:
            log.warning("web.bonjour is valid, but this release does not announce itself")
        if material.tokens:
            count = len(material.tokens)
            log.info(
                "web: requiring bearer-token authentication (%d token%s)",
                count,
                "" if count == 1 else "s",
            )

    def each_minute(self) -> None:
        """Do what is to be done once a minute."""
        self.node.each_minute()

    async def bind(self) -> None:
        """Bind what is wanted and not bound yet."""
        web = self._web
        if web is None or self._site is None:
            return
        if await self._listeners.want(web.listen, self._site, self._wrapped, web.socket_mode):
            self._silent = False
            self._warn_if_open(web)
        elif not self._silent:
            self._silent = True
            log.error("web: no address could be bound; trying again each minute")

    async def unbind(self) -> None:
        """Serve nothing, until L{serve} is called again."""
        self._web = None
        self.node.stop()
        await self._listeners.close()
        self._end_connections()

    async def stop(self) -> None:
        """Serve nothing any more; connections get a moment to take what was written to them."""
        self.streams.stop()
        await self.unbind()
        clock = self._house.clock
        until = clock.seconds() + FLUSHED_WITHIN
        while self._site is not None and self._site.channels and clock.seconds() < until:
            await next_turn(clock, FLUSH_LOOK)

    def _end_connections(self) -> None:
        """What is served has changed: streams end, and connections with their current request."""
        self.streams.end_all()
        if self._site is not None:
            self._site.retire_connections()

    def _warn_if_open(self, web: WebConfig) -> None:
        """Say once in the life of this process that strangers may use the API."""
        if self._warned or web.authenticated:
            return
        certified = web.tls.ca is not None
        if any(
            where.routable and not (certified and where.scheme == "https")
            for where in self._listeners.bound
        ):
            self._warned = True
            log.warning(
                "web: whoever reaches this host may use the API: it listens on a routable address"
                " and asks for no token; set web.authToken, or listen on 127.0.0.1"
            )

    def _secure(self, options: Any) -> None:
        from cronstable.tls import Creator

        if self._creator is None:
            self._creator = Creator(options)
        else:
            self._creator.options = options

    def _wrapped(self, site: ApiSite) -> Any:
        from cronstable.tls import wrapped

        return wrapped(self._creator, site, self._house.clock)
