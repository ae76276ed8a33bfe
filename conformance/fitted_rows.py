"""`ashlar fit` on real programs: each fails on its card, a set is found, and with its lines written in by hand the program fits.

The peak of the program that was changed by hand is that of the row, to the byte. Where the answer has a diff of the whole set, so is
that of the program that `patch` made with it.
"""
import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

import programs
import venvs
from bench import HERE, start
from rows import Row, Verdict
from sizes import mib

sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'hollow', 'python'))
from ashlar_hollow.fit import embeddings, loss, serving  # noqa: E402

FOLDER = os.path.join(HERE, 'fitted')
MOST_SECONDS = 900


# Changes that are tried, dearer and cheaper ones among them: all would take minutes a program.
TRIED = ('fused-optimizer', 'half-batch', 'checkpointing')
HALF_STEPS = ('    optimizer.step()\n    optimizer.zero_grad()',
              '    if step % 2 == 0:\n        optimizer.step()\n        optimizer.zero_grad()')
HALF_LOOP = [('loss.backward()', '(loss / 2).backward()'), HALF_STEPS]


@dataclasses.dataclass
class Fitted:
    capacity: str
    found: list  # the cheapest set
    written: list  # what a reader of the answer writes: (old, new)
    tried: tuple = TRIED
    allow: str = ''
    home: str = programs.HOME
    ranks: int = 0  # on as many devices, by torchrun; 0: it is one process

    @property
    def card(self):
        return ['--capacity', self.capacity] + (['--devices', str(self.ranks)] if self.ranks else [])

    def program(self, script):
        """The interpreter's arguments."""
        return (['-m', 'torch.distributed.run', '--nproc-per-node', str(self.ranks)] if self.ranks else []) + [script]


# As `ashlar fit` prints it, with the name that it needs.
CHUNKED = 'from torch.nn.functional import cross_entropy\n' + loss.SOURCE


def half(old, new, capacity, **more):
    """A plain loop over a DataLoader, with half of the batch."""
    return Fitted(capacity, ['half-batch'], [(f'batch_size={old}', f'batch_size={new}')] + HALF_LOOP, **more)


def half_trainer(old, new, capacity):
    arguments = f'per_device_train_batch_size={new}, gradient_accumulation_steps=2'
    return Fitted(capacity, ['half-batch'], [(f'per_device_train_batch_size={old}', arguments)])


