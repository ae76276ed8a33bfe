"""The pytest plug-in: tests of GPU memory that need no GPU.

    @pytest.mark.fits("24GiB")              # or a card: fits("A100-80GB"); no request of the test is out of memory there
    @pytest.mark.max_reserved("20GiB")      # the allocator holds at most so much
    @pytest.mark.oom_at(3)                  # the third call that asks the device for memory fails, with its retries
    def test_a_step(): ...

Such a test runs in a process of its own, under `ashlar dry-run`: fixtures and parameters are made there, and its
outcome is reported as any other test's. Where a limit is broken it fails with the verdict. It also runs so on a machine
with a GPU. xdist's workers do the same.
"""

import os
from typing import Any, Iterator, List, Optional

import pytest

from ashlar_gpu import _pytest_child, _pytest_verdict
from ashlar_gpu._errors import Error
from ashlar_gpu._pytest_wanted import MARKS, Wanted, wanted_of


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ashlar", "GPU memory, without a GPU")
    group.addoption("--no-ashlar", action="store_true", dest="no_ashlar",
                    help="run tests that are marked fits, max_reserved or oom_at as any other, without their limits")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    for line in MARKS:
        config.addinivalue_line("markers", line)
    if os.environ.get(_pytest_child.FILE):
        config.pluginmanager.register(_pytest_child.Reporter(config), "ashlar_gpu.child")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Optional[bool]:
    config = item.config
    if config.pluginmanager.has_plugin("ashlar_gpu.child") or getattr(config.option, "no_ashlar", False):
        return None
    wanted: "Wanted | Error | None"
    try:
        wanted = wanted_of(item)
    except Error as error:
        wanted = error
    if wanted is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports(item, wanted):
        item.ihook.pytest_runtest_logreport(report=report)
    for report in _teardown(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _reports(item: pytest.Item, wanted: "Wanted | Error") -> List[pytest.TestReport]:
    try:
        if isinstance(wanted, Error):
            raise wanted
        run = _pytest_child.run(item, wanted)
    except Error as error:
        return [_failed(item, f"ashlar: {error}", "call")]
    return _pytest_verdict.judged(run, wanted, lambda text: _failed(item, text, "call"))


def _failed(item: pytest.Item, text: str, when: Any) -> pytest.TestReport:
    def fail() -> None:
        raise pytest.fail.Exception(text, pytrace=False) from None  # of the error that says so

    call = pytest.CallInfo.from_call(fail, when=when)
    return pytest.TestReport.from_item_and_call(item, call)


def _teardown(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Iterator[pytest.TestReport]:
    """What earlier tests of the module have set up, and the next test does not need, ends here as after any test."""
    call: Any = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown")
    if call.excinfo is not None:
        yield pytest.TestReport.from_item_and_call(item, call)
