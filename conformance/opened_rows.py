"""What `ashlar convert` writes, opened by the tools that it is for: Perfetto's classes, speedscope in a browser,
flamegraph.pl, DuckDB, prometheus_client, PyTorch's _memory_viz, RMM's own log read in. Readers lie in opened/.

Perfetto's trace_processor is not run: its package downloads the program from outside PyPI.
"""
import base64
import glob
import json
import os
import re
import shutil
import subprocess
import tarfile

import bench as bench_module
import cxx_integrations
import venvs
from rows import Row, Skip, Verdict

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
EXAMPLE = os.path.join(ROOT, 'docs', 'examples', 'training_oom.pickle')
SPEEDSCOPE = 'speedscope@1.25.0'
PARTS = ('reserved', 'allocated', 'live', 'rounding', 'pending', 'stranded', 'whole_free', 'private_pool')


def sources(bench):
    """Snapshots to convert: the documents' own, and captures where they are here."""
    captures = os.path.join(bench.shared or '', 'captures', 'torch-2.14.1_*.pickle.gz')
    wanted = ('default_oom', 'expandable', 'streams', 'pool')
    return [EXAMPLE] + [path for path in sorted(glob.glob(captures)) if any(path.endswith(f'{name}.pickle.gz') for name in wanted)]


def ashlar(bench, *words):
    run = bench_module.start([bench.ashlar, *words])
    if run.code != 0:
        raise RuntimeError(f'ashlar {words[0]} ended with {run.code}: {run.last_line}')
    return run


def answer(bench, source):
    return bench.once(('explained', source), lambda: json.loads(ashlar(bench, 'explain', '--json', '--device', '0', source).out))


def converted(bench, source, name, *flags):
    out = os.path.join(bench.new_folder('converted'), name)
    ashlar(bench, 'convert', source, out, '--device', '0', *flags)
    return out


def reader(verdict, name, *words, python=None):
    """What the reader in opened/ prints; None, and a failure, where it ends with an error."""
    run = bench_module.start([python or venvs.python_of('exports'), '-B', os.path.join(HERE, 'opened', name), *words])
    if run.code != 0:
        verdict.failures.append(f'{name}: {run.last_line}')
        return None
    return run.out


def perfetto(bench):
    verdict, packets = Verdict(), 0
    for source in sources(bench):
        told = reader(verdict, 'perfetto.py', converted(bench, source, 'a.pftrace'))
        if told is None:
            continue
        told, explained, name = json.loads(told), answer(bench, source), os.path.basename(source)
        for counter in ('allocated', 'active', 'reserved'):
            verdict.equal(f'{name}: peak {counter}', told['counters'][counter][0], explained['peak'][f'{counter}_bytes'])
        verdict.equal(f'{name}: steps', told['slices'].get('steps', 0), len(explained['program']['steps']))
        verdict.expect(told['slices'].get('segments', 0) > 0, f'{name}: no segments')
        verdict.equal(f'{name}: moments explained', sum(text.startswith('explained: ') for text in told['instants']), 1)
        failed = sum(text.startswith('out of memory: ') for text in told['instants'])
        verdict.equal(f'{name}: a failure is shown', failed > 0, explained['headline'].startswith('OUT OF MEMORY'))
        packets += told['packets']
    verdict.cells['seen'] = f'{packets} packets of {len(sources(bench))} traces'
    return verdict


def openmetrics(bench):
    verdict, count = Verdict(), 0
    for source in sources(bench):
        told = reader(verdict, 'openmetrics.py', converted(bench, source, 'a.prom'))
        if told is None:
            continue
        samples, explained, name = json.loads(told), answer(bench, source), os.path.basename(source)
        parts = {labels['part']: value for of, labels, value in samples if of == 'ashlar_part_bytes'}
        for part in PARTS:
            verdict.equal(f'{name}: {part}', parts.get(part), explained['accounting'][f'{part}_bytes'])
        found = sorted(cause['name'] for cause in explained['causes'] if cause['finding'] == 'found')
        verdict.equal(f'{name}: causes', sorted(labels['cause'] for of, labels, _ in samples if of == 'ashlar_cause_bytes'), found)
        count += len(samples)
    verdict.cells['seen'] = f'{count} samples'
    return verdict