PROGRAMS = {
    'evaluating': Fitted('4GiB', ['no-grad-eval'], [
        ('outputs.append(model(x))', 'with torch.no_grad():\n            outputs.append(model(x))')],
        ('no-grad-eval', 'outputs-to-host', 'fused-optimizer')),
    'loader': half(8192, 4096, '3GiB'),
    'bert_trainer': half_trainer(32, 16, '2650MiB'),
    'gpt2_trainer': Fitted('2000MiB', ['checkpointing'], [
        ('num_train_epochs=1,',
         'num_train_epochs=1, gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False},')]),
    'llama_lora': half(16, 8, '2100MiB'),
    'vit': half(32, 16, '1640MiB'),
    't5_trainer': half_trainer(16, 8, '2368MiB'),
    'resnet': half(16, 8, '1730MiB', allow='batch-norm'),
    'unet': half(16, 8, '1870MiB', home='frameworks'),
    'lightning_blocks': Fitted('2580MiB', ['half-batch'], [
        ('batch_size=16384', 'batch_size=8192'), ('max_epochs=1', 'max_epochs=1, accumulate_grad_batches=2')], home='frameworks'),
    'accelerated': Fitted('2470MiB', ['half-batch'], [
        ('batch_size=64', 'batch_size=32'), ('accelerator.backward(loss)', 'accelerator.backward(loss / 2)'), HALF_STEPS]),
    'lstm': half(64, 32, '2060MiB'),
    'gan': Fitted('1650MiB', ['fused-optimizer'], [
        ('makes = torch.optim.Adam(generator.parameters(), lr=1e-4)', 'makes = torch.optim.Adam(generator.parameters(), lr=1e-4, fused=True)'),
        ('judges = torch.optim.Adam(critic.parameters(), lr=1e-4)', 'judges = torch.optim.Adam(critic.parameters(), lr=1e-4, fused=True)')],
        ('fused-optimizer', 'early-zero-grad', 'no-foreach')),
    'ppo': Fitted('2GiB', ['no-grad-eval'], [
        ('        logits, value = policy(pictures)\n', '        with torch.no_grad():\n            logits, value = policy(pictures)\n')],
        ('no-grad-eval', 'fused-optimizer')),
    'kept_outputs': Fitted('1150MiB', ['outputs-to-host'], [('append(model(images))', 'append(model(images).cpu())')],
                           ('outputs-to-host', 'no-foreach')),
    'kept_logits': Fitted('1150MiB', ['outputs-to-host'], [('append(output["logits"])', 'append(output["logits"].cpu())')],
                          ('outputs-to-host', 'no-foreach')),
    'late_zero': Fitted('2625MiB', ['early-zero-grad'], [
        ('    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()', '    loss.backward()\n    optimizer.step()\n    optimizer.zero_grad()')],
        ('early-zero-grad', 'fused-optimizer')),
    'zeroed': Fitted('2665MiB', ['set-to-none'], [('set_to_none=False', 'set_to_none=True')], ('set-to-none', 'fused-optimizer')),
    'adam_step': Fitted('2385MiB', ['fused-optimizer'], [('lr=1e-3', 'lr=1e-3, fused=True')], ('fused-optimizer', 'no-foreach')),
    'nadam_step': Fitted('2421MiB', ['no-foreach'], [('lr=1e-3', 'lr=1e-3, foreach=False')], ('fused-optimizer', 'no-foreach')),
    'large_states': Fitted('2GiB', ['adam-8bit'], [
        ('import torch\n', 'import bitsandbytes\nimport torch\n'), ('torch.optim.AdamW', 'bitsandbytes.optim.AdamW8bit')],
        ('fused-optimizer', 'no-foreach', 'adam-8bit', 'sgd'), allow='optimizer'),
    'eager_attention': Fitted('3246MiB', ['sdpa'], [('attn_implementation="eager"', 'attn_implementation="sdpa"')],
                              ('sdpa', 'no-cache', 'fused-optimizer')),
    'decoder': Fitted('2406MiB', ['checkpointing-half'], [
        ('for block in self.blocks:\n            x = block(x)',
         'for index, block in enumerate(self.blocks):\n'
         '            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if index % 2 == 0 else block(x)')],
        ('fused-optimizer', 'checkpointing-half', 'checkpointing')),
    'states': Fitted('1834MiB', ['states-to-host'], [
        ('for step in range(4)',
         'def move(optimizer, to_host):\n'
         '    for parameter, states in optimizer.state.items():\n'
         '        for name, one in states.items():\n'
         '            if torch.is_tensor(one) and one.dim() > 0:\n'
         '                states[name] = one.to("cpu" if to_host else parameter.device)\n\n\n'
         'for step in range(4)'),
        ('    optimizer.step()\n', '    move(optimizer, False)\n    optimizer.step()\n    move(optimizer, True)\n')],
        ('states-to-host', 'fused-optimizer', 'no-foreach')),
    'vocabulary': Fitted('1946MiB', ['chunked-loss'], [
        ('model = nn.Sequential(', CHUNKED + 'model = nn.Sequential('),
        ('loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())',
         'targets = ids[:, 1:].flatten()\n'
         '    loss = ChunkedLoss.apply(model(ids[:, :-1]).flatten(0, 1), targets) / (targets != -100).sum()')],
        ('chunked-loss', 'no-foreach')),
    'growing': Fitted('2560MiB', ['expandable-segments'], [
        ('import torch\n', 'import os\n\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"\nimport torch\n')],
        ('expandable-segments', 'no-foreach')),
    'hidden_states': Fitted('1000MiB', ['release-outputs'], [('    optimizer.step()\n', '    optimizer.step()\n    del outputs\n')],
                            ('release-outputs', 'no-foreach')),
    'cycles': Fitted('1400MiB', ['gc-collect'], [
        ('import torch\n', 'import gc\n\nimport torch\n'), ('    loss = one.again()\n', '    gc.collect()\n    loss = one.again()\n')],
        ('gc-collect', 'no-foreach')),
    'large_embedding': Fitted('1500MiB', ['embeddings-to-host'], [
        ('model.cuda()\n', embeddings.SOURCE + 'stay_on_host(model[0])\nmodel.cuda()\n')], ('embeddings-to-host', 'no-foreach')),
    'deep': Fitted('1900MiB', ['freeze-half'], [
        ('optimizer = ', 'for block in model[:6]:\n    block.requires_grad_(False)\noptimizer = ')], ('freeze-half', 'no-foreach'), allow='frozen'),
    'long_texts': Fitted('1700MiB', ['length=512'], [('    ids = ids.cuda()', '    ids = ids[:, :512].cuda()')],
                         ('length', 'fused-optimizer'), allow='length'),
    'stages': Fitted('1330MiB', ['checkpointing-heaviest=0+1'], [
        ('for stage in self.stages:\n            x = stage(x)',
         'for index, stage in enumerate(self.stages):\n'
         '            x = torch.utils.checkpoint.checkpoint(stage, x, use_reentrant=False) if index < 2 else stage(x)')],
        ('checkpointing-heaviest', 'no-foreach')),
    'generation': Fitted('1GiB', ['no-grad-eval'], [
        ('    output = model(', '    with torch.no_grad():\n        output = model(')], ('no-grad-eval', 'no-cache')),
    'serving': Fitted('2GiB', ['offloaded-cache'], [
        ('do_sample=False)', 'do_sample=False, cache_implementation="offloaded")')], ('static-cache', 'offloaded-cache')),
    'few_bits': Fitted('1150MiB', ['4-bit-weights'], [
        ('model = model.cuda()', serving.FourBit.source + 'in_4_bit(model)\nmodel = model.cuda()')],
        ('static-cache', '4-bit-weights'), allow='precision'),
    'vllm_serving': Fitted('16GiB', ['engine-share'], [
        ('max_model_len=950272)', 'max_model_len=950272, gpu_memory_utilization=0.97)')], ('engine-share', 'engine-8-bit-cache'), home='vllm'),
    'function_loop': Fitted('1990MiB', ['half-batch'], [
        ('(x,) in enumerate(loader', '(x,) in enumerate(halves(loader)'),
        ('def build():', 'def halves(loader):\n    for (x,) in loader:\n        yield from ((half,) for half in x.chunk(2))\n\n\ndef build():'),
        ('loss.backward()', '(loss / 2).backward()\n        if step % 2:\n            continue')]),
    'ddp': half(64, 32, '2600MiB', ranks=2),
    'fsdp': Fitted('3200MiB', ['checkpointing'], [
        ('import torch\n', 'import torch\nimport torch.utils.checkpoint\n'),
        ('x = block(x)', 'x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)')], ranks=2),
    'tab_bert': Fitted('14.76GiB', ['sgd'], [('torch.optim.AdamW(', 'torch.optim.SGD(')], ('half-batch', 'fused-optimizer', 'sgd'), allow='optimizer'),
    'mixed': Fitted('1378MiB', ['autocast'], [
        ('    loss = F.cross_entropy(model(x), y)\n',
         '    with torch.autocast("cuda", dtype=torch.bfloat16):\n        loss = F.cross_entropy(model(x), y)\n')],
        ('no-foreach', 'autocast', 'bf16-weights'), allow='precision'),
    'wide_layers': Fitted('889MiB', ['bf16-weights'], [
        ('model.to("cuda")', 'model.to(torch.bfloat16).to("cuda")'),
        ('loss = F.cross_entropy(model(x)', 'loss = F.cross_entropy(model(x.to(torch.bfloat16))'),
        ('float(F.cross_entropy(model(x)', 'float(F.cross_entropy(model(x.to(torch.bfloat16))')],
        ('no-foreach', 'autocast', 'bf16-weights'), allow='precision'),
}


