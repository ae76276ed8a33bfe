"""What an operation reads, writes and makes, told from its schema once.

Thread rule: any thread.
"""

VIEW, EMPTY, COMPUTED, COLLECTIVE, OPAQUE = range(5)

# They make memory without values.
_EMPTY = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")
# They change what a tensor is, not what its bytes hold.
_SHAPES = ("set_", "resize_", "resize_as_", "record_stream", "_resize_output_", "rename_", "is_pinned")
# Their schema does not say that they write these (native_functions.yaml, batch norm).
_WRITTEN = {name: ("running_mean", "running_var") for name in ("native_batch_norm", "cudnn_batch_norm")}
# They read nothing of what they write.
_OVERWRITES = ("copy_", "fill_", "zero_", "_foreach_zero_", "_foreach_copy_", "set_data")
# They read a value of their own scratch memory only where an index is a mask.
MASKS = ("index", "index_put", "index_put_", "_index_put_impl_")
# Of their tensor they read the shape only.
_LIKE = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")
# Under torch.inference_mode they come whole: some give a view, some a copy.
_PERHAPS_COPIES = ("to", "contiguous", "reshape", "reshape_as", "flatten", "type_as")
COPIES = ("copy_", "_to_copy", "clone", "_copy_from") + _PERHAPS_COPIES
_COLLECTIVES = ("c10d", "_c10d_functional", "c10d_functional", "_c10d_functional_autograd", "symm_mem")


def _is_write(info):
    return info is not None and info.is_write


class Plan(object):
    """kind, and for COMPUTED: written (argument -> is its old value read), overwrites, random,
    reads_inside (a value, to know its shape or its answer), gives_number (to the host), has_device, has_generator, copies."""

    FAILURES = 8  # in a row: then it is not tried any more

    def __init__(self, func):
        schema = func._schema
        self.name = schema.name.rpartition("::")[2]
        self.names = [argument.name for argument in schema.arguments]
        self.kind = self._kind(schema)
        self.copies, self.perhaps_copies = self.name in COPIES, self.name in _PERHAPS_COPIES
        self.has_device = "device" in self.names
        self.has_generator = "generator" in self.names
        self.random = self.has_generator or "nondeterministic_seeded" in str(getattr(func, "tags", ()))
        self.written = {}
        for argument in schema.arguments:
            if _is_write(argument.alias_info) or argument.name in _WRITTEN.get(self.name, ()):
                overwritten = self.name in _OVERWRITES and argument is schema.arguments[0]
                self.written[argument.name] = not (overwritten or argument.is_out)
        tags = str(getattr(func, "tags", ()))
        self.gives_number = "data_dependent_output" in tags or self.name == "_local_scalar_dense"
        self.reads_inside = self.name in MASKS or (
            self.name != "_local_scalar_dense" and ("dynamic_output_shape" in tags or "data_dependent_output" in tags)
        )
        self.overwrites = not all(self.written.values())
        self.reads_values = self.name not in _LIKE
        self.failures = 0

    def _kind(self, schema):
        namespace = schema.name.partition("::")[0]
        if namespace in _COLLECTIVES:
            return COLLECTIVE
        if self.name in _SHAPES or namespace in ("prim", "profiler"):
            return VIEW
        is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
        if is_view and self.name not in _PERHAPS_COPIES:
            return VIEW
        if self.name in _EMPTY:
            return EMPTY
        return COMPUTED if namespace == "aten" else OPAQUE

    def is_tried(self):
        return self.kind == COMPUTED and self.failures < self.FAILURES


class Plans(dict):
    """Operation -> Plan."""

    def __missing__(self, func):
        plan = self[func] = Plan(func)
        return plan
