"""Certificates for tests: an authority of their own, and whatever it is asked to sign."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import Any

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = datetime.timedelta(days=1)


@attrs.frozen
class Pair:
    """Paths of a certificate and of its key, both PEM."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority whose files are in C{directory}."""

    def __init__(self, directory: Path, name: str = "ca.example.org") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        builder = self._builder(self._name, self._key, expired=False)
        self._certificate = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        ).sign(self._key, hashes.SHA256())
        self.cert = directory / f"{name}.crt"
        self.cert.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self,
        name: str,
        hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
        *,
        expired: bool = False,
    ) -> Pair:
        """Sign a certificate for C{hosts}, good as a server and as a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            self._builder(_name(name), key, expired)
            .add_extension(x509.SubjectAlternativeName([_host(each) for each in hosts]), False)
            .add_extension(x509.ExtendedKeyUsage(usages), False)
            .sign(self._key, hashes.SHA256())
        )
        pair = Pair(self.directory / f"{name}.crt", self.directory / f"{name}.key")
        pair.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return pair

    def trust_root(self) -> Any:
        """Return this authority as Twisted wants it for C{trustRoot}."""
        from twisted.internet.ssl import Certificate, trustRootFromCertificates

        return trustRootFromCertificates([Certificate.loadPEM(self.cert.read_bytes())])

    def _builder(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, expired: bool
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.timezone.utc)
        first, last = (now - 3 * _DAY, now - _DAY) if expired else (now - _DAY, now + 2 * _DAY)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(first)
            .not_valid_after(last)
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
