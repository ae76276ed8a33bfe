"""The rows of the table of truth: what is run, what it showed, and why it was left out.

    def run(bench):
        verdict = Verdict()
        verdict.cells["peak"] = "..."
        verdict.equal("steps", got, 4)
        return verdict

    Row("programs", "gpt2_trainer", 15, run)

A row is passed where nothing failed, skipped where `run` raises Skip, failed otherwise. Seconds are a guess that the
sample is planned by; they never end a run.
"""
import dataclasses
import traceback


class Skip(Exception):
    """The row cannot be had here; the text says why, in one line."""


class Verdict:
    def __init__(self):
        self.cells = {}  # column -> text, in the order of the table
        self.failures = []  # what did not hold, a line each
        self.text = ''  # a table of its own, in Markdown
        self.scores = {}  # question -> whether it was answered rightly; the table counts them

    def expect(self, held, otherwise):
        if not held:
            self.failures.append(otherwise)

    def equal(self, what, got, wanted):
        self.expect(got == wanted, f'{what}: {got} and not {wanted}')


@dataclasses.dataclass
class Row:
    group: str
    name: str
    seconds: float
    run: object  # of a Bench, to a Verdict
    is_alone: bool = False  # its time is a claim: nothing of ours runs beside it
    is_usual: bool = True  # needs no environment but that of PyTorch 2.14.1; others are in no sample
    is_measured: bool = False  # a measurement, not a gate: runs only where --only or --named asks for it
    digest: str = ''  # of what it runs: a kept result of something else does not count


@dataclasses.dataclass
class Result:
    row: Row
    state: str  # "passed", "failed", "skipped"
    cells: dict
    lines: list  # why it failed or was skipped
    seconds: float = 0.0
    text: str = ''
    scores: dict = dataclasses.field(default_factory=dict)


def judge(row, bench):
    """Runs a row. A fault of the runner itself is a failure with its last line."""
    try:
        verdict = row.run(bench)
    except Skip as reason:
        return Result(row, 'skipped', {}, [str(reason)])
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f'{type(error).__name__}: {error} ({place.filename.rsplit("/", 1)[-1]}:{place.lineno})'
        return Result(row, 'failed', {}, [text])
    return Result(row, 'failed' if verdict.failures else 'passed', verdict.cells, verdict.failures,
                  text=verdict.text, scores=verdict.scores)
