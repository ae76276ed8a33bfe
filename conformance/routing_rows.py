"""Mixtures of experts whose routers are given their choices: `ashlar dry-run --routing`.

    conformance/run.py --ashlar build/release/bin/ashlar --only routing

Each model (conformance/programs/experts.py), and each layer of experts of Megatron-core and DeepSpeed
(conformance/programs/framework_experts.py), runs by each rule. What it reserves and allocates when balanced equals, to the
byte, what it does where the program itself writes an even choice into its routers' results. On one device the even choice
takes more than one that sends all tokens to the same, where experts without tokens are not called and make no gradients; OLMoE
calls them too.
"""
import os

import venvs
from bench import AMPLE, PROGRAMS
from rows import Row, Verdict
from sizes import mib

MODELS = ('mixtral', 'qwen2_moe', 'qwen3_moe', 'olmoe', 'deepseek_v3')
LAYERS = ('megatron', 'megatron_allgather', 'deepspeed_1', 'deepspeed_2', 'deepspeed_4')
RULES = ('balanced', 'random:7', 'worst')
USUAL = 'torch-2.14.1'
FOUND = 'choices of routers'


def peaks(run):
    return tuple(run.torch()[key] for key in ('peak_allocated_bytes', 'peak_reserved_bytes'))


def routed(bench, model, program='experts.py', environment=USUAL):
    verdict = Verdict()

    def run(words, flags):
        done = bench.dry_run(venvs.python_of(environment), [os.path.join(PROGRAMS, program), model, *words],
                             AMPLE + ['--names', 'off'] + flags)
        verdict.expect(done.code == 0, f'{words} {flags} ended with {done.code}: {done.last_line}')
        return done

    by_rule = {rule: run([], ['--routing', rule]) for rule in RULES}
    by_hand = run(['by_hand'], [])
    if verdict.failures:
        return verdict
    for rule, done in by_rule.items():
        said = [one['source'] for one in done.report['assumptions'] if one['what'] == 'routing of experts']
        verdict.expect(len(said) == 1 and FOUND in said[0], f'{rule}: {said}')
        verdict.cells[rule] = mib(peaks(done)[1])
    verdict.equal('balanced', peaks(by_rule['balanced']), peaks(by_hand))
    verdict.expect(peaks(by_rule['worst'])[0] != peaks(by_rule['balanced'])[0], 'worst allocates as much as balanced')
    verdict.cells['by hand'] = mib(peaks(by_hand)[1])
    return verdict


def rows():
    return [Row('routing', model, 25, lambda bench, of=model: routed(bench, of)) for model in MODELS] + [
        Row('routing', layer, 40, lambda bench, of=layer: routed(bench, of, 'framework_experts.py', of.partition('_')[0]),
            is_usual=False) for layer in LAYERS]
