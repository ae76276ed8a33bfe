#!/usr/bin/env python3
"""Whether cuDNN's workspaces without a device are nearer to this GPU's than none: ResNet-50, recorded on the GPU, and dry.

    python3 bench/resnet_workspaces.py --build build/release --python VENV/bin/python [--batch 32] [--device H200]

In one call, for each form of the program (float32, autocast, autocast with channels_last): `ashlar record` on the GPU; `ashlar dry-run`
as that card with --workspaces none and with --workspaces cudnn. A workspace is an allocation that the run without them does not have, by
size and count. The verdict is of PyTorch's peaks, allocated and reserved. The python has torch and torchvision; both runs are of the
same one, so that the cuDNN that is asked is the GPU's.

    ... --stand-in T4      no GPU: that card over the hollow device, with cuDNN's workspaces, takes its place. It tries the script out
    ... --self-test        the verdict on made-up figures, without a program

Without a GPU it says why in a line "no GPU: ..." and exits with 77.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, 'conformance'))
import histories  # noqa: E402

PROGRAM = os.path.join(ROOT, 'conformance', 'programs', 'resnet50.py')
FORMS = {'float32': [], 'autocast': ['amp'], 'autocast, channels_last': ['amp', 'channels_last']}
MIB = 1 << 20
SAME_BYTES = 2 * MIB  # peaks that differ by less are the same: a segment is a multiple of it

Side = collections.namedtuple('Side', 'allocated reserved sizes')  # sizes: of requests, each with how often it was made


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f'resnet_workspaces: {" ".join(command)} ended with {done.returncode}: {done.stderr.strip()[-600:]}')
    return done.stdout


def side_of(path):
    """What a history shows: PyTorch's peaks, and the sizes that were asked for."""
    events = histories.events(histories.load(path))
    held, most = {'allocated': 0, 'reserved': 0}, {'allocated': 0, 'reserved': 0}
    signs = {'alloc': ('allocated', 1), 'free_completed': ('allocated', -1), 'segment_alloc': ('reserved', 1), 'segment_map': ('reserved', 1),
             'segment_free': ('reserved', -1), 'segment_unmap': ('reserved', -1)}
    sizes = collections.Counter()
    for action, _, size, _ in events:
        if action in signs:
            what, sign = signs[action]
            held[what] += sign * size
            most[what] = max(most[what], held[what])
        if action == 'alloc':
            sizes[size] += 1
    return Side(most['allocated'], most['reserved'], sizes)


def workspaces(side, without):
    """Sizes that the run without workspaces does not have, the largest first."""
    return sorted((side.sizes - without.sizes).elements(), reverse=True)


def verdict(gpu, none, cudnn):
    """('cudnn', 'none', 'the same' or 'undecided', a sentence)"""
    errors = {name: (abs(side.allocated - gpu.allocated), abs(side.reserved - gpu.reserved)) for name, side in (('none', none), ('cudnn', cudnn))}
    better = []
    for index in (0, 1):
        difference = errors['none'][index] - errors['cudnn'][index]
        better.append('the same' if abs(difference) < SAME_BYTES else 'cudnn' if difference > 0 else 'none')
    names = set(better) - {'the same'}
    words = ', '.join(f'{what} off by {errors["none"][i] / MIB:,.1f} MiB with none and {errors["cudnn"][i] / MIB:,.1f} MiB with cudnn'
                      for i, what in enumerate(('allocated', 'reserved')))
    return (names.pop() if len(names) == 1 else 'undecided' if names else 'the same'), words


def cards():
    """(name, bytes) of the table of GPUs."""
    with open(os.path.join(ROOT, 'docs', 'guide', 'gpus.md'), encoding='utf-8') as file:
        rows = re.findall(r'^\| (\w[\w-]*) \| ([\d.]+) GiB \| [\d.]+ MiB', file.read(), re.MULTILINE)
    return [(name, float(gib) * 1024 * MIB) for name, gib in rows]


def card_of(name, total_bytes):
    """'NVIDIA A100-SXM4-80GB' -> A100-80GB: a card whose first word it has, the nearest by memory."""
    words = re.sub(r'NVIDIA|GeForce|Tesla|Quadro|Ampere|Blackwell', '', name).replace(' ', '')
    near = [(abs(size - total_bytes), card) for card, size in cards()
            if words.startswith(re.match(r'[A-Z]+\d+|\w+', card).group(0))]
    difference, card = min(near, default=(1e30, ''))
    return card if difference < 0.05 * total_bytes else ''


