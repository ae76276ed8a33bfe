"""The real run of small operations, with the host's tensors taken for the device's: the device's run is then right, and
the values beside it must be the same. Needs PyTorch, of any kind; skips without.

    python3 host_values_test.py
"""

import itertools
import os
import random
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "hollow", "python"))

try:
    import torch
except ImportError:
    torch = None


class Bytes(object):
    """A library that knows single bytes."""

    def __init__(self):
        self.known = set()

    def know(self, address, bytes_):
        self.known.update(range(address, address + bytes_))

    def forget(self, address, bytes_):
        if bytes_ > 1 << 40:
            self.known.clear()
        self.known.difference_update(range(address, address + min(bytes_, 1 << 20)))

    def is_known(self, address, bytes_):
        return all(byte in self.known for byte in range(address, address + bytes_))


def arithmetic():
    x = torch.arange(10)
    yield (x * 2 + 1).sum().item()
    yield x.reshape(2, 5)[:, 1:4:2].tolist()
    x[::2] = -1
    yield x.tolist()
    yield [(x > 0).all().item(), (x > 0).nonzero().flatten().tolist(), x[x > 4].tolist(), torch.unique(x).tolist()]
    yield torch.equal(x, x.clone())
    yield torch.ones(1).expand(5).cumsum(0).tolist()
    yield torch.tensor([1 + 2j, 3 - 1j]).conj().mul(2).tolist()
    yield torch.tensor([1 + 2j, 3 - 1j]).conj().imag.add(1).tolist()
    yield torch.add(torch.ones(4), 1, out=torch.zeros(4)).tolist()
    yield torch.max(torch.tensor([[1, 5], [7, 2]]), dim=1).indices.tolist()
    yield torch.vmap(lambda row: row.sum() * 2)(torch.arange(6.0).reshape(3, 2)).tolist()
    steps = [torch.zeros(()) for _ in range(3)]
    torch._foreach_add_(steps, 1)
    yield [step.item() for step in steps]
    with torch.inference_mode():
        yield torch.full((3,), 7.0).sum().item()


def training():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss = model(torch.arange(32.0).reshape(4, 8)).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.item()
    yield [parameter.tolist() for parameter in model.parameters()]
    yield [model[1].running_mean.tolist(), model[1].num_batches_tracked.item()]


