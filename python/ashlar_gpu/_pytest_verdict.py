"""The outcome of a marked test: its own reports, and what its limits make of them."""

from typing import Any, Callable, List, Optional

from ashlar_gpu import _verdict
from ashlar_gpu._pytest_child import ChildRun
from ashlar_gpu._html import size
from ashlar_gpu._pytest_wanted import Wanted
from ashlar_gpu.results.dry_run import DryRun

TITLE = "ashlar"
CRASH = ("Fatal Python error", "terminate called")
LINES = 15  # of a process's stderr


def judged(run: ChildRun, wanted: Wanted, failed: Callable[[str], Any]) -> List[Any]:
    """The reports; that of the call fails where a limit is broken."""
    calls = [at for at, report in enumerate(run.reports) if report.when == "call"]
    if not any(report.when == "teardown" for report in run.reports):
        return [*run.reports[:-1 if calls else None], failed(_ended(run.dry_run))]
    if not calls:
        return run.reports  # skipped, or a fixture failed: nothing to hold against a limit
    call = run.reports[calls[0]]
    call.user_properties.append(("ashlar_peak_bytes", run.dry_run.peak_bytes))
    broken = broken_limit(run.dry_run, wanted)
    if call.failed and broken is not None:
        _add(call, broken, explained(run.dry_run))
    elif call.passed and broken is not None:
        made = failed(f"{broken}\n\n{explained(run.dry_run)}".strip())
        made.duration, made.sections, made.user_properties = call.duration, call.sections, call.user_properties
        run.reports[calls[0]] = made
    return run.reports


def broken_limit(dry_run: DryRun, wanted: Wanted) -> Optional[str]:
    """In one line; None: all were kept."""
    if not dry_run.peak_bytes:
        return "the test used no device: its marks hold nothing; take them away, or let it allocate"
    if wanted.oom_at is not None and not _failures(dry_run):
        return (f"oom_at({wanted.oom_at}): nothing failed, the test asked the device for memory fewer than "
                f"{wanted.oom_at} times")
    if wanted.fits is not None and wanted.oom_at is None and dry_run.fits is False:
        verdict = dry_run.explanation.verdict.replace("_", " ") if dry_run.explanation is not None else "out of memory"
        return f"does not fit {wanted.fits}: {verdict}"
    limit, reserved = wanted.max_reserved_bytes, _reserved(dry_run)
    if limit is not None and reserved > limit:
        return f"max_reserved({wanted.max_reserved}): {size(reserved)} were reserved, {size(reserved - limit)} too much"
    return None


def explained(dry_run: DryRun) -> str:
    text = dry_run.explanation.text if dry_run.explanation is not None else ""
    return _verdict.brief(text) or dry_run.text


def _failures(dry_run: DryRun) -> int:
    return sum(device.out_of_memory for process in dry_run.processes if process.books is not None
               for device in process.books.devices)


def _reserved(dry_run: DryRun) -> int:
    """By PyTorch's allocator of the process that held most; of a native program what the device gave."""
    peaks = [0]
    for process in dry_run.processes:
        if process.torch is not None:
            peaks += [device.peak_reserved_bytes for device in process.torch.devices]
        elif process.books is not None:
            peaks += [device.peak_bytes - device.context_bytes for device in process.books.devices]
    return max(peaks)


def _add(report: Any, broken: str, text: str) -> None:
    """The traceback stays; the verdict comes after it, and first in the line of the summary."""
    if hasattr(report.longrepr, "addsection"):
        report.longrepr.addsection(TITLE, f"{broken}\n\n{text}")
        crash = getattr(report.longrepr, "reprcrash", None)
        if crash is not None:
            crash.message = f"{broken} ({crash.message})"
    else:
        report.longrepr = f"{report.longrepr}\n\n{broken}\n\n{text}"


def _excerpt(lines: List[str]) -> List[str]:
    """From where a crash begins to speak; else the last lines."""
    begins = next((at for at, line in enumerate(lines) if line.startswith(CRASH)), None)
    return lines[-LINES:] if begins is None else lines[begins:begins + LINES]


def _ended(dry_run: DryRun) -> str:
    last = "\n".join(_excerpt(dry_run.stderr.strip().splitlines()))
    how = dry_run.ended_early.what if dry_run.ended_early is not None else f"exit code {dry_run.exit_code}"
    seen = f"; until then its peak was {size(dry_run.peak_bytes)}" if dry_run.peak_bytes else ""
    return f"ashlar: the test's process ended with {how} before the test did{seen}\n{last}\n{dry_run.stdout[-2000:]}".strip()
