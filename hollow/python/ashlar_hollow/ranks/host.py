"""Collectives of CPU tensors without peers. Gloo connects its ranks when a group is made; PyTorch's FakeProcessGroup
takes its place, which connects none and gives each peer's part as a copy of this rank's.

What it lacks is done here, after its call: sums count every rank, each peer sends what this rank sends to itself
(all_to_all), and what one rank alone says (a broadcast, a scatter, a message) is heard where that rank ran before. Whom
this rank sends to and receives from is told, on any device. The functions are those of torch.distributed.distributed_c10d,
so that its collectives of objects go by them too. Thread rule: any thread.
"""

import ctypes
import functools
import inspect
import os
import pickle
from urllib.parse import quote


def gloo_class(real, fake):
    """In the place of ProcessGroupGloo: makes a FakeProcessGroup, and is Gloo's class in all else."""

    class Kind(type):
        def __call__(cls, store, rank, size, *_, **__):
            return _made(fake, rank, size)

        def __instancecheck__(cls, instance):
            return isinstance(instance, (real, fake))

        def __getattr__(cls, name):
            return getattr(real, name)

    return Kind("ProcessGroupGloo", (object,), {})


def _made(fake, rank, size):
    options = getattr(fake, "Options", None)
    make = getattr(fake, "_create_internal", fake)
    return make(rank, size) if options is None else make(rank, size, options())


PAIRED = {"send": "dst", "isend": "dst", "recv": "src", "irecv": "src"}  # and the argument that names the other rank


class Messages(object):
    """What one rank says, a file a message: the n-th of a group, or of a pair of its ranks."""

    def __init__(self, folder):
        self.folder = folder
        self.counts = {}

    def next(self, group, speaker):
        """The path of the next message; `speaker`: "all", or the two ranks of a pair."""
        number = self.counts.get((group, speaker), 0)
        self.counts[(group, speaker)] = number + 1
        return os.path.join(self.folder, "host-" + quote(group, safe=""), "%s-%d" % (speaker, number))

    @staticmethod
    def keep(path, tensors):
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            part = "%s.part-%d" % (path, os.getpid())
            with open(part, "wb") as out:
                for tensor in tensors:
                    out.write(_bytes_of(tensor))
            os.replace(part, path)
        except OSError:
            pass  # later ranks then do not hear it

    @staticmethod
    def hear(path, tensor, part=0):
        """Fills the tensor by the part of that number, where a rank said that much."""
        try:
            with open(path, "rb") as file:
                file.seek(part * _size_of(tensor))
                said = file.read(_size_of(tensor))
        except OSError:
            return
        if len(said) == _size_of(tensor) and tensor.is_contiguous():
            ctypes.memmove(tensor.data_ptr(), said, len(said))


def _size_of(tensor):
    return tensor.numel() * tensor.element_size()


def _bytes_of(tensor):
    whole = tensor.detach().contiguous()
    return ctypes.string_at(whole.data_ptr(), _size_of(whole))


def _is_of_host(given):
    """A tensor, or a list of some."""
    first = given[0] if isinstance(given, (list, tuple)) and given else given
    return getattr(getattr(first, "device", None), "type", None) == "cpu"


def _parts(tensor, sizes, group):
    """What of the tensor is for each rank, or of each."""
    return tensor.detach().split(list(sizes) if sizes else tensor.shape[0] // group.size())


class Host(object):
    def __init__(self, c10d, told):
        self.c10d, self.told = c10d, told
        self.messages = Messages(told.folder)
        self.originals = {}

    def install(self):
        for name in ("all_reduce", "broadcast", "scatter", "all_to_all", "all_to_all_single"):
            self._wrap(name, getattr(self, "_after_" + name))
        for name, key in PAIRED.items():
            self._wrap(name, self._after_send if key == "dst" else self._after_recv)
        self._name_unheard_objects()
        if hasattr(self.c10d, "monitored_barrier"):
            self.c10d.monitored_barrier = lambda *_, **__: None

    def _wrap(self, name, after):
        original = getattr(self.c10d, name, None)
        if original is None:
            return
        signature = inspect.signature(original)

        @functools.wraps(original)
        def call(*args, **kwargs):
            given = signature.bind(*args, **kwargs).arguments
            tensor = next(iter(given.values()))
            group = given.get("group") or self.c10d._get_default_group()
            if name in PAIRED:
                self._tell(given, group, PAIRED[name])
            done = original(*args, **kwargs)
            if _is_of_host(tensor) and isinstance(group, self.c10d.ProcessGroup) and group.size() > 1:
                after(tensor, given, group)
            return done

        setattr(self.c10d, name, call)

    def _name_unheard_objects(self):
        """Objects of a rank that has not run have no bytes, which pickle does not read."""
        original = getattr(self.c10d, "recv_object_list", None)
        if original is None:
            return
        signature = inspect.signature(original)

        @functools.wraps(original)
        def recv_object_list(*args, **kwargs):
            try:
                return original(*args, **kwargs)
            except (EOFError, pickle.UnpicklingError):
                given = signature.bind(*args, **kwargs).arguments
                source = given.get("src", given.get("group_src"))
                raise RuntimeError("rank %d of %d waits for objects of rank %s, which has not run before it: "
                                   "dry-run --roles %s,%d runs it first" %
                                   (self.told.rank, self.told.world, source, source, self.told.rank)) from None

        self.c10d.recv_object_list = recv_object_list

    def _peer(self, given, group, key):
        """The other rank, or the root, as the group counts."""
        of_group = given.get("group_" + key)
        if of_group is not None:
            return of_group
        of_world = given.get(key)
        return 0 if of_world is None else self.c10d.get_group_rank(group, of_world)

    def _tell(self, given, group, key):
        if given.get(key) is not None or given.get("group_" + key) is not None:  # else from any rank
            ranks = self.c10d.get_process_group_ranks(group)
            self.told.pair(ranks, ranks[self._peer(given, group, key)])

    def _after_all_reduce(self, tensor, given, group):
        operation = given.get("op", self.c10d.ReduceOp.SUM)
        if operation == self.c10d.ReduceOp.SUM:
            tensor.detach().mul_(group.size())
        elif operation == self.c10d.ReduceOp.PRODUCT:
            tensor.detach().pow_(group.size())

    def _after_all_to_all(self, tensors, given, group):
        own = given["input_tensor_list"][group.rank()].detach()
        for tensor in tensors:
            if tensor.shape == own.shape:
                tensor.detach().copy_(own)

    def _after_all_to_all_single(self, tensor, given, group):
        parts = {"input_tensor_list": _parts(given["input"], given.get("input_split_sizes"), group)}
        self._after_all_to_all(_parts(tensor, given.get("output_split_sizes"), group), parts, group)

    def _after_broadcast(self, tensor, given, group):
        path = self.messages.next(group.group_name, "all")
        if self._peer(given, group, "src") == group.rank():
            self.messages.keep(path, [tensor])
        else:
            self.messages.hear(path, tensor)

    def _after_scatter(self, tensor, given, group):
        path = self.messages.next(group.group_name, "all")
        if self._peer(given, group, "src") == group.rank():
            self.messages.keep(path, given.get("scatter_list") or [])
        else:
            self.messages.hear(path, tensor, group.rank())

    def _after_send(self, tensor, given, group):
        to = self._peer(given, group, "dst")
        self.messages.keep(self.messages.next(group.group_name, "%d-%d" % (group.rank(), to)), [tensor])

    def _after_recv(self, tensor, given, group):
        source = self._peer(given, group, "src")
        self.messages.hear(self.messages.next(group.group_name, "%d-%d" % (source, group.rank())), tensor)