@unittest.skipIf(torch is None, "no PyTorch")
class HostValues(unittest.TestCase):
    def setUp(self):
        from ashlar_hollow import backward, operation, values

        self.operation, self.on_device = operation, operation.on_device
        operation.on_device = lambda tensor: True
        self.hollow = Bytes()
        self.values = values.Values(torch, self.hollow, 65536)
        self.values.capturing = lambda: False
        self.stack = backward.Stack(values.make_mode(torch, self.values))

    def tearDown(self):
        self.stack.take()
        self.operation.on_device = self.on_device

    def under_mode(self, program):
        self.stack.put()
        try:
            return list(program())
        finally:
            self.stack.take()

    def test_values_are_those_of_the_device(self):
        for program in (arithmetic, training):
            self.assertEqual(self.under_mode(program), list(program()))
        self.assertEqual(self.values.counts["failed"], 0)
        self.assertGreater(self.values.counts["real"], 100)

    def test_known_is_what_flows_from_the_known(self):
        def program():
            known = torch.zeros(8)
            self.assertTrue(self.values.known.holds(known))
            unknown = torch.empty(8)
            self.assertFalse(self.values.known.holds(known + unknown))
            self.assertFalse(self.values.known.holds(torch.rand(8)))
            self.assertTrue(self.values.known.holds(torch.ones_like(unknown)))
            self.assertTrue(self.values.known.holds(torch.empty(1 << 15).new_full((2,), 3)))
            large = torch.zeros(1 << 15).sum(0, keepdim=True)  # of 128 KiB
            self.assertFalse(self.values.known.holds(large))
            self.assertEqual(large.tolist(), [0.0])
            table = torch.zeros(4, 4)
            table[:, 1] = unknown[:4]
            self.assertFalse(self.values.known.holds(table))
            self.assertTrue(self.values.known.holds(table[:, 2:]))
            table.fill_(3)
            self.assertTrue(self.values.known.holds(table))
            yield 0

        self.under_mode(program)

    def test_what_is_in_use_stays_known_and_what_is_not_is_forgotten(self):
        def program():
            kept, dropped = torch.ones(8), torch.ones(8)
            address = dropped.data_ptr()
            del dropped
            self.assertTrue(self.hollow.is_known(address, 32))
            self.values.known.forget_unused()
            self.assertFalse(self.hollow.is_known(address, 32))
            self.assertTrue(self.values.known.holds(kept))
            yield 0

        self.under_mode(program)

    def test_a_cleared_gradient_is_forgotten_once_the_engine_adds_to_it(self):
        from ashlar_hollow import backward

        engine = torch.autograd.Variable._execution_engine
        backward.install(torch, self.stack, self.values.known)

        def program():
            leaf, counter = torch.zeros(4, requires_grad=True), torch.zeros(()).fill_(1)
            (leaf * 2).sum().backward()
            self.assertFalse(self.values.known.holds(leaf.grad))
            leaf.grad.zero_()
            self.assertTrue(self.values.known.holds(leaf.grad))
            (leaf * 2).sum().backward()
            self.assertFalse(self.values.known.holds(leaf.grad))
            yield self.values.known.holds(counter)

        try:
            self.assertEqual(self.under_mode(program), [True])
        finally:
            torch.autograd.Variable._execution_engine = engine

    def test_the_programs_random_numbers_are_not_drawn(self):
        generator = self.values.generator
        torch.manual_seed(5)
        before = generator.get_state()
        first = self.under_mode(lambda: [torch.rand(4).numel(), torch.nn.functional.dropout(torch.ones(4)).numel()])
        under = torch.get_rng_state()
        torch.manual_seed(5)
        torch.rand(4), torch.nn.functional.dropout(torch.ones(4))
        self.assertEqual(first, [4, 4])
        self.assertTrue(torch.equal(under, torch.get_rng_state()))  # drawn by the device's run alone
        self.assertFalse(torch.equal(before, generator.get_state()))

    def test_a_users_mode_is_above_ours(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        seen = []

        class Users(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        with Users():
            self.stack.put()  # CUDA's first use, within the program's mode
            torch.zeros(3)
        torch.zeros(3)
        self.assertTrue(self.stack.take())
        self.assertEqual((len(seen), self.values.counts["real"]), (1, 2))

    def test_an_error_holds_no_tensor(self):
        import weakref

        held = []

        def program():
            tensor = torch.zeros(3)
            held.append(weakref.ref(tensor))
            try:
                torch.mm(tensor, tensor)
            except RuntimeError as error:
                del tensor
                yield held[0]() is None and error is not None

        self.assertEqual(self.under_mode(program), [True])

    def test_pieces_are_the_bytes_of_the_elements(self):
        from ashlar_hollow import aliases

        draw = random.Random(2)
        for _ in range(300):
            base = torch.empty(4, 5, 6, dtype=draw.choice([torch.int8, torch.float32, torch.float64]))
            index = [slice(draw.randrange(3), draw.randrange(3, n + 1), draw.randrange(1, 3)) for n in base.shape]
            view = base[tuple(index)].permute(draw.sample(range(3), 3))
            if draw.random() < 0.3:
                view = view[:1].expand(4, -1, -1)
            width, start = view.element_size(), view.data_ptr()
            wanted = set()
            for at in itertools.product(*[range(size) for size in view.shape]):
                first = start + width * sum(i * stride for i, stride in zip(at, view.stride()))
                wanted.update(range(first, first + width))
            runs = aliases.pieces(view)
            self.assertEqual({b for run in runs for b in range(run[0], sum(run))}, wanted)
            if wanted:
                self.assertEqual(aliases.extent(view), max(wanted) + 1 - start)


if __name__ == "__main__":
    unittest.main()
