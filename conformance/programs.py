"""Programs, unchanged, over the hollow device: what they tell, their peak, and how much of their history replays."""
import fidelity
import histories
import venvs
from bench import AMPLE, PROGRAMS
from catalog import PROGRAMS as CATALOG
from rows import Row, Verdict
from sizes import mib, seconds

HOME = 'torch-2.14.1'


def dry_run(bench, program, flags=(), environment=None, most_seconds=180):
    devices = ['--devices', str(program.ranks)] if program.ranks else []
    return bench.dry_run(venvs.python_of(HOME), program.command(), AMPLE + devices + list(flags), environment,
                         most_seconds, cwd=PROGRAMS)


def expect_told(program, run, verdict):
    """One line a rank, each with what the program must have done."""
    verdict.equal('exit code', run.code, 0)
    if run.code != 0:
        verdict.failures.append(run.last_line)
    verdict.equal('processes that told what they did', len(run.told), program.ranks or 1)
    for line in run.told:
        for key, wanted in program.did.items():
            got = line.get(key)
            verdict.expect(wanted(got) if callable(wanted) else got == wanted, f'{key} is {got}')
    ranks = sorted(line['rank'] for line in run.told if 'rank' in line)
    if program.ranks and ranks:
        verdict.equal('ranks', ranks, list(range(program.ranks)))


def measure(bench, program):
    run = dry_run(bench, program)
    verdict = Verdict()
    expect_told(program, run, verdict)
    verdict.cells.update({'command': ' '.join(['python'] + program.command()), 'time': seconds(run.seconds)})
    if run.told:
        most = max(run.told, key=lambda line: line['peak_reserved'])
        verdict.cells.update({'allocated': mib(most['peak_allocated']), 'reserved': mib(most['peak_reserved'])})
        device = run.torch()
        verdict.equal('peak that the report has', device and device['peak_reserved_bytes'], most['peak_reserved'])
    if run.report:
        verdict.cells['made-up values'] = f'{run.report["made_up"]["total"]:,}'
    if verdict.failures and not run.told:
        return verdict
    fidelity.expect_all(bench, run, verdict)
    return verdict


def reproducible(bench, program, conf='', flags=AMPLE, environment=None, copy=0):
    """One run that is alike every time; made once for all who ask."""
    settings = ['--reproducible'] + (['--conf', conf] if conf else [])
    small = sorted((environment or {}).items())

    def make():
        return bench.dry_run(venvs.python_of(HOME), program.command(), list(flags) + settings, environment, 180,
                             cwd=PROGRAMS)

    return bench.once((program.name, conf, tuple(flags), tuple(small), copy), make)


def compare(one, other, what, verdict, frees_in_any_order=False):
    """Both runs' only history, event by event. "equal", or how, or "differ"."""
    if not one.histories or not other.histories:
        verdict.failures.append(f'{what}: a run left no history: {(other.last_line or one.last_line)}')
        return 'differ'
    left, right = (histories.events(histories.load(run.histories[0])) for run in (one, other))
    difference = histories.first_difference(left, right)
    if difference is None:
        return 'equal'
    if frees_in_any_order:
        alike = (histories.order_of_frees_apart(events) for events in (left, right))
        if histories.first_difference(*alike) is None:
            return 'equal but for the order of frees in one go'
    verdict.failures.append(f'{what}: {difference}')
    return 'differ'


def repeat(bench, program):
    verdict = Verdict()
    first = reproducible(bench, program)
    twice = compare(first, reproducible(bench, program, copy=1), 'twice', verdict, True)
    if first.histories:
        verdict.cells['events'] = f'{len(histories.events(histories.load(first.histories[0]))):,}'
    verdict.cells['twice'] = twice
    if program.needs_values:
        verdict.cells['without small values'] = 'its way hangs on them'
        return verdict
    without = reproducible(bench, program, environment={'ASHLAR_SMALL_VALUES': '0'})
    verdict.equal('exit code without small values', without.code, 0)
    verdict.cells['without small values'] = compare(first, without, 'without small values', verdict, True)
    return verdict


def rows():
    out = [Row('programs', p.name, p.seconds, lambda bench, p=p: measure(bench, p)) for p in CATALOG]
    single = [p for p in CATALOG if not p.ranks]
    return out + [Row('repeated', p.name, 3 * p.seconds, lambda bench, p=p: repeat(bench, p)) for p in single]
