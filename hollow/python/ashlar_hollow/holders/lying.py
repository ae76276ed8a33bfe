"""Tensors and graphs as they lie in PyTorch's own structures, for those that no object of Python stands for.

    lying = Lying(torch)             # of one walk; the first of a process proves on tensors of ours where things lie
    lying.is_proven                  # else PyTorch is to be asked
    lying.node_of(tensor)            # of the graph; 0: it has none. Tensors and nodes are told by where they lie
    lying.read(node)                 # Node(next, tensors, words): the nodes before it, what it has saved, and its own memory
    lying.bytes_of(tensor)           # where its storage begins; 0: it has none that is to be seen

PyTorch makes an object for each tensor and each node that Python asks for, which stays as long as they do. A graph would then be let
go through these objects, in another order than without us: so its parts are not asked for. Of a node each word that leads to a
tensor counts, and so does each in an array that it has.

Memory is read through /proc/self/mem, where a bad address is an error and nothing else. Thread rule: with the GIL held throughout.
"""

import collections
import ctypes
import os
import struct

_WORD = 8
_FIRST_OF_OBJECT = 16  # what an object of Python stands for
_MOST_BYTES = 4096  # of a node
_LEAST_ADDRESS, _END_OF_ADDRESSES, _ALIGNED = 1 << 16, 1 << 47, 16
_AT_ONCE, _MOST_IN_ARRAY = 1 << 16, 1 << 24
_OF_OBJECT, _OF_HOOKS = 512, 4 * _WORD  # bytes that are looked at of these
_proven = None  # of the process: its Places, or False

Node = collections.namedtuple("Node", "next tensors words")
# Of a tensor: what it begins with, its storage, and what autograd knows of it. In these: its bytes, its gradient, the node that
# made it. In a node: its edges, and how long one is.
Places = collections.namedtuple("Places", "kind storage autograd bytes gradient node edges edge_bytes")


def c_function(name, result, *arguments):
    """One that this process has, as the C library's: Python's own would let other threads run. None: it has none of that name."""
    try:
        found = ctypes.PyDLL(None)[name]
    except (AttributeError, OSError):
        return None
    found.restype, found.argtypes = result, arguments
    return found


_read = c_function("pread64", ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64)
_size_of = c_function("malloc_usable_size", ctypes.c_size_t, ctypes.c_void_p)
_room = ctypes.create_string_buffer(_AT_ONCE)


