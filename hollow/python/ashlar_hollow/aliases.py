"""A CPU tensor over the bytes of a device tensor: a hollow device's addresses are host addresses.

Thread rule: any thread.
"""

import ctypes


def extent(tensor):
    """Bytes from the tensor's first element to the end of its last, in its storage."""
    if tensor.is_contiguous():
        return tensor.numel() * tensor.element_size()
    elements = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        if size == 0:
            return 0
        elements += (size - 1) * stride
    return elements * tensor.element_size()


def pieces(tensor, limit=1024):
    """The runs of bytes that the tensor's elements fill, [(address, bytes)]; None where they are more than `limit`."""
    address, width = tensor.data_ptr(), tensor.element_size()
    if tensor.is_contiguous():
        return [(address, tensor.numel() * width)]
    axes = sorted((stride, size) for size, stride in zip(tensor.shape, tensor.stride()) if size > 1 and stride > 0)
    run, rest = width, []
    for stride, size in axes:
        if not rest and stride * width == run:
            run *= size
        else:
            rest.append((stride * width, size))
    starts = [address]
    for step, size in rest:
        if len(starts) * size > limit:
            return None
        starts = [start + step * i for start in starts for i in range(size)]
    return [(start, run) for start in starts]


def share(torch, tensor, other):
    """Whether they are views of the same memory."""
    if tensor.layout is not torch.strided or other.layout is not torch.strided:
        return False
    return tensor.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


class Aliases(object):
    """Makes them. None is kept: what we leave behind would move the program's own garbage collections."""

    def __init__(self, torch):
        self.torch, self.empty, self.cpu = torch, torch.empty, torch.device("cpu")
        self.storage = getattr(torch._C, "_construct_storage_from_data_pointer", None) or self._storage

    def _storage(self, address, _, bytes_):
        memory = (ctypes.c_char * bytes_).from_address(address)
        return self.torch.frombuffer(memory, dtype=self.torch.uint8).untyped_storage()

    def of(self, tensor, bytes_):
        """Of a strided tensor that spans so many bytes: with its type, shape, strides and lazy bits."""
        made = self.empty(0, dtype=tensor.dtype)
        if bytes_ == 0:
            return made.resize_(tensor.shape)
        made.set_(self.storage(tensor.data_ptr(), self.cpu, bytes_), 0, tensor.shape, tensor.stride())
        if tensor.is_conj():
            made = made.conj()
        return self.torch._neg_view(made) if tensor.is_neg() else made
