#!/usr/bin/env python3
"""Questions to CUDA's runtime and driver: what calls answer, and what they leave. JSON on stdout: {question: [answers]}.

    CUDART=/usr/local/cuda/lib64/libcudart.so.13 tests/gpu/cuda_questions.py > answers.json      # a GPU's
    CUDART= ashlar dry-run --device H200 -- python3 tests/gpu/cuda_questions.py                  # the hollow device's
    tests/gpu/cuda_questions.py pools limits                                                     # these alone

Each question is a process of its own. The test hollow_questions holds the hollow device to what an H200 answered.
"""

import ctypes
import json
import os
import sys
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p

MiB = 1 << 20
QUESTIONS = {}


def question(function):
    QUESTIONS[function.__name__] = function
    return function


class Lib:
    def __init__(self, lib):
        self.lib = lib

    def __getattr__(self, name):
        f = getattr(self.lib, name)
        f.restype = c_int
        return f


def load():
    global runtime, driver
    driver = Lib(ctypes.CDLL("libcuda.so.1"))
    runtime = Lib(ctypes.CDLL(os.environ["CUDART"] or None))


def ptr():
    return c_void_p()


def free_bytes():
    a, b = c_size_t(), c_size_t()
    runtime.cudaMemGetInfo(byref(a), byref(b))
    return a.value


def init_after(call):
    d = c_int()
    before = driver.cuDeviceGet(byref(d), 0)
    r = call()
    return [before, r, driver.cuDeviceGet(byref(d), 0)]


def out_int():
    return byref(c_int())


# What the driver answers before and after the first call of a program, by the call.
FIRST_CALLS = {
    "getlasterror": lambda: runtime.cudaGetLastError(),
    "peek": lambda: runtime.cudaPeekAtLastError(),
    "runtimeversion": lambda: runtime.cudaRuntimeGetVersion(out_int()),
    "driverversion": lambda: runtime.cudaDriverGetVersion(out_int()),
    "count": lambda: runtime.cudaGetDeviceCount(out_int()),
    "getdevice": lambda: runtime.cudaGetDevice(out_int()),
    "setdevice": lambda: runtime.cudaSetDevice(0),
    "free0": lambda: runtime.cudaFree(None),
    "hostalloc": lambda: runtime.cudaMallocHost(byref(ptr()), c_size_t(8)),
}
for first, first_call in FIRST_CALLS.items():
    QUESTIONS["init_" + first] = lambda call=first_call: init_after(call)


@question
def captured_event():
    s, e, t, g, begin = ptr(), ptr(), ptr(), ptr(), ptr()
    out = []
    runtime.cudaStreamCreateWithFlags(byref(s), 1)
    runtime.cudaStreamCreateWithFlags(byref(t), 1)
    for x in (e, begin):
        runtime.cudaEventCreate(byref(x))
    runtime.cudaEventRecord(begin, s)
    runtime.cudaStreamSynchronize(s)
    out += [runtime.cudaStreamBeginCapture(s, 2), runtime.cudaEventRecord(e, s)]
    out += [
        "during",
        runtime.cudaEventQuery(e),
        runtime.cudaGetLastError(),
        runtime.cudaEventSynchronize(e),
        runtime.cudaGetLastError(),
    ]
    out += ["end", runtime.cudaStreamEndCapture(s, byref(g)), runtime.cudaGetLastError()]
    f = c_float()
    out += [
        "after",
        runtime.cudaEventQuery(e),
        runtime.cudaEventSynchronize(e),
        runtime.cudaEventElapsedTime(byref(f), begin, e),
        runtime.cudaStreamWaitEvent(t, e, 0),
    ]
    out += ["driver", driver.cuEventQuery(e), driver.cuEventSynchronize(e)]
    out += ["again", runtime.cudaEventRecord(e, s), runtime.cudaEventSynchronize(e), runtime.cudaEventQuery(e)]
    return out