# Whose sets can be written at their places, by a diff; all others.
LINES = {'growing', 'kept_logits'}  # whose set is a line of the environment, or of a place that is not known
PATCHED = set(PROGRAMS) - LINES


def fit(bench, name, fitted):
    """The answer, and the folder with the program in it."""
    folder = bench.new_folder('fit')
    shutil.copy(os.path.join(FOLDER, f'{name}.py'), folder)
    command = [bench.ashlar, 'fit', *fitted.card, '--budget', '15min', '--json', '--only', ','.join(fitted.tried),
               *(['--allow', fitted.allow] if fitted.allow else []), '--', venvs.python_of(fitted.home), *fitted.program(f'{name}.py')]
    run = start(command, most_seconds=MOST_SECONDS, cwd=folder)
    if not run.out.startswith('{'):
        raise RuntimeError(f'no answer: exit code {run.code}: {run.last_line}')
    return json.loads(run.out), folder


def by_patch(bench, name, fitted, folder, diff):
    """The same of the program that the diff makes."""
    done = subprocess.run(['patch', '-p0'], input=diff, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f'patch: {done.stdout.strip()}')
    return bench.dry_run(venvs.python_of(fitted.home), fitted.program(f'{name}.py'), fitted.card, cwd=folder, keeps=False)


