"""Who holds the memory by name: of a peak in the middle, and hidden. Seeded programs at their failure: how much of what is
live has a name, how long the look took, and who holds most.

The programs are a measurement, not a gate: --only holders, or --named. Everything that is live has one owner, else the row fails.
"""
import glob
import os
import pickle

import advice
import histories
import venvs
from bench import PROGRAMS
from rows import Row, Verdict
from sizes import mib

KEY = 'ashlar_names'
NAMELESS = ('not_found', 'unseen')
ENOUGH = 0.85


def records_of(run):
    """The names in each snapshot of a failure, in their order."""
    files = sorted(glob.glob(os.path.join(os.path.dirname(run.histories[0]), 'oom-*')), key=os.path.getmtime)
    out = []
    for path in files:
        with open(path, 'rb') as file:
            out.append(pickle.load(file).get(KEY))
    return out


def live_bytes_of(record):
    return sum(holder['bytes'] for holder in record['holders'])


def shown(holder):
    nodes = f', graph of {holder["nodes"]:,} nodes' if holder.get('nodes') else ''
    place = f' in {os.path.basename(holder["file"])}' if holder.get('file') else ''
    return f'{mib(holder["bytes"])} {holder["kind"]} {holder["name"]}{place}{nodes}'


def measure(bench, seed):
    verdict = Verdict()
    run, _, _ = advice.run_seed(bench, seed)
    records = [record for record in records_of(run) if record is not None] if run.histories else []
    verdict.expect(records, 'no snapshot of a failure has names')
    if not records:
        return verdict
    last = records[-1]
    verdict.equal('bytes of all holders', live_bytes_of(last), last['live_bytes'])
    named = last['live_bytes'] - sum(one['bytes'] for one in last['holders'] if one['kind'] in NAMELESS)
    share = named / last['live_bytes'] if last['live_bytes'] else 1.0
    verdict.cells.update({'planted': seed.causes[0], 'live': mib(last['live_bytes']), 'named': f'{share:.1%}',
                          'took': f'{last["seconds"]:.1f} s', 'objects': f'{last["objects"]:,}'})
    largest = sorted(last['holders'], key=lambda one: (-one['bytes'], one['name']))
    for place, holder in zip(('most', 'then'), largest):
        verdict.cells[place] = shown(holder)
    verdict.expect(last['bound'] is None, f'the walk met its bound of {last["bound"]}')
    verdict.scores['85 % and more of the live bytes have a name'] = share >= ENOUGH
    verdict.scores['96 % and more of the live bytes have a name'] = share >= 0.96
    return verdict


def asks_nobody(bench):
    """Looked at or not, the program fails at the same requests, and none of its objects is asked anything."""
    verdict, runs = Verdict(), {}
    for names in ('off', '10s'):
        calls = os.path.join(bench.new_folder('calls'), 'calls')
        flags = ['--reproducible', '--capacity', '3GiB', '--names', names, '--calls', calls]
        run = bench.dry_run(venvs.python_of('torch-2.14.1'), ['-B', os.path.join(PROGRAMS, 'hostile.py')], flags)
        with open(calls, encoding='utf-8') as file:
            runs[names] = run, file.read(), histories.events(histories.load(run.histories[0])), records_of(run)
    (off, off_calls, off_events, none), (on, on_calls, on_events, taken) = runs.values()
    verdict.equal('exit code', (off.code, on.code), (0, 0))
    verdict.expect(on.told and on.told[0]['failures'] > 2, 'no request failed')
    verdict.equal('what was asked', on.told[0]['asked'], [])
    verdict.expect(off.told[0] == on.told[0], f'the program tells {off.told[0]} and {on.told[0]}')
    verdict.expect(off_calls == on_calls, 'the calls of the device differ')
    difference = histories.first_difference(off_events, on_events)
    verdict.expect(difference is None, f'the histories differ at {difference}')
    verdict.expect(not any(none) and all(taken), 'names are taken where they are asked for, and only there')
    verdict.cells['events'] = f'{len(on_events):,} the same'
    return verdict


def goes_as_without(bench):
    """What a failure lets go, a graph above all, goes in the order of a run that nobody looks at; and the look has its names."""
    verdict, told = Verdict(), {}
    for names in ('off', '10s'):
        run = bench.dry_run(venvs.python_of('torch-2.14.1'), ['-B', os.path.join(PROGRAMS, 'goes.py')],
                            ['--reproducible', '--capacity', '3GiB', '--names', names])
        told[names] = run.code, run.told[0]['failures'], histories.events(histories.load(run.histories[0])), records_of(run)
    (_, _, off_events, _), (code, failures, events, taken) = told.values()
    verdict.equal('exit code', code, 0)
    verdict.equal('failures', failures, len(taken))
    difference = histories.first_difference(off_events, events)
    verdict.expect(difference is None, f'the histories differ at {difference}')
    for record in taken:
        graphs = sum(one['bytes'] for one in record['holders'] if one['kind'] == 'graph')
        named = sum(one['bytes'] for one in record['holders'] if one['kind'] not in NAMELESS)
        verdict.expect(graphs > 100 << 20, f'{mib(graphs)} are a graph\'s')
        verdict.expect(named >= 0.99 * record['live_bytes'], f'{named / record["live_bytes"]:.1%} has a name')
    verdict.cells['events'] = f'{len(events):,} the same'
    return verdict


