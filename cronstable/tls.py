"""
The server side of TLS: material loaded and checked as a whole, then put in place.

docs/http-api.md, "TLS", tells operators what is required of the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from OpenSSL import SSL, crypto
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.internet.ssl import Certificate, CertificateOptions, trustRootFromCertificates
from twisted.protocols.tls import TLSMemoryBIOFactory
from zope.interface import implementer

if TYPE_CHECKING:
    from cronstable.config.sections_values import TlsFiles

_BEGIN = b"-----BEGIN CERTIFICATE-----"


class MaterialError(Exception):
    """TLS files cannot be used; the text names the file and the reason."""


def load(files: TlsFiles) -> CertificateOptions:
    """
    Read and check the files, and return what serves with them; blocks on the disk.

    Raises L{MaterialError}.
    """
    assert files.cert is not None and files.key is not None
    chain = _certificates(files.cert)
    key = _key(files.key)
    authorities = None if files.ca is None else _certificates(files.ca)
    try:
        options = CertificateOptions(
            privateKey=key,
            certificate=chain[0],
            extraCertChain=chain[1:],
            trustRoot=None if authorities is None else _trust(authorities),
        )
        context = options.getContext()
        context.check_privatekey()
    except SSL.Error as error:
        raise MaterialError(
            f"{files.cert}, {files.key}: the certificate cannot be served with this key"
            f" ({_reasons(error)})"
        ) from None
    if authorities is not None:
        context.set_client_ca_list([authority.get_subject() for authority in authorities])
    return options


@implementer(IOpenSSLServerConnectionCreator)
class Creator:
    """Makes the server side of each new connection with the material that is in place then."""

    def __init__(self, options: CertificateOptions) -> None:
        self.options = options

    def serverConnectionForTLS(self, protocol: Any) -> SSL.Connection:  # noqa: N802 - Twisted's
        """Return a connection that waits for a client."""
        return SSL.Connection(self.options.getContext(), None)


def wrapped(creator: Creator, factory: Any, clock: Any) -> TLSMemoryBIOFactory:
    """Return C{factory} behind TLS."""
    return TLSMemoryBIOFactory(creator, False, factory, clock=clock)


def _trust(authorities: Iterable[crypto.X509]) -> Any:
    return trustRootFromCertificates([Certificate(each) for each in authorities])


def _certificates(path: str) -> list[crypto.X509]:
    pem = _read(path)
    found = []
    for part in pem.split(_BEGIN)[1:]:
        try:
            found.append(crypto.load_certificate(crypto.FILETYPE_PEM, _BEGIN + part))
        except crypto.Error as error:
            raise MaterialError(f"{path}: not a PEM certificate ({_reasons(error)})") from None
    if not found:
        raise MaterialError(f"{path}: holds no PEM certificate")
    return found


def _key(path: str) -> crypto.PKey:
    try:
        # An empty passphrase, so that a locked key is an error instead of a question on a terminal.
        return crypto.load_privatekey(crypto.FILETYPE_PEM, _read(path), b"")
    except (crypto.Error, ValueError, TypeError) as error:
        raise MaterialError(f"{path}: not a PEM key that can be read ({_reasons(error)})") from None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as source:
            return source.read()
    except OSError as error:
        raise MaterialError(f"{path}: {os.strerror(error.errno or 0)}") from None


def _reasons(error: Exception) -> str:
    """Return what OpenSSL says was wrong, without anything of the material."""
    details = error.args[0] if error.args else None
    if isinstance(details, list):
        return "; ".join(str(each[-1]) for each in details if each) or "no details"
    return type(error).__name__
