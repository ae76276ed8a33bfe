"""Asks cuDNN, without a device, what workspaces the convolutions of docs/measurements/h200_libraries.json need, and compares with what
PyTorch asked for on an H200.

    LD_LIBRARY_PATH=FOLDER OF libcublasLt.so.13 python3 bench/cudnn_workspaces.py FOLDER OF libcudnn.so.9

cuDNN makes plans for a device that JSON describes, from 9.8 on (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR): heuristics and plans take it in the
place of a handle (CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP). As in PyTorch the first configuration counts that
becomes a plan, but for those that convert float's inputs down. Where libcublasLt is not found, cuDNN ends the process.
"""

import collections
import ctypes
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MEASURED = os.path.join(HERE, "..", "docs", "measurements", "h200_libraries.json")
MIB = 1 << 20

H200 = {
    "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
    "multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
    "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "totalGlobalMem": 150109880320,
    "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560, "cudaDeviceId": 0, "deviceVer": 900,
    "driverVer": 13000, "smCountOrigin": 0, "deviceName": "NVIDIA H200",
}  # fmt: skip

# Numbers of cudnn_graph.h: kinds, types of attributes, attributes.
CONVOLUTION, ENGINE, CONFIG, HEURISTIC, PLAN, GRAPH, TENSOR, DEVICE = 1, 2, 3, 4, 5, 15, 17, 38
DATA_TYPE, INT64, FLOAT, CONVOLUTION_MODE, HEURISTIC_MODE, NOTE, DESCRIPTOR, CHAR = 1, 3, 4, 7, 8, 11, 15, 24
C_TYPES = {DATA_TYPE: ctypes.c_int, INT64: ctypes.c_int64, FLOAT: ctypes.c_float, CONVOLUTION_MODE: ctypes.c_int,
           HEURISTIC_MODE: ctypes.c_int, DESCRIPTOR: ctypes.c_void_p}  # fmt: skip
# what is computed -> (kind of operation, its first attribute: alpha, beta, convolution, w, x, y)
OPERATIONS = {"forward": (10, 700), "data": (12, 706), "weight": (11, 712)}
DOWN_CONVERTS = 1
DATA_TYPES = {"float32": 0, "float16": 2, "bfloat16": 9}


class Refused(Exception):
    pass