def tables(bench):
    verdict, rows = Verdict(), 0
    for source in sources(bench):
        folder, database = converted(bench, source, 'tables/'), converted(bench, source, 'a.sqlite')
        told = reader(verdict, 'tables.py', folder, database)
        if told is not None:
            counts = json.loads(told)
            verdict.equal('what-ifs', counts['what_if'], len(answer(bench, source)['what_if']))
            rows += sum(counts.values())
    verdict.cells['seen'] = f'{rows} rows, the same in CSV, SQLite and DuckDB'
    return verdict


def flamegraph_script():
    """flamegraph.pl, as Debian's libdevel-nytprof-perl has it."""
    home = os.path.join(venvs.folder(), 'flamegraph')
    script = os.path.join(home, 'usr', 'share', 'perl5', 'Devel', 'NYTProf', 'flamegraph.pl')
    if os.path.exists(script):
        return script
    if shutil.which('apt-get') is None or shutil.which('perl') is None:
        raise Skip('no apt-get or no perl here: flamegraph.pl cannot be had')
    os.makedirs(home, exist_ok=True)
    done = subprocess.run(['apt-get', 'download', '-q', 'libdevel-nytprof-perl'], cwd=home, capture_output=True, text=True,
                          check=False)
    packages = glob.glob(os.path.join(home, '*.deb'))
    if not packages:
        raise Skip(f'apt-get download libdevel-nytprof-perl: {(done.stderr.strip().splitlines() or ["failed"])[-1]}')
    subprocess.run(['dpkg-deb', '-x', packages[0], home], check=True)
    os.chmod(script, 0o755)
    return script


def folded(bench):
    verdict, script = Verdict(), flamegraph_script()
    for source in sources(bench):
        run = bench_module.start(['perl', script, '--countname', 'bytes', converted(bench, source, 'a.folded')])
        verdict.equal('exit code', run.code, 0)
        whole = re.search(r'<title>all \(([\d,]+) bytes, 100%\)</title>', run.out)
        drawn = int(whole[1].replace(',', '')) if whole else None
        verdict.equal(f'{os.path.basename(source)}: bytes drawn', drawn, answer(bench, source)['accounting']['allocated_bytes'])
    verdict.cells['seen'] = f'{len(sources(bench))} flame graphs'
    return verdict


def speedscope_folder():
    """Speedscope as npm has it."""
    home = os.path.join(venvs.folder(), SPEEDSCOPE.replace('@', '-'))
    if not os.path.isdir(home):
        if shutil.which('npm') is None:
            raise Skip('no npm here: speedscope cannot be had')
        os.makedirs(home + '.part', exist_ok=True)
        done = subprocess.run(['npm', 'pack', '--silent', SPEEDSCOPE], cwd=home + '.part', capture_output=True, text=True,
                              check=False)
        packages = glob.glob(os.path.join(home + '.part', '*.tgz'))
        if not packages:
            raise Skip(f'npm pack {SPEEDSCOPE}: {(done.stderr.strip().splitlines() or ["failed"])[-1]}')
        with tarfile.open(packages[0]) as packed:
            packed.extractall(home + '.part', filter='data')
        os.rename(home + '.part', home)
    return os.path.join(home, 'package', 'dist', 'release')


def in_gigabytes(count):
    """As speedscope prints bytes."""
    for unit in ('B', 'KB', 'MB'):
        if count < 1024:
            return f'{count:.2f} {unit}' if unit != 'B' else f'{count} B'
        count /= 1024
    return f'{count:.2f} GB'