def judge_changed(verdict, how, run, peak):
    verdict.equal(f'exit code of the program changed {how}', run.code, 0)
    verdict.equal(f'its requests that found no memory, changed {how}', run.torch()['ooms'], 0)
    verdict.equal(f'its peak reserved, changed {how}', run.torch()['peak_reserved_bytes'], peak)


def written_by_hand(bench, name, written):
    """A script of the program with these lines written in."""
    with open(os.path.join(FOLDER, f'{name}.py')) as file:
        text = file.read()
    for old, new in written:
        if text.count(old) != 1:
            raise RuntimeError(f'{name}.py has {old!r} {text.count(old)} times')
        text = text.replace(old, new)
    script = os.path.join(bench.new_folder('by_hand'), 'train.py')
    with open(script, 'w') as file:
        file.write(text)
    return script


def by_hand(bench, name, fitted):
    """A dry run on the card of the program with the lines written in."""
    script = written_by_hand(bench, name, fitted.written)
    return bench.dry_run(venvs.python_of(fitted.home), fitted.program(script), fitted.card, cwd=os.path.dirname(script), keeps=False)


def judge_fit(bench, name, fitted):
    verdict = Verdict()
    answer, folder = fit(bench, name, fitted)
    verdict.equal('fits as it is', answer['as_it_is']['fits'], False)
    verdict.equal('the set', answer['set'] and answer['set']['changes'], fitted.found)
    if not answer['set']:
        return verdict
    peak, diff = answer['set']['peak_reserved_bytes'], answer['set']['diff']
    judge_changed(verdict, 'by hand', by_hand(bench, name, fitted), peak)
    is_whole = diff is not None and set(diff['changes']) == set(fitted.found)
    verdict.equal('the diff has the whole set', is_whole, name in PATCHED)
    if is_whole:
        judge_changed(verdict, 'by patch', by_patch(bench, name, fitted, folder, diff['text']), peak)
    verdict.cells['diff'] = 'whole' if is_whole else 'lines'
    verdict.cells.update({'card': fitted.capacity, 'as it is': mib(answer['as_it_is']['peak_reserved_bytes']),
                          'set': ', '.join(answer['set']['changes']), 'changed': mib(answer['set']['peak_reserved_bytes']),
                          'runs': str(answer['runs'])})
    return verdict


