"""The plug-in of pytest, by pytest's own pytester. The tests inside call the hollow device's driver by ctypes.

    ASHLAR_PREFIX=build/release PYTHONPATH=python python3 -m pytest -p pytester pytest_plugin_cases.py
"""

import pytest

DEVICE = """
import ctypes
import pytest

def allocate(mib):
    '''CUDA's error: 0, or 2 where memory is out.'''
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, address = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(context)
    return cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib << 20))
"""


@pytest.fixture
def run(pytester):
    pytester.makepyfile(device=DEVICE)

    def of(code, *words, **files):
        pytester.makepyfile(**{"test_it": "from device import *\n" + code, **files})
        return pytester.runpytest_subprocess("-p", "ashlar_gpu.pytest_plugin", *words)

    return of


def test_what_fits_passes_with_its_fixtures_and_parameters(run):
    result = run("""
@pytest.fixture
def size(request): return 10

@pytest.mark.fits("1GiB", context="100MiB")
@pytest.mark.parametrize("times", [1, 2], ids=["a[b]", "c d"])
def test_fits(size, times): assert allocate(size * times) == 0

class TestClass:
    @pytest.mark.fits("T4")
    def test_card(self, tmp_path): assert allocate(1024) == 0
""", "-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*test_fits?a?b?? PASSED*"])


def test_what_does_not_fit_fails_with_the_verdict(run):
    result = run("""
@pytest.mark.fits("512MiB", context="100MiB")
def test_caught(): assert allocate(600) == 2

@pytest.mark.fits("512MiB", context="100MiB")
def test_raises(): assert allocate(600) == 0
""")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*does not fit 512MiB: capacity*", "*OUT OF MEMORY*600.00 MiB requested*",
                                 "*WHERE 512.00 MiB WENT*", "FAILED test_it.py::test_caught - *does not*"])


def test_max_reserved(run):
    result = run("""
@pytest.mark.max_reserved("100MiB")
def test_little(): assert allocate(90) == 0

@pytest.mark.max_reserved("100MiB")
def test_much(): assert allocate(110) == 0
""")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*max_reserved(100MiB): 110.00 MiB were reserved, 10.00 MiB too much*"])


def test_oom_at_fails_the_nth_call_and_its_repeats(run):
    result = run("""
@pytest.mark.oom_at(2)
def test_second(): assert [allocate(mib) for mib in (10, 20, 20, 20, 20, 10)] == [0, 2, 2, 2, 0, 0]

@pytest.mark.oom_at(2)
def test_another_size_is_served(): assert [allocate(mib) for mib in (10, 20, 10, 20)] == [0, 2, 0, 0]

@pytest.mark.oom_at(3)
def test_nothing_fails(): allocate(10)
""")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*oom_at(3): nothing failed, the test asked the device for memory fewer than 3 times*"])


def test_a_mark_that_holds_nothing_fails(run):
    result = run("@pytest.mark.fits('1GiB')\ndef test_host(): pass\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the test used no device*"])


def test_other_outcomes_are_what_they_are(run):
    result = run("""
@pytest.fixture
def broken(): raise ValueError("no fixture")

@pytest.mark.fits("1GiB")
def test_skipped(): pytest.skip("not today")

@pytest.mark.fits("1GiB")
@pytest.mark.xfail(strict=True)
def test_xfail(): assert False

@pytest.mark.fits("1GiB")
def test_error(broken): pass

@pytest.mark.fits("1GiB")
def test_own_failure(): print("said"); allocate(1); assert 1 == 2
""")
    result.assert_outcomes(skipped=1, xfailed=1, errors=1, failed=1)
    result.stdout.fnmatch_lines(["*ValueError: no fixture*", "*assert 1 == 2*", "*Captured stdout call*", "said"])


