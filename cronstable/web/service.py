"""
The web room: one application on all addresses of C{web.listen}, rebuilt when its section, its
tokens or its certificates change.

Nothing heavy is imported until there is a C{web} section.  docs/http-api.md, "Listeners" and
"Reload", tells operators what happens when.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
from twisted.internet.defer import DeferredLock

from cronstable.config.sections_values import Config, McpConfig, WebConfig
from cronstable.config.sources import Stamps, stamps
from cronstable.service import background
from cronstable.threads import in_thread

if TYPE_CHECKING:
    from cronstable.web.context import House
    from cronstable.web.running import Material, Running

log = logging.getLogger("cronstable")

NOT_STARTED = "Error in the web configuration, so not starting the web API: %s"

Section = tuple["WebConfig | None", "McpConfig | None"]


@attrs.frozen
class _InForce:
    """What the running application was made from."""

    section: Section
    signature: Stamps


class WebService:
    """
    Serves the control API.

    C{reconcile} puts a configuration in force, C{each_minute} looks for changed files and binds
    what could not be bound, C{stop} ends it all.  None of them raises for what is wrong with the
    section.
    """

    def __init__(self, house: House, environ: Mapping[str, str]) -> None:
        self.house = house
        self._environ = environ
        self._lock = DeferredLock()
        self._running: Running | None = None
        self._in_force: _InForce | None = None
        self._refused: tuple[Section, Stamps, str] | None = None
        self._stopped = False

    @property
    def running(self) -> Running | None:
        """What is being served, None while nothing is."""
        return self._running

    async def reconcile(self, config: Config) -> None:
        """Serve what C{config} says."""
        self.house.config = config
        if self._running is not None:
            self._running.configuration_changed()
        await self._lock.run(self._reconcile)

    def each_minute(self) -> None:
        """Look whether files of the section changed, and try again what did not work."""
        if self._stopped or self.house.config.web is None:
            return
        if self._running is not None:
            self._running.each_minute()
        background("checking the web API", self._again())

    async def stop(self) -> None:
        """End every stream and serve nothing any more; repeating it does nothing."""
        if self._stopped:
            return
        self._stopped = True
        await self._lock.run(self._stop)

    async def _again(self) -> None:
        await self._lock.run(self._reconcile)

    async def _reconcile(self) -> None:
        if self._stopped:
            return
        web = self.house.config.web
        if web is None or not web.listen:
            await self._down()
            return
        section: Section = (web, self.house.config.mcp)
        signature = signature_of(web)
        in_force = self._in_force
        if in_force is None or in_force != _InForce(section, signature):
            material = await self._material(web, section, signature)
            if self._stopped:
                return
            if material is not None:
                self._serve(web, material)
                self._in_force = _InForce(section, signature)
                self._refused = None
            elif in_force is None or in_force.section != section:
                await self._down()
        if self._running is not None:
            await self._running.bind()

    async def _material(
        self, web: WebConfig, section: Section, signature: Stamps
    ) -> Material | None:
        """Load tokens and certificates; say why if that fails, once for each reason."""
        from cronstable.web.running import Unavailable, load_material

        try:
            if signature:
                reactor = self.house.reactor
                return await in_thread(reactor, "web", load_material, web, self._environ)
            return load_material(web, self._environ)
        except Unavailable as error:
            refused = (section, signature, str(error))
            if refused != self._refused:
                self._refused = refused
                if self._in_force is not None and self._in_force.section == section:
                    log.warning("web: %s; the listeners stay as they are", error)
                else:
                    log.error(NOT_STARTED, error)
            return None

    def _serve(self, web: WebConfig, material: Material) -> None:
        from cronstable.web.running import Running

        if self._running is None:
            self._running = Running(self.house)
        self._running.serve(web, material)

    async def _down(self) -> None:
        self._in_force = None
        if self._running is not None:
            await self._running.unbind()

    async def _stop(self) -> None:
        if self._running is not None:
            log.info("Stopping http server")
            await self._running.stop()


def signature_of(web: WebConfig) -> Stamps:
    """Return what changes when a file of the section does: its TLS and token files."""
    paths = [web.tls.cert, web.tls.key, web.tls.ca]
    secrets = [token.secret for token in web.auth_tokens]
    if web.auth_token is not None:
        secrets.append(web.auth_token)
    paths += [secret.from_file for secret in secrets if not secret.value]
    return stamps(paths)
