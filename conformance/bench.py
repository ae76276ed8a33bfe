"""Starts ashlar over real programs, and reads what it says: the report's JSON, the program's own words, time, memory.

    bench = Bench(ashlar='build/release/bin/ashlar', folder='/tmp/x', shared='/data')
    run = bench.dry_run(python, ['train.py'], ['--capacity', '16GiB'])
    run.report['exit_code'], run.told, run.histories, run.seconds, run.host_bytes

Thread rule: any thread; runs of the same name are made once.
"""
import contextlib
import dataclasses
import glob
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

MOST_SECONDS = 300
HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, 'programs')
AMPLE = ['--capacity', '80GiB', '--context', '500MiB']
CONTEXT_BYTES = 500 << 20


@dataclasses.dataclass
class Run:
    code: int
    seconds: float
    host_bytes: int  # the greatest resident memory of one of its processes
    out: str
    words: str  # standard error: the program's words, and ours
    processor_seconds: float = 0.0
    report: dict = None
    histories: list = dataclasses.field(default_factory=list)  # paths, by rank

    @property
    def told(self):
        """What the programs of conformance/programs print: one object a process."""
        lines = (self.words + self.out).splitlines()
        return [json.loads(line) for line in lines if line.startswith('{"program"')]

    @property
    def last_line(self):
        lines = [line for line in self.words.splitlines() if line.strip()]
        return lines[-1].strip()[:200] if lines else ''

    def torch(self):
        """PyTorch's own counts of the first device that the run used, of the process that held most."""
        devices = [d for p in self.report['processes'] if p.get('torch') for d in p['torch']['devices']]
        return max(devices, key=lambda d: d['peak_reserved_bytes']) if devices else None


class TookTooLong(Exception):
    pass


_running = set()


def end_all():
    """Ends what still runs, with all that it started."""
    for child in list(_running):
        _end(child)


def _end(child):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _wait(child, most_seconds):
    """The exit code as a shell has it, and the usage of the child with its own children."""
    timer = threading.Timer(most_seconds, _end, [child])
    timer.start()
    _, status, usage = os.wait4(child.pid, 0)
    late = not timer.is_alive()
    timer.cancel()
    _end(child)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage, late


def start(command, environment=None, most_seconds=MOST_SECONDS, cwd=None, during=None):
    """Runs to the end. `during(pid)` is called once it is started, such as to send it a signal."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as words:
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=words, stdin=subprocess.DEVNULL, cwd=cwd,
                                 env={**os.environ, **(environment or {})}, start_new_session=True)
        _running.add(child)
        if during is not None:
            threading.Thread(target=during, args=(child.pid,), daemon=True).start()
        code, usage, late = _wait(child, most_seconds)
        _running.discard(child)
        seconds = time.monotonic() - began
        texts = []
        for file in (out, words):
            file.seek(0)
            texts.append(file.read().decode('utf-8', 'replace'))
    if late:
        raise TookTooLong(f'not done after {most_seconds} s: {" ".join(command[-4:])}')
    return Run(code, seconds, usage.ru_maxrss << 10, *texts, usage.ru_utime + usage.ru_stime)


class Bench:
    def __init__(self, ashlar, folder, shared):
        self.ashlar = ashlar
        self.folder = folder
        self.shared = shared  # with captures/ in it; None: not here
        self.deadline = float('inf')  # of time.monotonic(): no row begins later
        self._lock = threading.Lock()
        self._made = {}  # key -> (lock, [value])

    def path(self, name):
        out = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        return out

    def new_folder(self, prefix):
        return tempfile.mkdtemp(prefix=prefix + '-', dir=self.folder)

    def once(self, key, make):
        """`make()`, of the first who asks."""
        with self._lock:
            lock, value = self._made.setdefault(key, (threading.Lock(), []))
        with lock:
            if not value:
                value.append(make())
        return value[0]

    def dry_run(self, python, program, flags, environment=None, most_seconds=MOST_SECONDS, cwd=None, during=None,
                keeps=True):
        """`program`: the interpreter's arguments. Its histories lie in `run.histories`, where it `keeps` them. It is run
        again as other cards only where `flags` have --cards."""
        kept = self.new_folder('run')
        output = ['-o', kept + '/'] if keeps else []
        once = [] if '--cards' in flags else ['--once']
        command = [self.ashlar, 'dry-run', '--json'] + once + output + flags + ['--', python] + program
        run = start(command, environment, most_seconds, cwd, during)
        with contextlib.suppress(ValueError):
            run.report = json.loads(run.out)
        run.histories = sorted(glob.glob(kept + '/history-*')) or sorted(glob.glob(kept + '/oom-*'))
        return run

    def replay(self, history, *flags):
        done = start([self.ashlar, 'replay', history, '--json', *flags])
        if done.code != 0:
            raise RuntimeError(f'ashlar replay {os.path.basename(history)}: {done.last_line}')
        return json.loads(done.out)