class Cudnn:
    def __init__(self, folder):
        self.library = ctypes.CDLL(os.path.join(folder, "libcudnn.so.9"), ctypes.RTLD_GLOBAL)
        text = json.dumps(H200).encode()
        self.device = self.make(DEVICE)
        self.check(self.library.cudnnBackendSetAttribute(self.device, 2702, CHAR, ctypes.c_int64(len(text)), text))
        self.finalize(self.device)

    def check(self, status):
        if status:
            text = ctypes.create_string_buffer(500)
            self.library.cudnnGetLastErrorString(text, ctypes.c_size_t(500))
            raise Refused("%d %s" % (status, text.value.decode()))

    def make(self, kind, attributes=()):
        out = ctypes.c_void_p()
        self.check(self.library.cudnnBackendCreateDescriptor(kind, ctypes.byref(out)))
        for name, kind_of, values in attributes:
            given = [value.value if isinstance(value, ctypes.c_void_p) else value for value in values]
            array = (C_TYPES[kind_of] * len(given))(*given)
            self.check(self.library.cudnnBackendSetAttribute(out, name, kind_of, ctypes.c_int64(len(given)), array))
        return out

    def finalize(self, descriptor):
        self.check(self.library.cudnnBackendFinalize(descriptor))
        return descriptor

    def done(self, kind, *attributes):
        return self.finalize(self.make(kind, attributes))

    def get(self, descriptor, name, kind_of, array, wanted):
        count = ctypes.c_int64()
        self.check(self.library.cudnnBackendGetAttribute(descriptor, name, kind_of, ctypes.c_int64(wanted),
                                                         ctypes.byref(count), array))  # fmt: skip
        return count.value

    def graph(self, what, shapes, stride, padding, data_type, is_last):
        def tensor(name, dims):
            n, c, h, w = dims
            strides = [c * h * w, 1, c * w, c] if is_last else [c * h * w, h * w, w, 1]
            return self.done(TENSOR, (906, INT64, [ord(name)]), (901, DATA_TYPE, [data_type]), (902, INT64, dims),
                             (903, INT64, strides), (900, INT64, [16]))  # fmt: skip

        both = lambda value: [value, value]
        convolution = self.done(CONVOLUTION, (100, DATA_TYPE, [0]), (101, CONVOLUTION_MODE, [1]), (102, INT64, both(1)),
                                (103, INT64, both(stride)), (104, INT64, both(padding)), (105, INT64, both(padding)),
                                (106, INT64, [2]))  # fmt: skip
        kind, first = OPERATIONS[what]
        x, w, y = (tensor(name, dims) for name, dims in zip("xwy", shapes))
        operation = self.done(kind, (first + 2, DESCRIPTOR, [convolution]), (first + 3, DESCRIPTOR, [w]),
                              (first + 4, DESCRIPTOR, [x]), (first + 5, DESCRIPTOR, [y]), (first, FLOAT, [1.0]),
                              (first + 1, FLOAT, [0.0]))  # fmt: skip
        return self.done(GRAPH, (801, DESCRIPTOR, [operation]))

    def converts_down(self, config):
        engine, notes = self.make(ENGINE), (ctypes.c_int * 32)()
        self.get(config, 300, DESCRIPTOR, (ctypes.c_void_p * 1)(engine.value), 1)
        return DOWN_CONVERTS in notes[: self.get(engine, 1303, NOTE, notes, 32)]

    def workspace(self, graph, is_float):
        heuristic = self.done(HEURISTIC, (201, DESCRIPTOR, [graph]), (200, HEURISTIC_MODE, [0]), (204, DESCRIPTOR, [self.device]))
        count = self.get(heuristic, 202, DESCRIPTOR, None, 0)
        configs = [self.make(CONFIG) for _ in range(count)]
        array = (ctypes.c_void_p * count)(*[config.value for config in configs])
        for config in configs[: self.get(heuristic, 202, DESCRIPTOR, array, count)]:
            if is_float and self.converts_down(config):
                continue
            try:
                plan = self.done(PLAN, (401, DESCRIPTOR, [config]), (407, DESCRIPTOR, [self.device]))
            except Refused:
                continue
            bytes_ = ctypes.c_int64()
            self.get(plan, 402, INT64, ctypes.byref(bytes_), 1)
            return bytes_.value
        raise Refused("no configuration becomes a plan")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: cudnn_workspaces.py FOLDER OF libcudnn.so.9")
    cudnn = Cudnn(sys.argv[1])
    with open(MEASURED, encoding="utf-8") as file:
        measured = json.load(file)
    found = collections.defaultdict(list)  # (layout, what) -> [(of the H200, here)]
    for key, rows in measured.items():
        if not key.startswith("conv ") or not key.endswith(" default"):
            continue
        _, dtype, layout, _ = key.split()
        for row in rows:
            n, c, h, w, k, r, stride, groups = row["conv"]
            padding = r // 2
            size = lambda of: (of + 2 * padding - r) // stride + 1
            shapes = [n, c, h, w], [k, c // groups, r, r], [n, k, size(h), size(w)]
            for what in OPERATIONS:
                graph = cudnn.graph(what, shapes, stride, padding, DATA_TYPES[dtype], layout == "channels_last")
                here = cudnn.workspace(graph, dtype == "float32")
                kernels = "1x1" if r == 1 else "others"
                found[layout, what, kernels].append((sum(row[what][1:]), here))
    print("cuDNN %d; figures are of an H200 with cuDNN %d" % (cudnn.library.cudnnGetVersion(), measured["stamp"]["cudnn"]))
    print("| layout | what | kernels | n | the same | within 5 % or 1 MiB | not less by 1 MiB | largest, H200 and here | sum, H200 and here |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|")
    for (layout, what, kernels), pairs in sorted(found.items()):
        near = sum(abs(here - there) <= max(there / 20, MIB) for there, here in pairs)
        enough = sum(here >= there - MIB for there, here in pairs)
        largest = [max(pair[i] for pair in pairs) / MIB for i in (0, 1)]
        sums = [statistics.fsum(pair[i] for pair in pairs) / MIB for i in (0, 1)]
        print("| %s | %s | %s | %d | %d | %d | %d | %.0f, %.0f MiB | %.0f, %.0f MiB |"
              % (layout, what, kernels, len(pairs), sum(a == b for a, b in pairs), near, enough, *largest, *sums))  # fmt: skip


if __name__ == "__main__":
    main()
