"""Build and install cronstable; see README.md for the two commands that matter."""

from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent

release: dict[str, str] = {}
exec((HERE / "cronstable" / "version.py").read_text(encoding="utf-8"), release)

TEST = [
    "aiosmtpd",
    "coverage[toml]",
    "croniter",
    "hypothesis",
    "jsonschema-rs",
    "prometheus-client>=0.20",
    "schemathesis>=4",
    "setuptools>=64",
    "treq>=24.9",
    "wheel",
]
SENTRY = ["sentry-sdk>=2"]
LINT = [
    "mypy",
    "mypy-zope",
    "ruff",
    "types-croniter",
    "types-psutil",
    "types-PyYAML",
]

setup(
    name="cronstable",
    version=release["__version__"],
    description="A cron replacement that remembers, retries and reports its jobs.",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    python_requires=">=3.10",
    # The explicit root makes editable installs a path entry, by which Twisted finds the plugin.
    package_dir={"": "."},
    packages=[*find_packages(include=["cronstable", "cronstable.*"]), "twisted.plugins"],
    package_data={"cronstable.web": ["openapi.yaml", "page/*", "page/**/*"]},
    zip_safe=False,
    install_requires=[
        "attrs>=22.2",
        "Jinja2>=3",
        "klein>=24.8",
        "psutil>=5.9",
        "PyYAML>=6",
        "Twisted[tls]>=24.7",
        "tzdata",
    ],
    extras_require={
        "test": [*TEST, *SENTRY],
        "sentry": SENTRY,
        "lint": LINT,
        "dev": [*TEST, *SENTRY, *LINT, "tox"],
    },
    entry_points={"console_scripts": ["cronstable = cronstable.commands.main:main"]},
    classifiers=[
        "Environment :: No Input/Output (Daemon)",
        "Framework :: Twisted",
        "Operating System :: POSIX",
        "Programming Language :: Python :: 3",
        "Topic :: System :: Systems Administration",
    ],
)