MIDDLE = 'middle.py'
WORDS_OF_MIDDLE = ('middle.py', 'PatientNet', 'stacked_layers', 'given_rows', 'single_layer', 'train_briefly', 'patient_model',
                   'chosen_optimizer', 'recall_everything', 'recalled_outputs', 'whole_run', 'RECALLED_BATCHES')


def run_middle(bench, *flags):
    run = bench.dry_run(venvs.python_of('torch-2.14.1'), ['-B', os.path.join(PROGRAMS, MIDDLE)], ['--capacity', '16GiB', *flags])
    with open(run.histories[0], 'rb') as file:
        return run, file.read()


def names_the_peak(bench):
    """Its peak lies in the middle, and its end has freed everything: with and without a look at peaks."""
    verdict = Verdict()
    for flags in (['--names', '10s'], ['--names', 'peak']):
        run, data = run_middle(bench, *flags)
        held, looked = run.report['explanation']['held'], pickle.loads(data).get('ashlar_peak_names')
        share = held['named_bytes'] / held['live_bytes']
        verdict.cells[flags[1]] = f'{share:.1%} of {mib(held["live_bytes"])} at the peak'
        if flags[1] != 'peak':
            verdict.expect(looked is None, 'peaks were looked at')
            verdict.expect(share < 0.1, 'the end has names of the peak')
            continue
        first = max(held['holders'], key=lambda one: one['bytes'])
        verdict.equal('who holds most', first['name'], 'recalled_outputs[]')
        verdict.expect(share >= 0.8, f'{share:.1%} has a name')
        causes = [one['name'] for one in run.report['explanation']['causes'] if one['finding'] == 'found']
        verdict.expect('eval_without_no_grad' not in causes, 'outputs that a list keeps are taken for graphs')
    return verdict


def tells_no_name(bench):
    """With --redact no name of the program is in the history, nor in what is said of it; kinds and sizes are as without."""
    verdict, told = Verdict(), {}
    for flags in ([], ['--redact']):
        run, data = run_middle(bench, '--names', 'peak', *flags)
        told[len(flags)] = data, run.report['explanation']
    (plain, said), (hidden, said_of_hidden) = told[0], told[1]
    for word in ('middle.py', 'recall_everything', 'recalled_outputs'):
        verdict.expect(word.encode() in plain, f'{word} is not in the plain history: it shows nothing that redacted ones lack it')
    verdict.equal('names in the history', [word for word in WORDS_OF_MIDDLE if word.encode() in hidden], [])
    text = str(said_of_hidden)
    verdict.equal('names in the explanation', [word for word in WORDS_OF_MIDDLE if word in text], [])
    verdict.equal('verdict', said_of_hidden['verdict'], said['verdict'])
    largest = [max(one['held']['holders'], key=lambda holder: holder['bytes']) for one in (said, said_of_hidden)]
    verdict.equal('kind of who holds most', largest[1]['kind'], largest[0]['kind'])
    verdict.cells['most'] = largest[1]['name']
    return verdict


# Of kinds_of_tensors.py: what each variable keeps at least, MiB.
KINDS = {'sharded': 64, 'raising': 68, 'wrapped': 72, 'sparse': 76, 'rows': 8, 'nested': 84, 'rounded': 60, 'batched': 88, 'module.weight': 92,
         'parameter': 96, 'slopes': 100}


def names_all_kinds(bench):
    """Of DTensor, a subclass that raises, a wrapper, sparse, nested and quantised tensors, and those of functorch, each is its variable's. A
    tensor that only pretends to be on the device keeps nothing."""
    verdict = Verdict()
    run = bench.dry_run(venvs.python_of('torch-2.14.1'), ['-B', os.path.join(PROGRAMS, 'kinds_of_tensors.py')], ['--once', '--capacity', '8GiB'])
    record, = records_of(run)
    held = {one['name']: one['bytes'] >> 20 for one in record['holders']}
    verdict.equal('bytes of all holders', live_bytes_of(record), record['live_bytes'])
    for name, least in KINDS.items():
        verdict.expect(held.get(name, 0) >= least, f'{name} keeps {held.get(name)} MiB, and not {least}')
    verdict.expect('imagined' not in held, 'a fake tensor has memory')
    nameless = sum(one['bytes'] for one in record['holders'] if one['kind'] in NAMELESS)
    verdict.equal('bytes without a name', nameless, 0)
    verdict.cells['events'] = f'{len(KINDS)} kinds, {mib(record["live_bytes"])}'
    return verdict


def rows():
    measured = [Row('holders', seed.name, 20, lambda bench, s=seed: measure(bench, s), is_usual=False, is_measured=True,
                    digest=advice.digest(seed)) for seed in advice.ALL if seed.fails]
    return [Row('names', 'of a peak', 40, names_the_peak), Row('names', 'hidden', 40, tells_no_name),
            Row('names', 'all goes as without', 25, goes_as_without), Row('names', 'all kinds of tensors', 25, names_all_kinds),
            Row('holders', 'nobody is asked', 60, asks_nobody, is_usual=False, is_measured=True)] + measured
