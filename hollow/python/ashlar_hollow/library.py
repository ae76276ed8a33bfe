"""The functions of the preloaded library: see include/ashlar/hollow.h.

They are called with the GIL held: each takes well under a microsecond.
"""

import ctypes
import sys

LINE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_size_t)


class Library(object):
    def __init__(self, functions):
        address_and_bytes = [ctypes.c_uint64, ctypes.c_uint64]
        self.know = functions.ashlar_hollow_know
        self.forget = functions.ashlar_hollow_forget
        self.is_known = functions.ashlar_hollow_is_known
        self.read_as = functions.ashlar_hollow_read_as
        self.read_as_is = functions.ashlar_hollow_read_as_is
        self.set_line = functions.ashlar_hollow_set_line
        for function in (self.know, self.forget, self.is_known):
            function.argtypes = address_and_bytes
            function.restype = None
        self.read_as.argtypes, self.read_as.restype = [ctypes.c_uint64], None
        self.read_as_is.argtypes, self.read_as_is.restype = [], None
        self.is_known.restype = ctypes.c_bool
        self.set_line.argtypes = [LINE]
        self.set_line.restype = None


def find():
    """The library, or None with a line on stderr: the program then runs without small values."""
    try:
        return Library(ctypes.PyDLL(None))
    except AttributeError:
        sys.stderr.write("ashlar: libashlar_hollow.so is not loaded in this process: no small values\n")
        return None