@question
def captured_event_unbroken():
    s, e, t, g, x = ptr(), ptr(), ptr(), ptr(), ptr()
    out = []
    runtime.cudaStreamCreateWithFlags(byref(s), 1)
    runtime.cudaStreamCreateWithFlags(byref(t), 1)
    runtime.cudaEventCreate(byref(e))
    runtime.cudaEventCreate(byref(x))
    m = ptr()
    runtime.cudaMalloc(byref(m), c_size_t(8))
    out += [
        runtime.cudaStreamBeginCapture(s, 2),
        runtime.cudaMemsetAsync(m, 0, c_size_t(8), s),
        runtime.cudaEventRecord(e, s),
        runtime.cudaEventRecordWithFlags(x, s, 1),
        runtime.cudaStreamEndCapture(s, byref(g)),
    ]
    f = c_float()
    out += [
        "after",
        runtime.cudaEventQuery(e),
        runtime.cudaEventSynchronize(e),
        runtime.cudaEventElapsedTime(byref(f), e, e),
        runtime.cudaStreamWaitEvent(t, e, 0),
        "external",
        runtime.cudaEventQuery(x),
        runtime.cudaEventSynchronize(x),
    ]
    ge = ptr()
    out += [
        "launch",
        runtime.cudaGraphInstantiate(byref(ge), g, c_uint64(0)),
        runtime.cudaGraphLaunch(ge, s),
        runtime.cudaStreamSynchronize(s),
        runtime.cudaEventQuery(x),
        runtime.cudaEventQuery(e),
        runtime.cudaEventElapsedTime(byref(f), x, x),
    ]
    out += [
        "outside",
        runtime.cudaEventRecordWithFlags(x, s, 1),
        runtime.cudaStreamWaitEvent(s, x, 1),
        runtime.cudaEventRecordWithFlags(x, s, 2),
        driver.cuEventRecordWithFlags(x, s, 1),
        driver.cuStreamWaitEvent(s, x, 1),
    ]
    return out


@question
def entry_points():
    driver.cuInit(0)
    out = []
    for name, version in (
        (b"cuNoSuchThing", 13000),
        (b"malloc", 13000),
        (b"cudaMalloc", 13000),
        (b"cuMemCreate", 9000),
        (b"cuMemAlloc", 12000),
        (b"cuMemAlloc_v2", 12000),
    ):
        f, st = c_void_p(7), c_int(9)
        out.append(
            [
                name.decode(),
                driver.cuGetProcAddress_v2(name, byref(f), version, c_uint64(0), byref(st)),
                st.value,
                bool(f.value and f.value != 7),
            ]
        )
        f = c_void_p(7)
        out.append([driver.cuGetProcAddress_v2(name, byref(f), version, c_uint64(0), None), f.value is None])
        f = c_void_p(7)
        out.append([driver.cuGetProcAddress(name, byref(f), version, c_uint64(0)), f.value is None])
        f, st = c_void_p(7), c_int(9)
        out.append(
            [
                runtime.cudaGetDriverEntryPointByVersion(name, byref(f), version, c_uint64(0), byref(st)),
                st.value,
                f.value is None,
            ]
        )
    return out


