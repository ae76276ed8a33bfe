"""What `ashlar attach` runs in a program that was not started under us: a snapshot of now, with who holds the memory.

It is run from a folder of its own, with `holders` and `observer` beside it, between two instructions of the main thread.
Into the folder come look.pickle, then answer.json: {} or {"error": "..."}. Nothing of it stays in the program: no module,
no file, no output. An interrupt that comes meanwhile is the program's, and reaches it afterwards.

Python from 3.8 on. Thread rule: the main thread, with the GIL.
"""

import importlib.util
import json
import os
import pickle
import sys

_NAMES = ("ashlar_attached_observer", "ashlar_attached_holders")


def _main(folder):
    try:
        error = _look(folder)
    except Exception as caught:
        error = "%s: %s" % (type(caught).__name__, (str(caught).splitlines() or [""])[0])
    _write(folder, "answer.json", json.dumps({} if error is None else {"error": error}).encode())


def _look(folder):
    """Why there is no snapshot; None where there is one."""
    with open(os.path.join(folder, "request.json")) as data:
        request = json.load(data)
    torch = sys.modules.get("torch")
    cuda = None if torch is None else vars(torch).get("cuda")  # None also while torch is imported
    if not getattr(cuda, "is_initialized", bool)():
        return "it has not used PyTorch's CUDA yet: nothing is held"
    observer = _load(_NAMES[0], os.path.join(folder, "observer.py"))
    holders = _load(_NAMES[1], os.path.join(folder, "holders", "__init__.py"))
    why = holders.refused(torch)
    if why is not None:
        return why + ": no names are taken"
    redaction = holders.Redaction() if request["redacts"] else None
    collector = observer.Collector()
    collector.load()
    held = collector.hold()
    try:
        snapshot = observer.named_now(torch, holders, request["seconds"], redaction)
        if redaction is not None:
            redaction.stacks_of(snapshot)
    finally:
        collector.release(held)
    _write(folder, "look.pickle", pickle.dumps(snapshot, protocol=4))
    return None


def _load(name, file):
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its parts name it
    spec.loader.exec_module(module)
    return module


def _forget():
    for name in list(sys.modules):
        if name.startswith(_NAMES):
            del sys.modules[name]


def _write(folder, name, content):
    part = os.path.join(folder, name + ".part")
    with open(part, "wb") as out:
        out.write(content)
    os.replace(part, os.path.join(folder, name))


def _hand_on(error):
    """To the program, which would have had it: an interrupt, or what a handler of a signal has raised."""
    import ctypes
    import threading

    if isinstance(error, KeyboardInterrupt):
        import _thread

        _thread.interrupt_main()
        return
    main = ctypes.c_ulong(threading.main_thread().ident)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(type(error)))


if __name__ == "ashlar_attached":
    try:
        writes_no_code, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            _main(os.path.dirname(__file__))
        finally:
            sys.dont_write_bytecode = writes_no_code
            _forget()
    except BaseException as error:
        if not isinstance(error, OSError):  # the folder is gone: nobody waits for an answer
            _hand_on(error)