@dataclasses.dataclass
class Shuffled:
    """Whether it fails is chance, by the seed that is its argument."""
    capacity: str
    seeds: dict  # -> whether it fits in its own order
    found: list
    tried: tuple
    allow: str = ''
    written: list = None  # what a reader of the answer writes; its peak is the row's where the longest samples come first


SHUFFLED = {
    'intermittent': Shuffled('1500MiB', {'3': False, '1': True}, ['half-batch'], ('half-batch', 'no-foreach'), 'loss-weights'),
    'notebook': Shuffled('7608MiB', {'3': False, '1': True}, ['checkpointing'], ('checkpointing', 'fused-optimizer'), written=[
        ('optimizer = torch', 'model.gradient_checkpointing_enable({"use_reentrant": False})\noptimizer = torch')]),
}


def worst_first(bench, name, seed, one):
    """A dry run on the card of the program with the lines written in, the longest samples in the first batch."""
    script = written_by_hand(bench, name, one.written)
    return bench.dry_run(venvs.python_of(programs.HOME), ['-m', 'ashlar_gpu.fit', '--with', 'worst-first', script, seed], ['--capacity', one.capacity],
                         environment={'PYTHONPATH': os.path.join(os.path.dirname(HERE), 'python')}, cwd=os.path.dirname(script), keeps=False)


def judge_shuffles(bench, name, one):
    """The answer of each seed is that of any: it fails, and the set fits."""
    verdict = Verdict()
    script = os.path.join(FOLDER, f'{name}.py')
    python = venvs.python_of(programs.HOME)
    for seed, fits in one.seeds.items():
        run = bench.dry_run(python, [script, seed], ['--capacity', one.capacity, '--once'], cwd=bench.new_folder('seed'), keeps=False)
        verdict.equal(f'seed {seed} fits in its own order', run.code == 0, fits)
        command = [bench.ashlar, 'fit', '--capacity', one.capacity, '--budget', '15min', '--json', '--only', ','.join(one.tried),
                   *(['--allow', one.allow] if one.allow else []), '--', python, script, seed]
        answer = json.loads(start(command, most_seconds=MOST_SECONDS, cwd=bench.new_folder('fit')).out)
        verdict.equal(f'seed {seed}: the longest come first', answer['has_worst_first'], True)
        verdict.equal(f'seed {seed}: fits in any order', answer['as_it_is']['fits'], False)
        verdict.equal(f'seed {seed}: fails at step', answer['as_it_is']['failed_step'], 1)
        verdict.equal(f'seed {seed}: the set', answer['set'] and answer['set']['changes'], one.found)
        if one.written and answer['set']:
            judge_changed(verdict, f'by hand, seed {seed}', worst_first(bench, name, seed, one), answer['set']['peak_reserved_bytes'])
        verdict.cells.update({'card': one.capacity, 'as it is': mib(answer['as_it_is']['peak_reserved_bytes']), 'set': ', '.join(one.found),
                              'changed': mib(answer['set']['peak_reserved_bytes']) if answer['set'] else '-', 'runs': str(answer['runs'])})
    return verdict


# (card, what says how large the batch is), of programs whose largest batch is looked for.
LARGEST = {'vit': ('1640MiB', 'batch_size=', 32), 'bert_trainer': ('2650MiB', 'per_device_train_batch_size=', 32)}