class Memory(object):
    """Words of this process, as it is now: a forked child has a memory of its own."""

    def __init__(self):
        self.file = -1
        self.file = os.open("/proc/self/mem", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))

    def __del__(self):
        if self.file >= 0:
            os.close(self.file)

    def words(self, address, bytes_):
        """Nothing where there are none."""
        if not 0 < address < _END_OF_ADDRESSES or address % _WORD or not 0 < bytes_ <= _MOST_IN_ARRAY:
            return ()
        found = []
        for start in range(0, bytes_, _AT_ONCE):
            size = min(_AT_ONCE, bytes_ - start)
            if _read(self.file, _room, size, address + start) != size:
                return ()
            found.extend(struct.unpack_from("=%dQ" % (size // _WORD), _room))
        return found

    def at(self, address):
        """0 where there is none."""
        found = self.words(address, _WORD)
        return found[0] if found else 0

    def place_of(self, value, start):
        """How far from the start the value lies."""
        return next(place for place in range(0, 256, _WORD) if self.at(start + place) == value)


class Lying(object):
    def __init__(self, torch):
        global _proven
        self.places = self.memory = None
        try:
            self.memory = Memory()
            if _proven is None:
                _proven = False
                with torch.inference_mode(False), torch.enable_grad():
                    _proven = self._prove(torch)
        except Exception:  # whatever it is: PyTorch is asked then
            pass
        self.places = self.memory and _proven or None

    @property
    def is_proven(self):
        return self.places is not None

    def _prove(self, torch):
        """The places, where what is read by them is what PyTorch says of a small graph; else False."""
        memory, gradient = self.memory, torch.ones(2, device="cpu")
        left, right = (torch.ones(2, device="cpu", requires_grad=True) for _ in range(2))
        left.grad, made = gradient, left * right
        node, before = self.object_of(made.grad_fn), [self.object_of(one) for one, _ in made.grad_fn.next_functions]
        storage = memory.place_of(left.untyped_storage()._cdata, left._cdata)
        autograd = storage + _WORD
        edges = next(place for place in range(0, _size_of(node), _WORD) if memory.at(memory.at(node + place)) == before[0])
        begin, end = memory.words(node + edges, 2 * _WORD)
        self.places = Places(
            memory.at(left._cdata), storage, autograd, memory.place_of(left.data_ptr(), left.untyped_storage()._cdata),
            memory.place_of(gradient._cdata, memory.at(left._cdata + autograd)),
            memory.place_of(node, memory.at(made._cdata + autograd)), edges, (end - begin) // len(before))
        return self.places if self._is_right(left, right, made, node, before) else False

    def _is_right(self, left, right, made, node, before):
        read, last = self.read(node), self.read(before[1])
        graph = read.next == before and set(read.tensors) == {left._cdata, right._cdata}
        leaf = last.next == [] and last.tensors == [right._cdata] and not self.node_of(right._cdata)
        gradients = self.gradient_of(left._cdata) == left.grad._cdata and not self.bytes_of(self.gradient_of(right._cdata))
        return graph and leaf and gradients and self.node_of(made._cdata) == node and self.bytes_of(made._cdata) == made.data_ptr()

    # --- what is read ---

    def object_of(self, wrapper):
        """What an object of Python stands for: a node of PyTorch's own, or a saved tensor."""
        return self.memory.at(id(wrapper) + _FIRST_OF_OBJECT)

    def _of_autograd(self, tensor, place):
        known = self.memory.at(tensor + self.places.autograd) if tensor else 0
        return self.memory.at(known + place) if known else 0

    def node_of(self, tensor):
        return self._of_autograd(tensor, self.places.node)

    def gradient_of(self, leaf):
        """One without a graph of its own."""
        gradient = self._of_autograd(leaf, self.places.gradient)
        return 0 if gradient and self.memory.at(gradient + self.places.autograd) else gradient

    def node_that_has(self, own):
        """Of a program's own node: PyTorch's, which has the object that Python knows; 0: it is not found."""
        words = self.memory.words(id(own), _OF_OBJECT)
        return next((one for one in words if _is_made(one) and id(own) in self.memory.words(one, _OF_OBJECT)), 0)

    def bytes_of(self, tensor):
        storage = self.memory.at(tensor + self.places.storage) if tensor else 0
        return self.memory.at(storage + self.places.bytes) if storage else 0

    def read(self, node):
        is_there = _is_made(node) and self.memory.at(node) and self.memory.at(node - _WORD)  # what tells of its size too
        words = self.memory.words(node, min(_size_of(node), _MOST_BYTES) & -_WORD) if is_there else ()
        return Node(self._next_of(words), self._tensors_of(words), words)

    def objects_of(self, node, known):
        """Objects of Python that the node has, or that have been packed for it. `known`: those that there are, by id."""
        words = list(node.words)
        for one in filter(_is_made, node.words):
            words.extend(self.memory.words(one, _OF_HOOKS))
        return [known[one] for one in dict.fromkeys(words) if one in known]

    def _next_of(self, words):
        first, step = self.places.edges // _WORD, self.places.edge_bytes // _WORD
        begin, end = words[first:first + 2] or (0, 0)
        return [one for one in self.memory.words(begin, end - begin)[::step] if one]

    def _tensors_of(self, words):
        """Also of arrays."""
        found, edges = [], self.places.edges // _WORD
        for place, word in enumerate(words):
            if not _is_made(word):
                continue
            if self.memory.at(word) == self.places.kind:
                found.append(word)
            elif place != edges and self._is_array(*words[place:place + 3]):
                found.extend(one for one in self.memory.words(word, words[place + 1] - word)
                             if _is_made(one) and self.memory.at(one) == self.places.kind)
        return found

    def _is_array(self, begin, end=0, room=0):
        """Whether these are of a vector: what was allocated at its begin has the size of its room."""
        if not begin < end <= room <= begin + _MOST_IN_ARRAY or (end - begin) % _WORD:
            return False
        return 0 <= (self.memory.at(begin - _WORD) & -_WORD) - _WORD - (room - begin) < 2 * _ALIGNED


def _is_made(word):
    """Whether it may be where something was allocated."""
    return _LEAST_ADDRESS < word < _END_OF_ADDRESSES and not word % _ALIGNED
