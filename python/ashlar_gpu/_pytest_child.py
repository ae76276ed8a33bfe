"""The process in which a marked test runs, from both sides: how it is started, and how it tells its reports.

The reports go through a file, a JSON object a line, in pytest's own form for other processes.
"""

import dataclasses
import json
import os
import sys
import tempfile
from typing import Any, Dict, List

import pytest

from ashlar_gpu import _dry_run, _program
from ashlar_gpu._decode import decode
from ashlar_gpu._pytest_wanted import Wanted
from ashlar_gpu.results.dry_run import DryRun

FILE = "ASHLAR_PYTEST_CHILD"  # in the child's environment: where its reports go
PLUGIN = "ashlar_gpu.pytest_plugin"
# Options that are about a whole run of pytest, or about its output.
OF_THE_RUN = frozenset("""
    file_or_dir verbose capture usepdb usepdb_cls trace numprocesses maxprocesses dist tx maxworkerrestart testrunuid
    rsyncdir looponfail maxfail keyword markexpr lf failedfirst newfirst last_failed_no_failures cacheclear cacheshow
    stepwise stepwise_skip stepwise_reset xmlpath junitprefix collectonly help version setupplan setuponly setupshow
    durations durations_min reportchars disable_warnings no_header no_summary color code_highlight log_file
    deselect ignore ignore_glob collect_in_virtualenv pyargs basetemp debug plugins override_ini rootdir inifilename
    confcutdir noconftest keepduplicates importmode no_ashlar pythonwarnings reportlog report_log htmlpath
    traceconfig pastebin doctestmodules showlocals tbstyle
    """.split())


@dataclasses.dataclass
class ChildRun:
    dry_run: DryRun
    reports: List[Any]  # pytest's, in their order


class Reporter(object):
    """The plug-in in the child."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.file = os.environ.pop(FILE)  # processes of the test are no children of ours
        for key, value in _read(self.file + ".options").items():
            if hasattr(config.option, key):
                setattr(config.option, key, value)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self) -> None:
        """Tracebacks are the test's: without the frames of the hollow device, through which its operations went."""
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "ashlar_hollow":
                setattr(module, "__tracebackhide__", True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        with open(self.file, "a", encoding="utf-8") as out:
            out.write(json.dumps(data) + "\n")


def run(item: pytest.Item, wanted: Wanted) -> ChildRun:
    config = item.config
    with tempfile.TemporaryDirectory(prefix="ashlar-") as folder:
        file = os.path.join(folder, "reports")
        with open(file + ".options", "w", encoding="utf-8") as out:
            json.dump(_options(config), out)
        ran = _program.run(["dry-run", *wanted.arguments()], program=_command(item, folder),
                           env={**os.environ, FILE: file, "PYTHONPATH": _path()}, cwd=str(config.invocation_params.dir))
        _program.answered(ran, "dry-run")
        reports = [config.hook.pytest_report_from_serializable(config=config, data=data) for data in _lines(file)]
    stderr, text = _dry_run.report_apart(ran.stderr)
    if config.option.capture == "no":
        sys.stdout.write(ran.stdout)
        sys.stderr.write(stderr)
    dry = decode(DryRun, ran.json, text=text, json=ran.json, stdout=ran.stdout, stderr=stderr, history=None)
    return ChildRun(_dry_run.with_explanation(dry), reports)


def _command(item: pytest.Item, folder: str) -> List[str]:
    config, option = item.config, item.config.option
    _, _, within = item.nodeid.partition("::")
    out = [_program.python(), "-m", "pytest", f"{item.path}::{within}", "--rootdir", str(config.rootpath),
           "-o", f"cache_dir={os.path.join(folder, 'cache')}", f"--tb={option.tbstyle}", "--capture",
           option.capture if option.capture in ("fd", "sys", "no") else "fd"]
    if config.pluginmanager.get_name(sys.modules[PLUGIN]) == PLUGIN:  # else an installed package brings it along
        out += ["-p", PLUGIN]
    if config.inipath is not None:
        out += ["-c", str(config.inipath)]
    if config.pluginmanager.has_plugin("xdist"):
        out += ["-p", "no:xdist"]
    for plugin in option.plugins or ():
        out += [] if plugin in (PLUGIN, "no:xdist") else ["-p", plugin]
    for ini in option.override_ini or ():
        out += ["-o", ini]
    for warning in option.pythonwarnings or ():
        out += ["-W", warning]
    out += ["--showlocals"] if option.showlocals else []
    return out + [f"--import-mode={option.importmode}"]


def _options(config: pytest.Config) -> Dict[str, Any]:
    """Those that plug-ins and conftest.py added, as far as they can be told."""
    out: Dict[str, Any] = {}
    for key, value in vars(config.option).items():
        if key in OF_THE_RUN or not isinstance(value, (str, int, float, bool, list, type(None))):
            continue
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            continue
        out[key] = value
    return out


def _path() -> str:
    """PYTHONPATH with this package, however it was found, before what is there."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    there = os.environ.get("PYTHONPATH", "")
    return ours if not there else there if ours in there.split(os.pathsep) else there + os.pathsep + ours


def _lines(file: str) -> List[Any]:
    try:
        with open(file, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    except FileNotFoundError:
        return []


def _read(file: str) -> Dict[str, Any]:
    with open(file, encoding="utf-8") as text:
        return dict(json.load(text))
