"""Judges an answer about a seeded program, by what was planted and by what the program did when it was followed.

    judge_sick(planted, answer, noted_bytes, verdict)
    judge_promise(answer, rerun, verdict)
    judge_healthy(answer, swept_conf, verdict)

Each question is a score of the verdict, and a line where the answer is wrong. A seed that is not what it claims to be
raises NotAsPlanted: that is a fault of the seed.
"""
import re

from sizes import mib

WITHIN = 0.10  # of the planted bytes
WORTH = 0.10  # of the peak: a gain that is worth a change
ROUNDING = 0.01  # a promised peak may be missed by so much

FIRST, BYTES, VERDICT = 'planted cause named first', 'its bytes within 10 %', 'verdict as planted'
VARIABLE = 'of these, the variable named'
PROMISE, HEALTHY, AGREES = 'promises kept', 'healthy runs left alone', 'verdict and advice agree'
CURE, GAIN = 'of these, failures cured', 'of these, peaks lowered by 10 % where nothing failed'


class NotAsPlanted(Exception):
    pass


def score(verdict, question, is_right, otherwise):
    verdict.scores[question] = is_right
    verdict.expect(is_right, otherwise)


def is_within(got, wanted):
    return got is not None and abs(got - wanted) <= WITHIN * wanted


def names_of(answer, most=4):
    words = [f'{name} {confidence} {mib(size or 0)}' for name, confidence, size in answer.causes[:most]]
    return ', '.join(words) or 'none'


def path_of(variable):
    """["metric", "state", "preds"] of metric.state['preds'][0]: what an object calls itself, and places of lists, say nothing."""
    path = re.sub(r'\[[\'"](\w+)[\'"]\]', r'.\1', variable.split(' ')[0])
    return [part for part in re.sub(r'\[[^]]*\]|\(\)', '', path).split('.') if part not in ('self', '*', '')]


def is_same_variable(one, other):
    """Whether one is the other, or a part of it."""
    one, other = path_of(one), path_of(other)
    least = min(len(one), len(other))
    return least > 0 and one[:least] == other[:least]


def judge_sick(seed, answer, noted_bytes, verdict):
    if (answer.failures > 0) != seed.fails:
        raise NotAsPlanted(f'{answer.failures} requests failed, exit code {answer.exit_code}')
    rank, got = answer.rank_of(seed.causes), answer.bytes_of(seed.causes)
    score(verdict, FIRST, rank == 1, f'{seed.causes[0]} is ' + (f'cause {rank}' if rank else 'not named')
          + f', first: {answer.first}')
    if seed.variable and rank == 1:
        named = answer.variables_of(seed.causes)
        score(verdict, VARIABLE, any(is_same_variable(name, seed.variable) for name in named),
              f'{seed.variable} keeps it, and named is {", ".join(named) or "nothing"}')
    if seed.has_bytes:
        if noted_bytes is None:
            raise NotAsPlanted('it noted no bytes')
        score(verdict, BYTES, is_within(got, noted_bytes),
              f'{"no bytes" if got is None else mib(got)} and not {mib(noted_bytes)}')
    if seed.verdicts:
        score(verdict, VERDICT, answer.verdict in seed.verdicts,
              f'the verdict is {answer.verdict}, not {seed.verdicts[0]}')
    score(verdict, AGREES, not answer.contradicts_itself, 'no setting can help, it says, and pastes one that cures')


def judge_promise(answer, rerun, verdict):
    """`rerun`: the answer about the same program under the pasted setting."""
    promise = answer.promise
    if promise.cures_failure:
        is_kept = rerun.failures == 0 and rerun.exit_code == 0
        score(verdict, PROMISE, is_kept, f'{promise.conf} was to cure it: {rerun.failures} requests fail')
        verdict.scores[CURE] = is_kept
        return
    most = promise.peak_bytes if promise.peak_bytes is not None else answer.peak_bytes
    is_kept = rerun.failures == 0 and rerun.peak_bytes <= most * (1 + ROUNDING)
    score(verdict, PROMISE, is_kept, f'{promise.conf} was to peak at {mib(most)}: {mib(rerun.peak_bytes)}, '
          f'{rerun.failures} requests fail')
    if not answer.retries:
        is_worth = rerun.peak_bytes <= (1 - WORTH) * answer.peak_bytes
        score(verdict, GAIN, is_worth, f'{mib(answer.peak_bytes)} to {mib(rerun.peak_bytes)} is not worth a change')


def expect_healthy(answer, best_rerun_bytes):
    """`best_rerun_bytes`: the peak of a real run under the setting that a search found best; None: none came near."""
    if answer.failures or answer.retries or answer.exit_code:
        raise NotAsPlanted(f'{answer.failures} failures, {answer.retries} retries, exit code {answer.exit_code}')
    if best_rerun_bytes is not None and best_rerun_bytes <= (1 - WORTH) * answer.peak_bytes:
        raise NotAsPlanted(f'a setting lowers its peak from {mib(answer.peak_bytes)} to {mib(best_rerun_bytes)}')


def judge_healthy(answer, swept_conf, verdict):
    """`swept_conf`: what `sweep` says to paste; None: nothing."""
    told = [f'verdict {answer.verdict}'] if answer.verdict != 'healthy' else []
    if answer.promise is not None:
        told.append(f'explain pastes {answer.promise.conf}')
    if swept_conf is not None:
        told.append(f'sweep pastes {swept_conf}')
    told += [f'change of the program for {cause}' for cause in answer.changes]
    score(verdict, HEALTHY, not told, '; '.join(told))