def test_a_process_that_ends_is_a_failure(run):
    result = run("""
import os, signal
@pytest.mark.fits("1GiB")
def test_exits(): os._exit(7)

@pytest.mark.fits("1GiB")
def test_killed(): os.kill(os.getpid(), signal.SIGSEGV)
""")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*ended with exit code 7 before the test did*", "*ended with signal 11 (SIGSEGV) before*"])


def test_what_a_crash_says_is_shown_from_its_beginning(run):
    result = run("""
import os, sys
@pytest.mark.fits("1GiB")
def test_killed(capfd):
    with capfd.disabled():
        for at in range(20): print("before", at, file=sys.stderr)
        sys.stderr.flush()
        def deeper(n): return deeper(n - 1) if n else ctypes.string_at(0)
        deeper(40)

@pytest.mark.fits("1GiB")
def test_aborted(capfd):
    with capfd.disabled():
        os.write(2, b"before\\nterminate called after throwing an instance of 'Error'\\n  what():  mine\\n")
        os._exit(134)
""")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*ended with signal 11 (SIGSEGV) before*", "Fatal Python error: Segmentation fault",
                                 "*ended with signal 6 (SIGABRT) before*", "terminate called after*", "  what():  mine"])
    assert "before 19" not in result.stdout.str()


def test_what_a_mark_may_say(run):
    result = run("""
@pytest.mark.fits()
def test_nothing(): pass

@pytest.mark.fits("X9000")
def test_unknown(): pass

@pytest.mark.oom_at("2")
def test_text(): pass

@pytest.mark.max_reserved("much")
def test_size(): pass
""")
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(["ashlar: the mark fits takes one value*", "ashlar: *X9000*", "ashlar: oom_at('2')*",
                                 "ashlar: 'much' is no size*"])
    said = [line for line in result.outlines if "takes one value" in line and not line.startswith("FAILED")]
    assert len(said) == 1
    assert not any("During handling" in line for line in result.outlines)


def test_other_tests_of_the_module_keep_their_fixtures(run):
    result = run("""
@pytest.fixture(scope="module")
def shared(): yield []; print("ended")

def test_before(shared): shared.append(1)

@pytest.mark.fits("1GiB")
def test_marked(shared): assert shared == [] and allocate(1) == 0
""", test_last="def test_last(): pass\n")
    result.assert_outcomes(passed=3)


def test_options_and_settings_are_the_childs_too(run, pytester):
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--mine', default='no')\n")
    pytester.makeini("[pytest]\nmarkers = extra: one of ours\naddopts = --strict-markers\n")
    result = run("""
@pytest.mark.extra
@pytest.mark.fits("1GiB")
def test_option(request):
    allocate(1)
    assert request.config.getoption("--mine") == "yes"
""", "--mine=yes")
    result.assert_outcomes(passed=1)


def test_an_installed_package_brings_it_along(pytester):
    made = pytester.mkdir("ashlar_gpu-1.dist-info")
    made.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: ashlar-gpu\nVersion: 1\n")
    made.joinpath("entry_points.txt").write_text("[pytest11]\nashlar_gpu = ashlar_gpu.pytest_plugin\n")
    pytester.syspathinsert()
    pytester.makepyfile(device=DEVICE, test_it="from device import *\n@pytest.mark.fits('512MiB', context='100MiB')\n"
                        "@pytest.mark.parametrize('mib', [100, 600])\ndef test_size(mib): assert allocate(mib) == 0\n")
    pytester.runpytest_subprocess().assert_outcomes(passed=1, failed=1)


def test_without_us(run):
    run("@pytest.mark.fits('1GiB')\ndef test_host(): pass\n", "--no-ashlar").assert_outcomes(passed=1)


def test_workers_of_xdist(run):
    pytest.importorskip("xdist")
    result = run("""
@pytest.mark.fits("512MiB", context="100MiB")
@pytest.mark.parametrize("mib", [100, 600])
def test_size(mib): assert allocate(mib) == 0
""", "-n", "2")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*does not fit 512MiB: capacity*"])