def speedscope(bench):
    """Its schema, and its page in a browser: the profiles that it lists, with their weights."""
    verdict, release = Verdict(), speedscope_folder()
    browser = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')
    for source in sources(bench):
        path = converted(bench, source, 'a.speedscope.json')
        reader(verdict, 'schema.py', path, os.path.join(release, 'file-format-schema.json'))
        if browser is None:
            continue
        with open(path, 'rb') as file:
            text = base64.b64encode(file.read()).decode()
        script = path + '.js'
        with open(script, 'w', encoding='utf-8') as file:
            file.write(f"speedscope.loadFileFromBase64('a.speedscope.json', '{text}')")
        page = f'file://{release}/index.html#localProfilePath={script}'
        run = bench_module.start([browser, '--headless', '--no-sandbox', '--disable-gpu', '--allow-file-access-from-files',
                                  f'--user-data-dir={bench.new_folder("chromium")}', '--virtual-time-budget=20000',
                                  '--dump-dom', page])
        explained = answer(bench, source)['accounting']
        live = in_gigabytes(explained['allocated_bytes'])
        verdict.expect('live bytes at' in run.out, f'{os.path.basename(source)}: speedscope does not show the profile')
        if explained['stranded_bytes']:
            verdict.expect(f'>{live}<' in run.out, f'{os.path.basename(source)}: speedscope does not show {live}')
    verdict.cells['seen'] = 'its schema' + (' and its page' if browser else '; no browser here for its page')
    return verdict


def memory_viz(bench, release):
    """Whole and cut snapshots."""
    verdict, python, script = Verdict(), venvs.python_of(f'torch-{release}'), flamegraph_script()
    for source in sources(bench):
        for flags in ([], ['--least-size', '1MiB'], ['--stack', 'optim'], ['--window', '20%:60%']):
            told = reader(verdict, 'memory_viz.py', converted(bench, source, 'a.pickle', *flags), script, python=python)
            if told is None:
                continue
            told = json.loads(told.splitlines()[-1])  # compare prints as well
            verdict.expect(all(length > 0 for length in told['lengths'].values()), f'an empty page: {told["lengths"]}')
            verdict.expect(flags or told['trace'] > 100, f'its trace has {told["trace"]} lines')
    verdict.cells['seen'] = f'{4 * len(sources(bench))} snapshots, seven functions'
    return verdict


def rmm_log(bench):
    """RMM's own logging_resource_adaptor writes, the program that is logged says what it asked."""
    wheels = [cxx_integrations.wheel(f'librmm-cu13=={cxx_integrations.RMM["26.10"]}'), cxx_integrations.wheel(cxx_integrations.LOGGER)]
    log = os.path.join(bench.new_folder('rmm'), 'log.csv')
    verdict = cxx_integrations.judge(lambda: cxx_integrations.client_checks.rmm_log(
        cxx_integrations.tools_of(bench), os.path.join(wheels[0], 'librmm'), os.path.join(wheels[1], 'rapids_logger'), '26.10', log))
    if verdict.failures:
        return verdict
    told = {key: int(value) for key, value in re.findall(r'(allocations|frees|failures|peak) (\d+)', verdict.cells['seen'])}
    replayed = json.loads(ashlar(bench, 'replay', '--json', log).out)
    verdict.equal('requests', replayed['requests'], told['allocations'] + told['frees'])
    verdict.equal('peak requested', replayed['peak_requested'], told['peak'])
    verdict.expect(f'({told["failures"]} failed requests left out)' in replayed['source'], replayed['source'])
    for command in ('explain', 'bound', 'sweep', 'check'):
        ashlar(bench, command, log, *(['--max-reserved', '16GiB'] if command == 'check' else []))
    out = os.path.join(os.path.dirname(log), 'again.rmm.csv')
    ashlar(bench, 'convert', log, out)
    again = json.loads(ashlar(bench, 'replay', '--json', out).out)
    verdict.equal('peak requested of the log written again', again['peak_requested'], told['peak'])
    return verdict


def rows():
    tools = [('Perfetto, its protobuf classes', 20, perfetto), ('Prometheus, its parser of OpenMetrics', 20, openmetrics),
             ('SQLite and DuckDB, the tables', 20, tables), ('flamegraph.pl', 10, folded),
             ('speedscope, its schema and page', 60, speedscope), ("RMM's own log", 40, rmm_log)]
    out = [Row('exports', name, seconds, run, is_usual=False) for name, seconds, run in tools]
    return out + [Row('exports', f'torch.cuda._memory_viz {release}', 60, lambda bench, a=release: memory_viz(bench, a),
                      is_usual=False) for release in ('2.14.1', '2.6.0', '2.15.0')]
