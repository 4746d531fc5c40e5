"""The value of a secret, from the first of its sources that is not empty."""

from __future__ import annotations

from collections.abc import Mapping

from cronstable.config.values import Secret


class SecretUnavailable(Exception):
    """A secret's source cannot be read or is empty; the message names the key, never the value."""


class SecretResolver:
    """
    Reads secrets: C{value}, else C{fromFile} (UTF-8, stripped, relative to the working
    directory), else C{fromEnvVar}.  A chosen source that fails is an error, not the next one.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def __call__(self, secret: Secret, key: str) -> str:
        """
        Return the value of C{secret}; this may read a file, so not on the reactor thread.

        @param key: the configuration key that an error names.
        @raise SecretUnavailable: no source is configured, or the chosen one gives nothing.
        """
        if secret.value:
            return secret.value
        if secret.from_file:
            return self._file(secret.from_file, key)
        if secret.from_env_var:
            value = self._environ.get(secret.from_env_var, "")
            if not value:
                raise SecretUnavailable(f"{key}.fromEnvVar: the variable is not set or empty")
            return value
        raise SecretUnavailable(f"{key}: expects value, fromFile or fromEnvVar")

    def _file(self, path: str, key: str) -> str:
        try:
            with open(path, encoding="utf-8-sig") as source:
                value = source.read().strip()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise SecretUnavailable(f"{key}.fromFile: cannot be read: {reason}") from None
        except UnicodeDecodeError:
            raise SecretUnavailable(f"{key}.fromFile: the file is not UTF-8") from None
        if not value:
            raise SecretUnavailable(f"{key}.fromFile: the file is empty")
        return value
