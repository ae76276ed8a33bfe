"""Tensors as PyTorch's C functions tell of them: where their bytes lie, their gradients, and their graphs.

Nothing is dispatched: no mode, no subclass and no hook of the program is asked, nothing is allocated on the device. What
a saved tensor stands for where hooks packed it is the packed object; it is not unpacked.
"""

import contextlib

from . import reading


@contextlib.contextmanager
def undisturbed(torch):
    """No __torch_function__ and no __torch_dispatch__ is run within."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        yield


class Tensors(object):
    def __init__(self, torch):
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

    def gradient(self, tensor):
        """Asked for only where the answer is no warning."""
        if self._get("is_leaf", tensor) or self._get("retains_grad", tensor):
            return self._get("grad", tensor)
        return None

    def is_trained(self, tensor, dtype):
        """Whether it is a leaf of that type and wants a gradient."""
        is_leaf = self._get("is_leaf", tensor) and self._get("requires_grad", tensor)
        return bool(is_leaf) and self._get("dtype", tensor) is dtype

    def node(self, tensor):
        return self._get("grad_fn", tensor)

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

    # --- graphs ---

    def _member(self, node, name):
        """As C has it: a program's own node may have a __getattr__."""
        kind = type(node)
        holder = self.function if self.is_own_node(kind) else kind
        return reading.dict_of_type(holder)[name].__get__(node, kind)

    def next_nodes(self, node):
        try:
            return [one for one, _ in self._member(node, "next_functions") if one is not None]
        except Exception:
            return []

    def saved_by(self, node):
        """What the node keeps for the backward pass: tensors, and what a hook packed them to."""
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
                    found.append(one.data)
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
_READ = ("is_leaf", "requires_grad", "dtype", "retains_grad", "grad", "grad_fn", "layout") + _HOOKS
_PARTS = {
    "sparse_coo": ("_indices", "_values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}
