"""What each library of the process holds of a device, beside PyTorch's allocator: settings of a snapshot, which every format keeps.

    ashlar_device_0_library_0   "1048576 2 libnccl.so.2": bytes, allocations, the file of the code that asked
"""

import ctypes
import os

from .lying import c_function

_TEXT_BYTES = 65536
_KEY = "ashlar_device_%d_library_%d"
_told = [  # by the hollow device, or by what records a program's own calls
    function
    for function in (
        c_function(name, ctypes.c_size_t, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
        for name in ("ashlar_hollow_libraries", "ashlar_record_libraries")
    )
    if function is not None
]


def add_to(snapshot, without_folders=False):
    """Nothing where no library of ours is in the process, or the snapshot has no settings (before PyTorch 2.3)."""
    settings = snapshot.get("allocator_settings")
    if not isinstance(settings, dict):
        return
    for device in range(len(snapshot.get("device_traces", ()))):
        for index, (held, blocks, file) in enumerate(_held(device)):
            name = os.path.basename(file) if without_folders else file
            settings[_KEY % (device, index)] = " ".join((held, blocks, name))


def _held(device):
    """Bytes, allocations and the file of each library, as texts."""
    for function in _told:
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        if function(device, text, _TEXT_BYTES):
            lines = text.value.decode("utf-8", "backslashreplace").split("\n")
            return [line.split(" ", 2) for line in lines if line]
    return []