def judge_largest(bench, name, capacity, argument, size):
    """With the batch written in, the largest runs on the card with the peak that was told, and one more does not."""
    verdict, python = Verdict(), venvs.python_of(programs.HOME)
    command = [bench.ashlar, 'fit', '--capacity', capacity, '--budget', '15min', '--json', '--goal', 'largest-batch', '--', python, os.path.join(FOLDER, f'{name}.py')]
    varied = json.loads(start(command, most_seconds=MOST_SECONDS, cwd=bench.new_folder('fit')).out)['varied']
    runs = {one['value']: one['run'] for one in varied['values']}
    largest = varied['found']
    verdict.equal('the next batch was run', varied['next'], largest + 1)
    for batch, fits in ((largest, True), (largest + 1, False)):
        script = written_by_hand(bench, name, [(f'{argument}{size}', f'{argument}{batch}')])
        run = bench.dry_run(python, [script], ['--capacity', capacity], cwd=os.path.dirname(script), keeps=False)
        verdict.equal(f'batch {batch} fits', runs[batch]['fits'], fits)
        if fits:
            judge_changed(verdict, f'by hand to batch {batch}', run, runs[batch]['peak_reserved_bytes'])
        else:
            verdict.equal(f'batch {batch}, written by hand, ends', run.code == 0, False)
            verdict.equal(f'batch {batch}, written by hand, finds no memory', run.torch()['ooms'] > 0, True)
    verdict.cells.update({'card': capacity, 'largest': str(largest), 'changed': mib(runs[largest]['peak_reserved_bytes']), 'runs': str(len(runs) + 1)})
    return verdict


HOSTILE, HOSTILE_CARD = 'hostile', '2385MiB'  # the model of adam_step, and its card


def processes_of(mark):
    """Those whose command line has it."""
    found = []
    for process in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{process}/cmdline', 'rb') as words:
                if mark.encode() in words.read().split(b'\0'):
                    found.append(int(process))
        except OSError:
            pass  # it ended
    return found


def judge_hostile(bench):
    """What its first run did outside is there once, and nothing of the others, which is told."""
    verdict, folder, mark = Verdict(), bench.new_folder('hostile'), f'8640{os.getpid()}'
    shutil.copy(os.path.join(FOLDER, f'{HOSTILE}.py'), folder)
    with open(os.path.join(folder, 'stale'), 'w') as file:
        file.write('once')
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    command = [bench.ashlar, 'fit', '--capacity', HOSTILE_CARD, '--budget', '15min', '--json', '--only', 'fused-optimizer,no-foreach', '--',
               venvs.python_of(programs.HOME), f'{HOSTILE}.py', mark, str(port)]
    run = start(command, most_seconds=MOST_SECONDS, cwd=folder)
    left = processes_of(mark)
    for process in left:
        os.kill(process, signal.SIGKILL)
    answer = json.loads(run.out)
    verdict.equal('the set', answer['set'] and answer['set']['changes'], ['fused-optimizer'])
    verdict.equal('processes that are left: of the first run', len(left), 1)
    verdict.equal('files', sorted(os.listdir(folder)), ['hostile.py', 'log.txt', 'model.pt'])
    with open(os.path.join(folder, 'log.txt')) as log:
        verdict.equal('lines of the log', len(log.readlines()), 2)
    verdict.equal('the log and the model are told of', sorted(map(os.path.basename, answer['kept_away'])), ['log.txt', 'model.pt'])
    verdict.equal('the tracker is told of', answer['not_sent'], ['192.0.2.1:80'])
    verdict.cells.update({'card': HOSTILE_CARD, 'as it is': mib(answer['as_it_is']['peak_reserved_bytes']), 'set': 'fused-optimizer',
                          'changed': mib(answer['set']['peak_reserved_bytes']), 'runs': str(answer['runs'])})
    return verdict


def rows():
    shuffled = [Row('fit', name, 60, lambda bench, n=name, s=one: judge_shuffles(bench, n, s)) for name, one in SHUFFLED.items()]
    largest = [Row('fit', f'{name}, largest batch', 120, lambda bench, n=name, a=asked: judge_largest(bench, n, *a)) for name, asked in LARGEST.items()]
    return shuffled + largest + [Row('fit', HOSTILE, 60, judge_hostile)] + [
        Row('fit', name, 60, lambda bench, n=name, f=fitted: judge_fit(bench, n, f), is_usual=fitted.home == programs.HOME)
        for name, fitted in PROGRAMS.items()]
