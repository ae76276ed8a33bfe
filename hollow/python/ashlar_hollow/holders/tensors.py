"""Tensors as PyTorch's C functions tell of them: where their bytes lie, their gradients, and their graphs.

Nothing is dispatched: no mode, no subclass and no hook of the program is asked, nothing is allocated on the device. What
a saved tensor stands for where hooks packed it is the packed object; it is not unpacked.
"""

import contextlib

from . import reading
from .lying import Lying


@contextlib.contextmanager
def undisturbed(torch):
    """No __torch_function__ and no __torch_dispatch__ is run within."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        yield


class Unasked(object):
    """A tensor that PyTorch was not asked for: where it lies, and where its storage begins."""

    __slots__ = ("tensor", "address")

    def __init__(self, tensor, address):
        self.tensor, self.address = tensor, address


class Tensors(object):
    def __init__(self, torch):
        self.lying = Lying(torch)
        base = torch._C.TensorBase if hasattr(torch._C, "TensorBase") else torch._C._TensorBase
        self.base, self.storage_base = base, torch._C.StorageBase
        self.function = torch._C._FunctionBase
        self.strided = torch.strided
        self.address_of = getattr(torch._C, "_data_address", None) or _data_pointer
        self.read = {name: base.__dict__[name].__get__ for name in _READ if name in base.__dict__}
        self.parts = {name: base.__dict__[name] for names in _PARTS.values() for name in names if name in base.__dict__}
        self.layouts = [(getattr(torch, name), names) for name, names in _PARTS.items() if hasattr(torch, name)]
        self.unwrap = getattr(getattr(torch._C, "_functorch", None), "get_unwrapped", None)
        self.is_wrapped = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", None)
        self.saved = {}  # id of a node's type -> (the type, its attributes of saved tensors)

    def is_tensor(self, kind):
        return reading.is_kind(kind, self.base)

    def is_storage(self, kind):
        return reading.is_kind(kind, self.storage_base)

    def is_node(self, kind):
        """Of an autograd graph: PyTorch's own, or one that a program wrote."""
        return reading.is_kind(kind, self.function) or (
            not reading.is_heap_type(kind) and "next_functions" in reading.dict_of_type(kind)
        )

    def is_own_node(self, kind):
        return reading.is_kind(kind, self.function)

    def address(self, tensor):
        """Where its storage begins; 0: it has none."""
        try:
            return self.address_of(tensor)
        except Exception:
            return 0

    def is_part(self, tensor, size):
        """Whether it is a view of no more than half of so many bytes: it keeps all of them."""
        own = self._get("nbytes", tensor)
        return type(own) is int and 0 < 2 * own <= size

    def storage_address(self, storage):
        try:
            return self.storage_base.data_ptr(storage)
        except Exception:
            return 0

    def _get(self, name, tensor):
        try:
            return self.read[name](tensor)
        except Exception:
            return None

    def place(self, tensor):
        """Where its own structure lies; 0: not known."""
        return self._get("_cdata", tensor) or 0

    def gradient(self, tensor):
        """Asked for only where the answer is no warning. None, an Unasked or a tensor."""
        if not self._get("is_leaf", tensor) and not self._get("retains_grad", tensor):
            return None
        return self._unasked(self._gradient_at(tensor)) or self._get("grad", tensor)

    def _gradient_at(self, tensor):
        return self.lying.gradient_of(self.place(tensor)) if self.lying.is_proven else 0

    def _saved_at(self, saved):
        return self.lying.memory.at(self.lying.object_of(saved)) if self.lying.is_proven else 0

    def _unasked(self, tensor):
        """None where it is to be asked for."""
        if not tensor:
            return None
        address = self.lying.bytes_of(tensor)
        return Unasked(tensor, address) if address else None

    def is_trained(self, tensor, dtype):
        """Whether it is a leaf of that type and wants a gradient."""
        is_leaf = self._get("is_leaf", tensor) and self._get("requires_grad", tensor)
        return bool(is_leaf) and self._get("dtype", tensor) is dtype

    def hooks(self, tensor):
        return [found for found in (self._get(name, tensor) for name in _HOOKS) if found is not None]

    def inner(self, tensor):
        """The tensors that one of another layout, or of functorch, is made of."""
        try:
            if self.is_wrapped is not None and self.is_wrapped(tensor):
                return [self.unwrap(tensor)]
            layout = self.read["layout"](tensor)
            if layout is self.strided:
                return []
            names = next((names for one, names in self.layouts if one is layout), ())
            return [self.parts[name](tensor) for name in names if name in self.parts]
        except Exception:
            return []

    def viewed(self, tensor):
        """Of which the tensor is a view; None: of none."""
        return self._get("_base", tensor)

    # --- graphs: a node is told by where it lies (lying.py), or, where that cannot be read, is its object of Python ---

    def node(self, tensor):
        """That made the tensor; None: no node did."""
        if self.lying.is_proven:
            return self.lying.node_of(self.place(tensor)) or None
        return self._get("grad_fn", tensor)

    def node_of(self, held):
        """Of a node that Python holds as an object."""
        if not self.lying.is_proven:
            return held
        is_own = self.is_own_node(type(held))
        return (self.lying.node_that_has(held) if is_own else self.lying.object_of(held)) or held

    def _member(self, node, name):
        """As C has it: a program's own node may have a __getattr__."""
        kind = type(node)
        holder = self.function if self.is_own_node(kind) else kind
        return reading.dict_of_type(holder)[name].__get__(node, kind)

    def next_nodes(self, node):
        if type(node) is int:
            return self.lying.read(node).next
        try:
            return [one for one, _ in self._member(node, "next_functions") if one is not None]
        except Exception:
            return []

    def saved_by(self, node, known):
        """What the node keeps for the backward pass: tensors, asked for or not, what a hook packed them to, its objects of Python.

        `known`: of these, by id.
        """
        if type(node) is not int:
            return self._asked_of(node)
        read = self.lying.read(node)
        places = read.tensors if read.next else read.tensors + [self.lying.gradient_of(one) for one in read.tensors]
        found = [one for one in map(self._unasked, places) if one is not None]
        for one in self.lying.objects_of(read, known):
            found.append(one)
            if self.is_own_node(type(one)):
                found.extend(self._asked_of(one))
        return found

    def _asked_of(self, node):
        found = []
        for name in self._saved_names(type(node)):
            if name == _LEAF:
                leaf = self._member(node, name)
                found.append(leaf)
                gradient = self.gradient(leaf)
                if gradient is not None:
                    found.append(gradient)  # of a leaf that no variable has any more
                continue
            try:
                raw = self._member(node, name)
            except Exception:
                continue  # given back by a backward pass
            for one in raw if type(raw) in (tuple, list) else (raw,):
                try:
                    found.append(self._unasked(self._saved_at(one)) or one.data)
                except Exception:
                    pass
        return found

    def _saved_names(self, kind):
        known = self.saved.get(id(kind))
        if known is None:
            names = ["_raw_saved_tensors"] if self.is_own_node(kind) else []
            if not names:
                names = [one for one in reading.dict_of_type(kind) if one.startswith("_raw_saved_") or one == _LEAF]
            known = self.saved[id(kind)] = (kind, names)
        return known[1]


def can_follow_graphs(torch):
    """Whether this PyTorch gives what is saved as it lies there: older ones would run the program's hooks."""
    kept = getattr(getattr(torch._C, "_autograd", None), "SavedTensor", None)
    return hasattr(kept, "data")


def _data_pointer(tensor):  # PyTorch before 2.1
    return tensor.untyped_storage().data_ptr()


_LEAF = "variable"  # of the node that adds to a leaf's gradient
_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")
_READ = ("_cdata", "nbytes", "is_leaf", "requires_grad", "dtype", "retains_grad", "grad", "grad_fn", "layout", "_base") + _HOOKS
_PARTS = {
    "sparse_coo": ("_indices", "_values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}
