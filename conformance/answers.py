"""What a dry run answered about a program, as far as it is judged: verdict, causes in order, what it says to change.

    answer = read(run.report)
    answer.first, answer.bytes_of(('kv_cache_grows',)), answer.promise

A promise is what a pasted setting is said to do: no request fails, or the peak of reserved memory is at most so much.
"""
import dataclasses
import re

PASTE = re.compile(r'PYTORCH_(?:CUDA_)?ALLOC_CONF=(\S*)')


@dataclasses.dataclass(frozen=True)
class Promise:
    conf: str
    cures_failure: bool
    peak_bytes: int = None  # None: no figure was given


@dataclasses.dataclass
class Answer:
    verdict: str
    causes: list  # (name, confidence, bytes) of those found, in their order
    variables: list  # of each of them: the names of what keeps it
    promise: Promise  # None: nothing is to be pasted
    changes: list  # of the program itself: the causes that they take away
    failures: int
    retries: int
    peak_bytes: int  # reserved
    exit_code: int

    @property
    def first(self):
        return self.causes[0][0] if self.causes else None

    def rank_of(self, names):
        """From 1; None where no cause of these names was found."""
        return next((i + 1 for i, cause in enumerate(self.causes) if cause[0] in names), None)

    def bytes_of(self, names):
        rank = self.rank_of(names)
        return None if rank is None else self.causes[rank - 1][2]

    def variables_of(self, names):
        rank = self.rank_of(names)
        return [] if rank is None else self.variables[rank - 1]

    @property
    def contradicts_itself(self):
        """A certain "does not fit under any setting" beside a setting that is to cure it."""
        return self.verdict == 'capacity' and self.promise is not None and self.promise.cures_failure


def process_of(report):
    """The one that is explained, else the one that holds most."""
    with_torch = [p for p in report['processes'] if p.get('torch') and p['torch']['devices']]
    mine = [p for p in with_torch if p['pid'] == report['explained_pid']]
    return (mine or sorted(with_torch, key=lambda p: -device_of(p)['peak_reserved_bytes']))[0]


def device_of(process):
    """That of a failure, else the one that held most."""
    return max(process['torch']['devices'], key=lambda d: (d['ooms'] > 0, d['peak_reserved_bytes']))


def without_spaces(conf):
    return ','.join(sorted(part.strip() for part in conf.split(',') if part.strip()))


def promise_of(explanation, fails):
    pasted = PASTE.search(explanation['paste'] or '')
    if pasted is None:
        return None
    conf = pasted[1].strip('"\'')
    rows = [r for r in explanation['what_if'] if without_spaces(r['conf']) == without_spaces(conf)]
    return Promise(conf, fails, rows[0]['peak_reserved_bytes'] if rows else None)


def read(report):
    explanation, device = report['explanation'], device_of(process_of(report))
    found = [c for c in explanation['causes'] if c['finding'] == 'found']
    return Answer(explanation['verdict'], [(c['name'], c['confidence'], c['bytes']) for c in found],
                  [[holder['name'] for holder in c['held_by']] for c in found],
                  promise_of(explanation, device['ooms'] > 0), [r['cause'] for r in explanation['program_remedies']],
                  device['ooms'], device['retries'], device['peak_reserved_bytes'], report['exit_code'])
