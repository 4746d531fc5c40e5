"""TLS towards mail servers: verified against the system's roots, or not at all when told so."""

from __future__ import annotations

from typing import Any

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from zope.interface import implementer


def client_tls(host: str, validate: bool, trust_root: Any = None) -> Any:
    """
    Return an C{IOpenSSLClientConnectionCreator} for a connection to C{host}.

    @param trust_root: what a certificate must be signed by; None = the system's roots.
    """
    from twisted.internet.ssl import optionsForClientTLS

    if not validate:
        return _Unverified(host)
    return optionsForClientTLS(host, trustRoot=trust_root)


@implementer(IOpenSSLClientConnectionCreator)
class _Unverified:
    """Encrypts, and takes any certificate: C{validate_certs: false}."""

    def __init__(self, host: str) -> None:
        from twisted.internet.ssl import CertificateOptions

        self._options = CertificateOptions()
        self._name = None if isIPAddress(host) or isIPv6Address(host) else host

    def clientConnectionForTLS(self, tls_protocol: Any) -> Any:  # noqa: N802 - the interface's name
        """Create the TLS connection."""
        from OpenSSL.SSL import Connection

        connection = Connection(self._options.getContext(), None)
        if self._name is not None:
            connection.set_tlsext_host_name(self._name.encode("idna"))
        return connection
