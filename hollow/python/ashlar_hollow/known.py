"""Which bytes of tensors are known: the library holds the bytes, and this what is still in use.

PyTorch gives a block to the next tensor without telling the library. Under the mode each tensor is told as it is made;
where the mode is off (backward, compiled code) whatever is not in use any more is forgotten: see forget_unused.
Thread rule: any thread that holds the GIL.
"""

import weakref

from . import aliases

EVERYTHING = (1 << 64) - 1


class Known(object):
    PRUNED_FROM = 4096

    def __init__(self, torch, hollow):
        self.hollow = hollow
        self.expired, self.free_weak = torch.UntypedStorage._expired, torch.UntypedStorage._free_weak_ref
        # Of known tensors, by address. Numbers only: objects would move the program's own garbage collections.
        self.bytes, self.storage = {}, {}  # how many; the weak reference to the storage
        self.prune_at = self.PRUNED_FROM
        self.overwritten = {}  # id -> weak reference to the tensor: see watch
        self.graph = None  # while a CUDA graph is captured: the [(address, bytes)] that it writes

    def holds(self, tensor, bytes_=None):
        """Whether all of a tensor's bytes are known."""
        if bytes_ is None:
            bytes_ = aliases.extent(tensor)
        if bytes_ == 0 or self.hollow.is_known(tensor.data_ptr(), bytes_):
            return True
        runs = None if tensor.is_contiguous() else aliases.pieces(tensor)
        return runs is not None and all(self.hollow.is_known(*run) for run in runs)

    def know(self, tensor):
        runs = aliases.pieces(tensor)
        if runs is None:
            return self.forget(tensor)
        for run in runs:
            self.hollow.know(*run)
        self.keep(tensor)

    def keep(self, tensor):
        """The tensor's bytes are known already, as far as they are, and stay so while its storage lives."""
        address, bytes_ = tensor.data_ptr(), aliases.extent(tensor)
        if bytes_:
            if len(self.bytes) >= self.prune_at:
                self._prune()
            before = self.storage.get(address)
            known = self.bytes[address] if before is not None and not self.expired(before) else 0
            self._drop(address)
            self.bytes[address] = max(bytes_, known)
            self.storage[address] = tensor.untyped_storage()._weak_ref()

    def watch(self, tensor):
        """A known tensor that the program overwrote, as it clears a gradient: see forget_changed."""
        if not tensor.is_inference():
            self.overwritten[id(tensor)] = weakref.ref(tensor)

    def versions(self):
        """Of the watched tensors that live: id -> how often it was written."""
        alive = {key: reference() for key, reference in list(self.overwritten.items())}
        self.overwritten = {key: self.overwritten[key] for key, tensor in alive.items() if tensor is not None}
        return {key: tensor._version for key, tensor in alive.items() if tensor is not None}

    def forget_changed(self, versions):
        """Forgets the watched tensors that were written since."""
        for key, version in self.versions().items():
            if versions.get(key, version) != version:
                self.forget(self.overwritten.pop(key)())

    def forget(self, tensor):
        runs = aliases.pieces(tensor)
        self.forget_runs([(tensor.data_ptr(), aliases.extent(tensor))] if runs is None else runs)

    def forget_runs(self, runs):
        for run in runs:
            if run[1]:
                self.hollow.forget(*run)
                if self.bytes.get(run[0], EVERYTHING) <= run[1]:
                    self._drop(run[0])
                    del self.bytes[run[0]]
        if self.graph is not None:
            self.graph.extend(runs)

    def _drop(self, address):
        storage = self.storage.pop(address, None)
        if storage is not None:
            self.free_weak(storage)

    def _prune(self):
        """Leaves those whose storage lives."""
        for address, storage in list(self.storage.items()):
            if self.expired(storage):
                self._drop(address)
                self.bytes.pop(address, None)
        self.prune_at = max(self.PRUNED_FROM, 2 * len(self.bytes))

    def forget_unused(self):
        """Forgets all but the known bytes of storages that live."""
        self._prune()
        still = []
        for address, bytes_ in list(self.bytes.items()):
            if self.hollow.is_known(address, bytes_):
                still.append((address, bytes_))
            else:
                still.extend(self._known_within(address, bytes_))
        self.hollow.forget(0, EVERYTHING)
        for run in still:
            self.hollow.know(*run)

    def _known_within(self, address, bytes_, least=256):
        """Parts of it, by halves; what is smaller than `least` and not all known is given up."""
        if self.hollow.is_known(address, bytes_):
            return [(address, bytes_)]
        if bytes_ <= least:
            return []
        half = bytes_ // 2
        return self._known_within(address, half) + self._known_within(address + half, bytes_ - half)
