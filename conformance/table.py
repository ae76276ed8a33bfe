"""docs/internals/truth.md: every row with what it showed, the date and the versions."""
import datetime
import platform
import re
import subprocess
import textwrap

GROUPS = {  # group -> (its title, what is held to what)
    'captures': ('Recorded histories, event by event',
                 'A script was recorded once over a prototype. Here it runs over the hollow device: peaks, retries, '
                 'failures, the text of the error, and every event with its address relative to the first segment are '
                 'equal. `replayed`: allocations that the twin puts at the recorded address, of all.'),
    'releases': ('Other releases of PyTorch', 'The same programs, unchanged, with wheels of other releases.'),
    'plugin': ('Ours as PyTorch\'s allocator, and PyTorch\'s own',
               'The same program runs twice over the hollow device: as it is, and by `python -m ashlar_gpu.torch`. The calls '
               'on device memory are the same, line by line: order, sizes, addresses, refusals. So are failures and peaks.'),
    'sleep': ('Sleep and wake with PyTorch', 'What is reserved, allocated and held of the device around each sleep and wake, in MiB, where '
              'the tensors lie, and each refusal, are what docs/library/sleep.md says. `phases.py` is its example: the peak of the '
              'device by each way.'),
    'policy': ('policy:ashlar where 1.02 times what is held are left',
               'A training program of 8 to 10 steps, of lengths that vary, with a second stream, a pool, or an emptied cache. The '
               'device has 1.02 times what it holds at its peak, beside the context: PyTorch\'s own allocator may fail there, '
               'ours, with `policy:ashlar`, may not. The last row fails where 1.03 times that are left, is explained, and runs again as '
               '`ashlar explain` says.'),
    'megatron': ('Megatron-core under a plan', 'One rank of eight, with four microbatches and three steps: its own model, schedules, '
                 'recomputation and optimizer, with PyTorch\'s fake process group for the others. The smallest device, by replay, in '
                 'multiples of what the run holds.'),
    'ranks': ('One rank of many, run alone',
              'Each program runs by torchrun, as a process for each rank, and by `--ranks N --roles all`, each rank without the others. '
              'Peaks of each rank, of its device and of PyTorch\'s allocated memory, are equal to the byte. Work is done when the host '
              'waits for it (`--lag until-waited`). A 70B Llama runs by its roles alone, and so does a mixture of 16 experts a layer '
              'of as many parameters.'),
    'routing': ('Routers of experts by a rule',
                'A small mixture of experts of transformers by each rule of `--routing`: what it reserves. When balanced that equals, as what '
                'it allocates does, the program that writes an even choice into its routers\' results by itself, to the byte.'),
    'given': ('Values that decide, given by --value',
              'A program goes on as a value of the device says. It has its values by `--value`, written into it, or reads zeros: what it '
              'allocates. The first two are equal, as what they reserve is, to the byte.'),
    'what-if': ('What-if against real',
                'One history, recorded in ample room under the default settings, is replayed by the twin under another '
                'setting or in scarce room (half way from its peak allocated to its peak reserved). The program then '
                'really runs so. Peak reserved, peak allocated and retries are equal to the byte, or both fail.'),
    'reported': ('What-if of the recorded script, against PyTorch\'s own words',
                 'Peak reserved at 80 GiB as PyTorch 2.14.1 itself reported it, the replay of one history under the '
                 'setting, and a run under it.'),
    'programs': ('Programs, unchanged', 'Each tells at its end what it did, and that is checked. Peaks are PyTorch\'s '
                 'own counts; those of many ranks are of the one that held most.'),
    'values': ('Values of small operations', 'With PyTorch on the host, they are those of the device.'),
    'repeated': ('Twice alike, and with or without small values',
                 'Under `--reproducible`, whole histories are compared event by event.'),
    'big': ('Models larger than the machine', 'Within 20 s and 2 GB of host memory each. Where '
            'others keep all processors busy (the load says so), the processor time is judged.'),
    'cards': ('Which card is enough', 'Room that is left, by the table of one dry run without a device, and by a real '
              'run on the card. Where the kernels of a card take other workspaces the two differ; the verdicts may '
              'not.'),
    'recording': ('Histories without an edit', 'What is left behind, and when.'),
    'fit': ('What to change so that it fits', 'The program fails on its card. `ashlar fit` finds the cheapest set of changes, and with its '
            'lines written in by hand the program reserves what the row says, to the byte.'),
    'others': ('Other frameworks', 'They run, or are refused in one line.'),
    'nvcc': ('Programs by nvcc, with CUDA\'s runtime in them',
             'nvcc links its runtime in unless told otherwise. The calls on device memory, and the peak, are those of the same source with '
             '`-cudart shared`, line by line: order, sizes, addresses. Stripped of all names a program with kernels is refused in one line.'),
    'python_integrations': ('Integrations of Python', 'One program under its library\'s own memory manager and under Ashlar\'s: equal results, '
                'and the calls of the device below both. Times are of the processor, over the hollow device, whose '
                'calls cost next to nothing.'),
    'published': ('Cases that FakeGPU publishes', 'Its figures are of its documents, of July 2026; `really` is what it '
                  'measured on a GPU. The programs are rebuilt from its description; cuDNN\'s workspaces are taken '
                  'as 0.'),
    'python-api': ('The package of Python', 'PyTorch runs out of memory over the hollow device, and `on_oom`, `record` and '
                   '`dry_run` say what the run\'s own report says; a notebook is executed by nbclient; the marks of pytest '
                   'pass and fail as they must.'),
    'estimate': ('The estimator', 'Against real runs.'),
    'advice': ('Seeded programs, and the advice followed', 'Each has one planted sickness, or none. '
               '`planted bytes` are counted by the program itself. What is to be pasted was pasted, and the program '
               'ran again. A healthy program has no failure, no retry, and no setting that lowers its peak by 10 %.'),
    'holders': ('Who holds it, by name',
                'Seeded programs at their last failure: the share of the live bytes that has a Python name, the time of the look, '
                'and the two that hold most.'),
    'tuner': ('The tuner, and what came of what it promised', 'Under `ashlar dry-run`, by `python -m ashlar_gpu.torch --tune`. What '
              'is reserved with the setting is no more than what was promised.'),
}


