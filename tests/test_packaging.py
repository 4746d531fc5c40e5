"""Tests of what an installation gives: built from this checkout, without the network."""

from __future__ import annotations

import importlib.util
import os
import shutil
import site
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from cronstable import __version__

ROOT = Path(__file__).resolve().parents[1]
TWISTD = "import sys; from twisted.scripts.twistd import run; sys.argv[0] = 'twistd'; run()"
STOPS_ITSELF = """\
jobs:
  - name: stop
    schedule: "* * * * * * *"
    command: echo stopping; kill -TERM $PPID
    captureStdout: true
"""


class InstallationTestCase(SynchronousTestCase):
    """A copy of the sources, and an environment that has everything but cronstable."""

    def setUp(self) -> None:
        if importlib.util.find_spec("pip") is None:
            raise SkipTest("pip is not installed")
        self.work = Path(self.mktemp()).resolve()
        self.sources = self.work / "sources"
        self.venv = self.work / "venv"
        self.sources.mkdir(parents=True)
        for name in ("cronstable", "twisted", "tests", "contrib"):
            shutil.copytree(
                ROOT / name,
                self.sources / name,
                ignore=shutil.ignore_patterns("__pycache__", "dropin.cache"),
            )
        for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, self.sources)

    def make_environment(self) -> None:
        """Make the environment; what cronstable requires is borrowed from the one of the test."""
        self.run_python("-m", "venv", "--without-pip", str(self.venv), python=sys.executable)
        borrowed = {*site.getsitepackages(), sysconfig.get_paths()["purelib"]}
        (self.site_packages / "borrowed.pth").write_text("\n".join(sorted(borrowed)) + "\n")

    @property
    def site_packages(self) -> Path:
        """Where the environment keeps its packages."""
        return next(self.venv.glob("lib/python*/site-packages"))

    def files(self) -> list[Path]:
        """Return every file in the environment's packages."""
        return sorted(path for path in self.site_packages.rglob("*") if path.is_file())

    def run_python(
        self, *argv: str, python: str | None = None, prefix: tuple[str, ...] = ()
    ) -> str:
        """Run Python and return its stdout; what it says is shown if it fails."""
        done = subprocess.run(
            [*prefix, python or str(self.venv / "bin" / "python"), *argv],
            cwd=self.work,
            env={**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def pip(self, *argv: str) -> None:
        """Run pip of the test's environment, offline."""
        self.run_python("-m", "pip", "-q", *argv, python=sys.executable)

    def build_wheel(self) -> Path:
        """Build the wheel and return its path."""
        self.pip(
            *("wheel", "--no-deps", "--no-index", "--no-build-isolation"),
            *("-w", str(self.work), str(self.sources)),
        )
        return next(self.work.glob("*.whl"))

    def install(self, *what: str) -> None:
        """Install into the environment."""
        self.pip(
            *("--python", str(self.venv / "bin" / "python"), "install", "--no-deps"),
            *("--no-index", "--no-build-isolation", "--disable-pip-version-check", *what),
        )

    def assert_works(self, *prefix: str) -> None:
        """Fail unless both commands of the installation work when run behind C{prefix}."""
        printed = self.run_python(str(self.venv / "bin" / "cronstable"), "--version", prefix=prefix)
        self.assertEqual(printed, f"{__version__}\n")
        self.assertRegex(self.run_python("-c", TWISTD, "--help", prefix=prefix), r"\n +cronstable ")
        usage = self.run_python("-c", TWISTD, "cronstable", "--help", prefix=prefix)
        self.assertIn("--config", usage)
        (self.work / "stop.yaml").write_text(STOPS_ITSELF)
        daemon = ("-n", "--pidfile=", "cronstable", "-c", str(self.work / "stop.yaml"))
        printed = self.run_python("-c", TWISTD, *daemon, prefix=prefix)
        self.assertIn("[stop stdout] stopping", printed)


class WheelTests(InstallationTestCase):
    """An ordinary installation."""

    def test_contents(self) -> None:
        """The wheel has every module and data file, the plugin alone of twisted, and no tests."""
        with zipfile.ZipFile(self.build_wheel()) as wheel:
            names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        package = self.sources / "cronstable"
        wanted = {
            str(path.relative_to(self.sources))
            for path in package.rglob("*")
            if path.is_file() and (path.suffix in (".py", ".yaml") or "page" in path.parts)
        }
        self.assertEqual(names, wanted | {"twisted/plugins/cronstable_plugin.py"})

    def test_read_only(self) -> None:
        """Both commands work where site-packages cannot be written, and leave nothing there."""
        self.make_environment()
        self.install(str(self.build_wheel()))
        for directory, _, _ in os.walk(self.site_packages):
            os.chmod(directory, 0o555)
            self.addCleanup(os.chmod, directory, 0o755)
        before = self.files()
        self.assert_works(*_without_root_override())
        self.assertEqual(self.files(), before)

    def test_uninstall(self) -> None:
        """Taking it away takes the plugin away and leaves those of others."""
        self.make_environment()
        plugins = self.site_packages / "twisted" / "plugins"
        plugins.mkdir(parents=True)
        (plugins / "other.py").write_text("")
        before = self.files()
        self.install(str(self.build_wheel()))
        self.assertTrue((plugins / "cronstable_plugin.py").exists())
        self.pip("--python", str(self.venv / "bin" / "python"), "uninstall", "-y", "cronstable")
        self.assertEqual(self.files(), before)


class EditableTests(InstallationTestCase):
    """An installation for developers."""

    def test_plugin_is_found(self) -> None:
        """The checkout's plugin is found by twistd wherever it is started."""
        self.make_environment()
        self.install("-e", str(self.sources))
        self.assert_works()


def _without_root_override() -> tuple[str, ...]:
    """Return a prefix under which read-only directories are read-only for root as well."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        raise SkipTest("setpriv is not installed")
    return ("setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override")