class Loc(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class Prop(ctypes.Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("loc", Loc), ("win", c_void_p), ("flags", ctypes.c_ubyte * 32)]


class Access(ctypes.Structure):
    _fields_ = [("loc", Loc), ("flags", c_int)]


@question
def virtual_memory():
    runtime.cudaFree(None)
    out = []
    p = Prop(1, 0, Loc(1, 0), None)
    h, a = c_uint64(), c_uint64()
    n = 2 * MiB
    out += [
        driver.cuMemCreate(byref(h), c_size_t(2 * n), byref(p), c_uint64(0)),
        driver.cuMemAddressReserve(byref(a), c_size_t(8 * n), c_size_t(0), c_uint64(0), c_uint64(0)),
    ]
    A = a.value
    acc = Access(Loc(1, 0), 3)
    un = lambda at, size: driver.cuMemUnmap(c_uint64(at), c_size_t(size))
    out += [
        "unmap unmapped",
        un(A, n),
        un(A, 8 * n),
        "map",
        driver.cuMemMap(a, c_size_t(2 * n), c_size_t(0), h, c_uint64(0)),
        driver.cuMemSetAccess(a, c_size_t(2 * n), byref(acc), c_size_t(1)),
    ]
    out += [
        "map over",
        driver.cuMemMap(a, c_size_t(2 * n), c_size_t(0), h, c_uint64(0)),
        "access of unmapped",
        driver.cuMemSetAccess(c_uint64(A + 4 * n), c_size_t(n), byref(acc), c_size_t(1)),
        "part",
        un(A, n),
        un(A + n, n),
        "with a hole",
        un(A, 4 * n),
        "again",
        un(A, 2 * n),
    ]
    out += ["nobody's", un(0x700000000000, n), "odd", un(A + 1, n), un(A, n + 1), un(A, 0)]
    out += [
        "release",
        driver.cuMemRelease(h),
        driver.cuMemRelease(h),
        "free",
        driver.cuMemAddressFree(a, c_size_t(n)),
        driver.cuMemAddressFree(a, c_size_t(8 * n)),
        driver.cuMemAddressFree(a, c_size_t(8 * n)),
    ]
    out += [
        "huge",
        driver.cuMemCreate(byref(h), c_size_t(1 << 50), byref(p), c_uint64(0)),
        driver.cuMemCreate(byref(h), c_size_t(0), byref(p), c_uint64(0)),
        driver.cuMemCreate(byref(h), c_size_t(3), byref(p), c_uint64(0)),
    ]
    for bits in (46, 47, 48, 56, 63):
        out.append(driver.cuMemAddressReserve(byref(a), c_size_t(1 << bits), c_size_t(0), c_uint64(0), c_uint64(0)))
    return out


@question
def too_much():
    runtime.cudaFree(None)
    out = []
    p = ptr()
    pitch = c_size_t()
    for n in (1 << 38, 1 << 45, 1 << 50, 1 << 63, (1 << 64) - 1):
        out.append(
            [
                n,
                runtime.cudaMalloc(byref(p), c_size_t(n)),
                runtime.cudaMallocAsync(byref(p), c_size_t(n), None),
                runtime.cudaMallocManaged(byref(p), c_size_t(n), 1),
                driver.cuMemAlloc_v2(byref(p), c_size_t(n)),
            ]
        )
    for w, h in (
        (1 << 20, 1 << 20),
        (1 << 30, 1 << 20),
        (1 << 31, 2),
        (1 << 40, 1),
        (1 << 40, 1 << 40),
        (1 << 20, 1 << 40),
    ):
        out.append([w, h, runtime.cudaMallocPitch(byref(p), byref(pitch), c_size_t(w), c_size_t(h))])
    return out


@question
def pools():
    runtime.cudaFree(None)
    out = []
    pool, p, q = ptr(), ptr(), ptr()
    runtime.cudaDeviceGetDefaultMemPool(byref(pool), 0)

    def attr(n):
        v = c_uint64()
        runtime.cudaMemPoolGetAttribute(pool, n, byref(v))
        return v.value

    see = lambda: [attr(5), attr(6), attr(7), attr(8)]
    base = free_bytes()
    for n in (1, 100, 512, 513, 1000, 40 * MiB, 33 * MiB + 5):
        runtime.cudaMallocAsync(byref(p), c_size_t(n), None)
        out.append([n, see(), base - free_bytes()])
        runtime.cudaFreeAsync(p, None)
    out.append(["freed", see()])
    runtime.cudaStreamSynchronize(None)
    out.append(["sync", see(), base - free_bytes()])
    t = c_uint64(1 << 40)
    runtime.cudaMemPoolSetAttribute(pool, 4, byref(t))
    runtime.cudaMallocAsync(byref(p), c_size_t(40 * MiB), None)
    runtime.cudaMallocAsync(byref(q), c_size_t(40 * MiB), None)
    runtime.cudaFreeAsync(p, None)
    runtime.cudaStreamSynchronize(None)
    out.append(["one of two", see()])
    runtime.cudaMemPoolTrimTo(pool, c_size_t(0))
    out.append(["trim", see(), base - free_bytes()])
    runtime.cudaFreeAsync(q, None)
    runtime.cudaStreamSynchronize(None)
    runtime.cudaMemPoolTrimTo(pool, c_size_t(0))
    out.append(["all", see(), base - free_bytes()])
    return out


@question
def graph_memory():
    runtime.cudaFree(None)
    s, p, g, e = ptr(), ptr(), ptr(), ptr()
    runtime.cudaStreamCreateWithFlags(byref(s), 1)
    out = []
    base = free_bytes()

    def attr(n):
        v = c_uint64()
        runtime.cudaDeviceGetGraphMemAttribute(0, n, byref(v))
        return v.value

    see = lambda word: out.append([word, base - free_bytes(), [attr(i) for i in range(4)]])
    runtime.cudaStreamBeginCapture(s, 2)
    runtime.cudaMallocAsync(byref(p), c_size_t(40 * MiB), s)
    runtime.cudaFreeAsync(p, s)
    out.append(runtime.cudaStreamEndCapture(s, byref(g)))
    see("captured")
    out.append(runtime.cudaGraphInstantiate(byref(e), g, c_uint64(0)))
    see("instantiated")
    out.append(runtime.cudaGraphUpload(e, s))
    runtime.cudaStreamSynchronize(s)
    see("uploaded")
    out.append(runtime.cudaGraphLaunch(e, s))
    runtime.cudaStreamSynchronize(s)
    see("launched")
    out.append(runtime.cudaGraphExecDestroy(e))
    runtime.cudaDeviceSynchronize()
    see("exec destroyed")
    out.append(runtime.cudaGraphDestroy(g))
    runtime.cudaDeviceSynchronize()
    see("graph destroyed")
    out.append(runtime.cudaDeviceGraphMemTrim(0))
    see("trimmed")
    return out


@question
def wrong_frees():
    runtime.cudaFree(None)
    p, h, q = ptr(), ptr(), ptr()
    out = []
    runtime.cudaMalloc(byref(p), c_size_t(4 * MiB))
    runtime.cudaMallocHost(byref(h), c_size_t(4096))
    runtime.cudaMallocAsync(byref(q), c_size_t(100), None)
    out += [
        "inner",
        runtime.cudaFree(c_void_p(p.value + 512)),
        "host by free",
        runtime.cudaFree(h),
        "device by freehost",
        runtime.cudaFreeHost(p),
        "malloc by freeasync",
        runtime.cudaFreeAsync(p, None),
        "twice",
        runtime.cudaFree(p),
        "inner async",
        runtime.cudaFreeAsync(c_void_p(q.value + 8), None),
        "async",
        runtime.cudaFreeAsync(q, None),
        runtime.cudaFreeAsync(q, None),
        "host",
        runtime.cudaFreeHost(h),
        runtime.cudaFreeHost(h),
        "nobody's",
        runtime.cudaFree(c_void_p(0x1000)),
        runtime.cudaFreeHost(c_void_p(0x1000)),
        "driver",
        driver.cuMemFree_v2(c_uint64(0x1000)),
        driver.cuMemFree_v2(c_uint64(0)),
    ]
    return out


@question
def elapsed():
    runtime.cudaFree(None)
    a, b, n, f = ptr(), ptr(), ptr(), c_float()
    runtime.cudaEventCreate(byref(a))
    runtime.cudaEventCreate(byref(b))
    runtime.cudaEventCreateWithFlags(byref(n), 2)
    e = lambda x, y: runtime.cudaEventElapsedTime(byref(f), x, y)
    out = [
        "unrecorded",
        e(a, b),
        runtime.cudaEventQuery(a),
        runtime.cudaEventSynchronize(a),
        runtime.cudaStreamWaitEvent(None, a, 0),
    ]
    runtime.cudaEventRecord(a, None)
    out += ["one", e(a, b), e(b, a)]
    runtime.cudaEventRecord(b, None)
    runtime.cudaDeviceSynchronize()
    runtime.cudaEventRecord(n, None)
    runtime.cudaDeviceSynchronize()
    return out + ["both", e(a, b), e(b, a), e(a, a), "without timing", e(a, n), e(n, n)]


@question
def without_context():
    out = []
    p, f, t, c, d = ptr(), c_size_t(), c_size_t(), ptr(), c_int()
    out += ["init", driver.cuInit(0)]
    out += [
        driver.cuMemAlloc_v2(byref(p), c_size_t(8)),
        driver.cuMemGetInfo_v2(byref(f), byref(t)),
        driver.cuCtxGetCurrent(byref(c)),
        c.value is None,
        driver.cuCtxGetDevice(byref(d)),
        driver.cuCtxSynchronize(),
        driver.cuStreamCreate(byref(p), 0),
        driver.cuEventCreate(byref(p), 0),
        driver.cuMemHostAlloc(byref(p), c_size_t(8), 0),
    ]
    pr = Prop(1, 0, Loc(1, 0), None)
    h, a = c_uint64(), c_uint64()
    return out + [
        driver.cuMemCreate(byref(h), c_size_t(2 * MiB), byref(pr), c_uint64(0)),
        driver.cuMemAddressReserve(byref(a), c_size_t(2 * MiB), c_size_t(0), c_uint64(0), c_uint64(0)),
        driver.cuMemMap(a, c_size_t(2 * MiB), c_size_t(0), h, c_uint64(0)),
    ]


@question
def limits():
    runtime.cudaFree(None)
    out = []
    base = free_bytes()
    v = c_size_t()
    for which, size in ((0, 1024), (0, 65536), (1, 16 * MiB), (2, 256 * MiB), (3, 4), (4, 4096)):
        runtime.cudaDeviceGetLimit(byref(v), which)
        before = v.value
        r = runtime.cudaDeviceSetLimit(which, c_size_t(size))
        runtime.cudaDeviceSynchronize()
        runtime.cudaDeviceGetLimit(byref(v), which)
        out.append([which, before, r, v.value, base - free_bytes()])
    return out


@question
def copies():
    runtime.cudaFree(None)
    p = ptr()
    runtime.cudaMalloc(byref(p), c_size_t(100))
    b = ctypes.create_string_buffer(100)
    out = []
    c = lambda to, at, n, k: runtime.cudaMemcpy(to, at, c_size_t(n), k)
    return [
        "good",
        c(p, b, 100, 1),
        "past the end",
        c(p, b, 4096, 1),
        "no device memory",
        c(c_void_p(0x700000000000), b, 8, 1),
        "null",
        c(None, b, 8, 4),
        c(p, None, 8, 4),
        c(None, None, 0, 4),
        "kind",
        c(p, b, 8, 2),
        c(p, b, 8, 9),
        c(b, b, 8, 1),
        c(b, b, 8, 0),
        c(b, b, 8, 4),
        "memset",
        runtime.cudaMemset(b, 0, c_size_t(8)),
        runtime.cudaMemset(None, 0, c_size_t(0)),
        runtime.cudaMemset(p, 0, c_size_t(1 << 30)),
        runtime.cudaGetLastError(),
    ]


def ask(name):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            load()
            text = json.dumps(QUESTIONS[name]())
        except Exception as error:
            text = json.dumps("error: %r" % error)
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    text = b""
    while True:
        part = os.read(read, 65536)
        if not part:
            break
        text += part
    os.close(read)
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else "signal %d" % (status & 127)


if __name__ == "__main__":
    only = sys.argv[1:] or list(QUESTIONS)
    print(json.dumps({name: ask(name) for name in only}, indent=None))
