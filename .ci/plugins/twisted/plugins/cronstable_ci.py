"""Offers ``trial --reporter=ci``; found only where .ci/plugins is on the path."""

from types import SimpleNamespace

from twisted.plugin import IPlugin
from twisted.trial.itrial import IReporter
from zope.interface import directlyProvides

ci = SimpleNamespace(
    name="Outcomes of each test, kept in a file",
    module="ci_reporter",
    description="as verbose, and one JSON file for .ci/report.py",
    longOpt="ci",
    shortOpt=None,
    klass="OutcomeReporter",
)
directlyProvides(ci, IPlugin, IReporter)