def cell(text):
    return str(text).replace('|', '\\|').replace('\n', ' ')


def line(cells):
    return '| ' + ' | '.join(cell(text) for text in cells) + ' |'


def outcome(result):
    return result.state if result.state == 'passed' else f'**{result.state}**: {"; ".join(result.lines)[:300]}'


def rows_of(results):
    columns = []
    for result in results:
        columns += [key for key in result.cells if key not in columns]
    out = [line(['row'] + columns + ['outcome']), '|' + '---|' * (len(columns) + 2)]
    for result in results:
        out.append(line([result.row.name] + [result.cells.get(key, '') for key in columns] + [outcome(result)]))
    return out


def count(results):
    states = [result.state for result in results]
    return ', '.join(f'{states.count(state)} {state}' for state in ('passed', 'failed', 'skipped'))


def scores_of(results):
    """How often each question was answered rightly; nothing where none was asked."""
    questions = []
    for result in results:
        questions += [question for question in result.scores if question not in questions]
    if not questions:
        return []
    out = [line(['question', 'right', 'asked', 'share']), '|---|---|---|---|']
    for question in questions:
        answers = [result.scores[question] for result in results if question in result.scores]
        out.append(line([question, sum(answers), len(answers), f'{sum(answers) / len(answers):.0%}']))
    return out + ['']


def processor():
    with open('/proc/cpuinfo', encoding='utf-8') as lines:
        names = re.findall(r'model name\s*: (.*)', lines.read())
    return f'{len(names)} x {names[0]}' if names else platform.machine()


def version(bench):
    said = subprocess.run([bench.ashlar, '--version'], capture_output=True, text=True, check=False).stdout.strip()
    return f'ashlar {said}'.strip()


def wrapped(text):
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False) + ['']


def head(results, bench, command):
    minutes = sum(result.seconds for result in results) / 60
    out = ['# Truth', '', f'<!-- Made by `{command}`: do not edit. -->', '']
    out += wrapped(f'Made by `{command}` on {datetime.date.today().isoformat()} with {version(bench)}, in '
                   f'{minutes:.0f} minutes of runs, on a machine without a GPU ({processor()}, Linux '
                   f'{platform.release()}). {count(results)}.'
                   + (' The runs were stopped and went on: all are of one build.' if '--results' in command else ''))
    return out + wrapped('Where a row names no release, PyTorch is 2.14.1 (CUDA 13.0) with transformers 4.57.1. Times '
                         'are of the whole process, imports included, on a machine that others use too.')


def write(path, results, bench, command):
    out = head(results, bench, command)
    for group, (title, words) in GROUPS.items():
        mine = [result for result in results if result.row.group == group]
        if mine:
            out += [f'## {title}', ''] + wrapped(f'{words} {count(mine)}.') + scores_of(mine) + rows_of(mine) + ['']
            out += [result.text for result in mine if result.text]
    with open(path, 'w', encoding='utf-8') as file:
        file.write('\n'.join(out).rstrip('\n') + '\n')