def why_no_gpu(python):
    """'' where there is one; (name, bytes) beside it."""
    probe = 'import json, torch; p = torch.cuda.get_device_properties(0); print(json.dumps([p.name, p.total_memory]))'
    done = subprocess.run([python, '-c', probe], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return '', json.loads(done.stdout.splitlines()[-1])
    return (done.stderr.strip().splitlines() or ['torch says nothing'])[-1], None


class Sides:
    def __init__(self, given, card, folder):
        self.ashlar, self.python, self.card = os.path.join(given.build, 'bin', 'ashlar'), given.python, card
        self.stand_in, self.batch, self.folder = given.stand_in, str(given.batch), folder

    def program(self, arguments):
        return ['--', self.python, PROGRAM, self.batch] + arguments

    def on_gpu(self, arguments):
        path = os.path.join(self.folder, 'gpu.pickle')
        over = [self.ashlar, 'dry-run', '--once', '--device', self.stand_in, '--workspaces', 'cudnn', '--'] if self.stand_in else []
        run(over + [self.ashlar, 'record', '-o', path] + self.program(arguments))
        return side_of(path)

    def dry(self, arguments, which):
        path = os.path.join(self.folder, f'{which}.pickle')
        run([self.ashlar, 'dry-run', '--once', '--device', self.card, '--workspaces', which, '-o', path] + self.program(arguments))
        return side_of(path)


def compare(sides):
    print('| form | what | GPU | dry, none | dry, cudnn |\n|---|---|--:|--:|--:|')
    found = {}
    for form, arguments in FORMS.items():
        gpu, none, cudnn = sides.on_gpu(arguments), sides.dry(arguments, 'none'), sides.dry(arguments, 'cudnn')
        columns = (gpu, none, cudnn)
        for what in ('allocated', 'reserved'):
            print(f'| {form} | {what} | ' + ' | '.join(f'{getattr(side, what) / MIB:,.1f} MiB' for side in columns) + ' |')
        extra = [workspaces(side, none) for side in columns]
        print(f'| {form} | workspaces | ' + ' | '.join(str(len(sizes)) for sizes in extra) + ' |')
        print(f'| {form} | the largest | ' + ' | '.join(f'{max(sizes, default=0) / MIB:,.1f} MiB' for sizes in extra) + ' |')
        print(f'| {form} | their sum | ' + ' | '.join(f'{sum(sizes) / MIB:,.1f} MiB' for sizes in extra) + ' |', flush=True)
        found[form] = verdict(gpu, none, cudnn)
    print()
    for form, (which, words) in found.items():
        print(f'verdict, {form}: {which}: {words}')
    names = {which for which, _ in found.values()} - {'the same'}
    print(f'VERDICT: {names.pop() if len(names) == 1 else "undecided" if names else "the same"}')


def self_test():
    made = lambda allocated, reserved: Side(allocated * MIB, reserved * MIB, collections.Counter())
    cases = {'cudnn': [(100, 200), (80, 180), (99, 202)], 'none': [(100, 200), (101, 200), (150, 260)],
             'undecided': [(100, 200), (90, 200), (100, 260)], 'the same': [(100, 200), (100, 200), (101, 200)]}
    for wanted, sides in cases.items():
        got, words = verdict(*(made(*side) for side in sides))
        if got != wanted:
            sys.exit(f'self-test: {got} and not {wanted}: {words}')
    one, other = (Side(0, 0, collections.Counter(sizes)) for sizes in ([512, 512, 7 * MIB], [512, 512]))
    if workspaces(one, other) != [7 * MIB] or workspaces(other, other) != []:
        sys.exit('self-test: workspaces are not what one side has more')
    for name, gib, wanted in (('NVIDIA A100-SXM4-80GB', 79.25, 'A100-80GB'), ('NVIDIA H200', 139.8, 'H200'), ('Tesla T4', 14.7, 'T4'),
                              ('NVIDIA GeForce RTX 4090', 23.6, 'RTX4090'), ('NVIDIA Z9', 20, '')):
        if card_of(name, gib * 1024 * MIB) != wanted:
            sys.exit(f'self-test: {name} is {card_of(name, gib * 1024 * MIB)!r} and not {wanted!r}')
    print('self-test passed')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(ROOT, 'build', 'release'))
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--batch', type=int, default=32)
    parser.add_argument('--device', help='of the table of GPUs; by the name that the driver says, where it is not given')
    parser.add_argument('--stand-in', metavar='CARD')
    parser.add_argument('--self-test', action='store_true')
    given = parser.parse_args()
    given.build = os.path.abspath(given.build)
    self_test()
    if given.self_test:
        return
    card = given.device or given.stand_in
    if not given.stand_in:
        why, gpu = why_no_gpu(given.python)
        if why:
            print(f'no GPU: {why}')
            sys.exit(77)
        card = card or card_of(*gpu)
        if not card:
            sys.exit(f'resnet_workspaces: no card of the table is {gpu[0]}: give --device')
        print(f'GPU: {gpu[0]}, taken as {card}')
    with tempfile.TemporaryDirectory() as folder:
        compare(Sides(given, card, folder))


if __name__ == '__main__':
    main()
