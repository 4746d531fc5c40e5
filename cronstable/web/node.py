"""
Routes of the node: what it has in use, now and over the last while.

docs/http-api.md, "The node", specifies the answers.
"""

from __future__ import annotations

import logging
from collections import deque

from klein import Klein
from twisted.internet.interfaces import IDelayedCall

from cronstable.config.sections_values import NodeHistory
from cronstable.executors.cgroups import CapsSupport
from cronstable.executors.host import HostReader, HostUse
from cronstable.service import background
from cronstable.threads import in_thread
from cronstable.web import views
from cronstable.web.answers import answer_json
from cronstable.web.context import Context, House
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get
from cronstable.web.slices import next_turn

log = logging.getLogger("cronstable")

FRESH = 1.0
"""Seconds for which a reading is good."""

FIRST_AFTER = 0.2
"""Seconds over which the first percentages are taken."""

CAPS_FRESH = 60.0
"""Seconds for which it is remembered what could be capped."""

WATCHED = 900.0
"""Seconds after a look at the history for which it is continued at its full pace."""


def register(app: Klein, context: Context) -> None:
    """Add the routes."""
    routes = NodeRoutes(context)
    get(app, "/node", routes.node)
    get(app, "/node/history", routes.history)


class NodeRoutes:
    """Answers what is asked about this node."""

    def __init__(self, context: Context) -> None:
        self._house = context.house
        self._facts = context.node

    async def node(self, request: ApiRequest) -> bytes:
        """Answer with what is in use now."""
        use = await self._facts.now()
        return answer_json(
            request,
            {
                "node_name": self._house.node_name,
                "resources": None if use is None else views.host_use(use),
                "limits": views.caps_support(self._facts.caps()),
            },
        )

    def history(self, request: ApiRequest) -> bytes:
        """Answer with the samples that are kept."""
        facts = self._facts
        wanted = facts.wanted
        facts.looked()
        return answer_json(
            request,
            {
                "node_name": self._house.node_name,
                "enabled": wanted.enabled,
                "interval": wanted.interval if wanted.enabled else None,
                "points": list(facts.points),
            },
        )


class NodeFacts:
    """
    Reads the host on a thread when somebody asks, and keeps samples.

    An interval that was chosen is always kept.  At the default one a daemon that nobody watches
    takes a sample a minute, so that an idle host is left alone.
    """

    def __init__(self, house: House) -> None:
        self.wanted = NodeHistory(enabled=False)
        self.points: deque[tuple[float, float, float]] = deque(maxlen=1)
        self._house = house
        self._clock = house.clock
        self._readers: dict[str, HostReader] = {}
        self._now: HostUse | None = None
        self._read_at = float("-inf")
        self._caps: tuple[float, CapsSupport] | None = None
        self._watched_until = float("-inf")
        self._wake: IDelayedCall | None = None

    def want(self, wanted: NodeHistory) -> None:
        """Keep samples as the section C{web.nodeHistory} says; what is kept stays."""
        if wanted == self.wanted:
            return
        self.wanted = wanted
        self.points = deque(self.points if wanted.enabled else (), maxlen=max(wanted.points, 1))
        self._sleep()

    def looked(self) -> None:
        """Somebody looks at the samples: take them at their full pace for a while."""
        self._watched_until = self._clock.seconds() + WATCHED
        if self._wake is None:
            self._sleep()

    def each_minute(self) -> None:
        """Take the sample of the minute, when they do not come faster anyway."""
        if not self.wanted.enabled or self._wake is not None:
            return
        # It takes a fraction of a millisecond; a thread for it would wake an idle host again.
        try:
            reader = self._readers.get("history")
            if reader is None:
                self._readers["history"] = HostReader(self._clock)
            else:
                self._keep(reader.read())
        except Exception as error:
            log.debug("reading what the host uses failed: %s", error)

    def stop(self) -> None:
        """Take no more samples."""
        self.wanted = NodeHistory(enabled=False)
        self._sleep()

    async def now(self) -> HostUse | None:
        """Return what is in use, at most a second old; None where the host does not tell."""
        if self._clock.seconds() - self._read_at >= FRESH:
            self._read_at = self._clock.seconds()
            self._now = await self._read("now") or self._now
        return self._now

    def caps(self) -> CapsSupport:
        """Return what could be capped on this host, at most a minute old."""
        now = self._clock.seconds()
        if self._caps is None or now - self._caps[0] >= CAPS_FRESH:
            self._caps = now, self._house.caps()
        return self._caps[1]

    async def _read(self, user: str) -> HostUse | None:
        reactor = self._house.reactor
        try:
            reader = self._readers.get(user)
            if reader is None:
                reader = await in_thread(reactor, "node", HostReader, self._clock)
                self._readers[user] = reader
                await next_turn(self._clock, FIRST_AFTER)
            return await in_thread(reactor, "node", reader.read)
        except Exception as error:
            log.debug("reading what the host uses failed: %s", error)
            return None

    async def _sample(self) -> None:
        use = await self._read("history")
        if use is not None and self.wanted.enabled:
            self._keep(use)

    def _keep(self, use: HostUse) -> None:
        at = round(self._clock.now(), 2)
        self.points.append((at, use.cpu_percent, use.mem_percent))

    def _sleep(self) -> None:
        if self._wake is not None and self._wake.active():
            self._wake.cancel()
        self._wake = None
        wanted = self.wanted
        chosen = wanted.interval != NodeHistory().interval
        if wanted.enabled and (chosen or self._clock.seconds() < self._watched_until):
            self._wake = self._clock.callLater(wanted.interval, self._due)

    def _due(self) -> None:
        self._wake = None
        background("sampling the node", self._sample())
        self._sleep()
