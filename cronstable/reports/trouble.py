"""What went wrong with a report, in words that may be logged: never a secret, URL or value."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class ReportFailed(Exception):
    """
    A report could not be delivered; the message is for the operator and names no secret.

    C{transient} says that another attempt may succeed.
    """

    def __init__(self, message: str, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


def one_line(text: str) -> str:
    """Return C{text} as one line without control characters, fit for a header or a log."""
    return _CONTROL.sub(" ", text).strip()


def network_trouble(where: str, error: BaseException) -> ReportFailed:
    """
    Say what happened to an exchange with C{where}, without the error's text, which may hold a URL.

    A certificate that was not accepted will not be accepted the next time; all else may pass.
    """
    for cause in _causes(error):
        known = _known(cause)
        if known is not None:
            return ReportFailed(f"{where}: {known}", transient=not known.startswith("TLS: "))
    return ReportFailed(f"{where}: the exchange failed ({type(error).__name__})", transient=True)


def _causes(error: BaseException) -> list[BaseException]:
    """Return the errors that an HTTP client wraps in C{error}, and then C{error} itself."""
    reasons = getattr(error, "reasons", None) or ()
    return [*(getattr(each, "value", each) for each in reasons), error]


def _known(error: BaseException) -> str | None:
    from twisted.internet import error as net
    from twisted.internet.defer import CancelledError, TimeoutError

    if isinstance(error, net.DNSLookupError):
        return "the host name does not resolve"
    if isinstance(error, net.ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, (TimeoutError, net.TimeoutError, net.ConnectingCancelledError)):
        return "no answer in time"
    if isinstance(error, CancelledError):
        return "it was cut short"
    name, module = type(error).__name__, type(error).__module__
    if name in ("VerificationError", "CertificateError") or module.startswith("service_identity"):
        return "TLS: the certificate is not for this host"
    if isinstance(error, net.SSLError) or module.startswith("OpenSSL"):
        return f"TLS: {_tls_reason(error)}"
    if isinstance(error, (net.ConnectionDone, net.ConnectionLost, net.ConnectionAborted)):
        return "the connection was closed early"
    if isinstance(error, net.ConnectError):
        return f"no connection ({name})"
    return None


def _tls_reason(error: BaseException) -> str:
    """Return OpenSSL's reason texts, which are constants of the library."""
    entries = error.args[0] if error.args and isinstance(error.args[0], (list, tuple)) else ()
    reasons = [str(entry[-1]) for entry in entries if isinstance(entry, tuple) and entry]
    return "; ".join(filter(None, reasons)) or "the handshake failed"
