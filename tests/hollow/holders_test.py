"""Who holds it, by name, without PyTorch: tensors that a small stand-in makes, in this process's own heap.

    python3 holders_test.py
"""
# Long because: one stand-in for PyTorch serves all cases of one walk.

import collections
import contextlib
import ctypes
import gc
import io
import os
import sys
import types
import unittest
import weakref
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "hollow", "python"))

from ashlar_hollow import holders  # noqa: E402
from ashlar_hollow.holders import libraries, reading, record, roots  # noqa: E402

MIB = 1 << 20


class TensorBase(object):
    """As PyTorch's C class: what is asked of it is in descriptors of the class."""

    def __init__(self, address, node=None, nbytes=MIB):
        self._address, self._node, self._grad = address, node, None
        self._nbytes = nbytes

    is_leaf = property(lambda self: self._node is None)
    retains_grad = property(lambda self: False)
    grad = property(lambda self: self._grad)
    grad_fn = property(lambda self: self._node)
    layout = property(lambda self: "strided")
    requires_grad = property(lambda self: True)
    dtype = property(lambda self: Torch.float32)
    nbytes = property(lambda self: self._nbytes)
    _base = property(lambda self: vars(self).get("_viewed", lambda: None)())


class StorageBase(object):
    pass


class FunctionBase(object):
    """Of a graph: what it saved, and the nodes before it."""

    def __init__(self, saved=(), before=()):
        self._kept = property(lambda _: (saved, before))  # as C++ keeps it: not to be seen from Python

    _raw_saved_tensors = property(lambda self: tuple(Saved(one) for one in vars(self)["_kept"].fget(0)[0]))
    next_functions = property(lambda self: tuple((one, 0) for one in vars(self)["_kept"].fget(0)[1]))


class AccumulateGrad(object):
    """The last node of a way, which has a leaf that Python may not have any more."""

    def __init__(self, leaf):
        self._kept = property(lambda _: leaf)

    variable = property(lambda self: vars(self)["_kept"].fget(0))
    next_functions = property(lambda self: ())


class Saved(object):
    data = None

    def __init__(self, data):
        self.data = data


class Module(object):
    """Of the place where PyTorch has its own."""

    def __init__(self, parameters=(), modules=(), buffers=()):
        self._parameters, self._modules = dict(parameters), dict(modules)
        self._buffers = dict(buffers)
        self._forward_hooks = collections.OrderedDict()


class Optimizer(object):
    def __init__(self, groups, state):
        self.param_groups, self.state = groups, collections.defaultdict(dict, state)


class Torch(object):
    __version__ = "2.9.9"
    strided = "strided"
    float32 = "float32"
    depth_of_autocast, is_cache_on = 0, True  # of the thread

    @classmethod
    def autocast_increment_nesting(cls):
        cls.depth_of_autocast += 1
        return cls.depth_of_autocast

    @classmethod
    def autocast_decrement_nesting(cls):
        cls.depth_of_autocast -= 1
        return cls.depth_of_autocast

    @classmethod
    def is_autocast_cache_enabled(cls):
        return cls.is_cache_on

    class _C(object):
        DisableTorchFunction = _DisableTorchDispatch = contextlib.nullcontext
        _autograd = types.SimpleNamespace(SavedTensor=Saved)

        @staticmethod
        def _data_address(tensor):
            return vars(tensor)["_address"]


Torch._C.TensorBase, Torch._C.StorageBase, Torch._C._FunctionBase = TensorBase, StorageBase, FunctionBase
for place, kind in (("torch.nn.modules.module", Module), ("torch.optim.optimizer", Optimizer)):
    sys.modules[place] = types.ModuleType(place)
    setattr(sys.modules[place], kind.__name__, kind)


class Device(object):
    """Hands out blocks of one segment; tensors die, their blocks do not: each device has its own addresses."""

    count = 0

    def __init__(self):
        Device.count += 1
        self.blocks, self.address = [], Device.count << 40
        self.next = self.address

    def tensor(self, size=MIB, node=None, frames=()):
        self.blocks.append({"address": self.next, "size": size, "requested_size": size - 24, "state": "active_allocated",
                            "frames": list(frames)})
        self.next += size
        return TensorBase(self.blocks[-1]["address"], node, size - 24)

    def snapshot(self):
        return {"segments": [{"address": self.address, "segment_pool_id": (0, 0), "blocks": self.blocks}]}


def names_of(device, limits=None, is_at_end=False):
    names = holders.Names(limits or holders.Limits(60))
    with names.taking(Torch, "call", is_at_end) as add_names:
        snapshot = device.snapshot()
        add_names(snapshot)
    return snapshot[holders.KEY]


def owners(taken):
    """[(kind, name)] of each block, in the order in which they were made."""
    return [(taken["holders"][owner]["kind"], taken["holders"][owner]["name"]) for _, owner, _ in taken["blocks"]]


def said(taken, key):
    """What the owner of each block has under the key."""
    return [taken["holders"][owner].get(key) for _, owner, _ in taken["blocks"]]


class Named(unittest.TestCase):
    def check(self, device, *expected, **given):
        taken = names_of(device, **given)
        self.assertEqual(owners(taken), list(expected))
        self.assertEqual(sum(one["bytes"] for one in taken["holders"]), sum(b["requested_size"] for b in device.blocks))
        self.assertEqual(taken["live_bytes"], sum(one["bytes"] for one in taken["holders"]))
        return taken

    def test_a_local_a_list_and_a_dictionary(self):
        device = Device()
        kept, history = device.tensor(), {"gp": [device.tensor()], "no name!": [device.tensor()]}
        taken = self.check(device, ("local", "kept"), ("element", "history.gp[]"), ("element", "history[][]"))
        self.assertEqual(taken["holders"][0]["function"], "test_a_local_a_list_and_a_dictionary")
        self.assertEqual(os.path.basename(taken["holders"][0]["file"]), "holders_test.py")
        del kept, history

    def test_keys_of_a_collection_are_data(self):
        device = Device()
        few = {"case_%d" % i: device.tensor() for i in range(8)}
        many = {"case_%d" % i: device.tensor() for i in range(9)}
        lists = {"user_%d" % i: [device.tensor()] for i in range(9)}
        self.check(device, *[("attribute", "few.case_%d" % i) for i in range(8)], *9 * [("element", "many[]")],
                   *9 * [("element", "lists[][]")])
        del few, many, lists

    def test_a_global(self):
        device = Device()
        globals()["data_on_the_device"] = device.tensor()
        self.check(device, ("global", "data_on_the_device"))
        main = vars(sys.modules["__main__"])
        file = main.pop("__file__")  # as Python does at a script's end
        try:
            taken = self.check(device, ("global", "data_on_the_device"), is_at_end=True)
        finally:
            main["__file__"] = file
        self.assertEqual(os.path.basename(taken["holders"][0]["file"]), "holders_test.py")
        del globals()["data_on_the_device"]

    def test_locals_are_gone_at_the_end(self):
        device = Device()
        kept = device.tensor()
        self.check(device, ("not_found", "not found"), is_at_end=True)
        del kept

    def test_modules_gradients_and_the_state_of_optimizers(self):
        device = Device()
        weights = [device.tensor() for _ in range(2)]
        weights[0]._grad = device.tensor()
        params, layers = list(weights), [Module({"weight": weights[i]}) for i in range(2)]
        optimizer = Optimizer([{"params": params}], {weights[1]: {"exp_avg": device.tensor()}})
        model = Module((), {"layers": Module((), {"0": layers[0], "1": layers[1]})}, {"mask": device.tensor()})
        del layers
        weights = None
        taken = self.check(device, ("parameter", "model.layers.*.weight"), ("parameter", "model.layers.*.weight"),
                           ("gradient", "model.layers.*.weight.grad"),
                           ("optimizer_state", "optimizer.state[layers.*.weight].exp_avg"), ("buffer", "model.mask"))
        others = [taken["holders"][one]["name"] for one in taken["blocks"][0][2]]
        self.assertIn("params[]", others)
        self.assertEqual(taken["holders"][0]["blocks"], 2)
        del optimizer, model, params

    def test_a_graph_belongs_to_the_variable_that_has_it(self):
        device = Device()
        nodes = None
        for _ in range(3):
            nodes = FunctionBase([device.tensor()], () if nodes is None else (nodes,))
        total = device.tensor(node=nodes)
        last = device.tensor(node=nodes)
        nodes = None
        taken = self.check(device, *[("graph", "total")] * 3, ("local", "total"), ("local", "last"))
        self.assertEqual([one["nodes"] for one in taken["holders"] if one["kind"] == "graph"], [3])
        del total, last

    def test_a_graph_has_the_container_of_the_element_that_keeps_it(self):
        device = Device()
        losses = [device.tensor(node=FunctionBase([device.tensor()], ()))]
        seen = {"a": device.tensor(node=FunctionBase([device.tensor()], ()))}
        alone = device.tensor(node=FunctionBase([device.tensor()], ()))
        taken = names_of(device)
        found = {(one["kind"], one["name"]): one.get("container") for one in taken["holders"]}
        self.assertEqual(found["graph", "losses[]"], "list")
        self.assertEqual(found["graph", "seen.a"], "dict")
        self.assertIsNone(found["graph", "alone"])
        del losses, seen, alone

    def test_a_whole_tensor_comes_before_a_part_of_it(self):
        device = Device()
        bank = types.SimpleNamespace(features=device.tensor(4 * MIB))
        rows = [TensorBase(bank.features._address) for _ in range(12)]
        whole = device.tensor(4 * MIB)
        rows.append(TensorBase(whole._address))
        cut, whole = rows.pop(), None
        taken = self.check(device, ("attribute", "bank.features"), ("local", "cut"))
        self.assertEqual(said(taken, "traits"), [None, ["part"]])
        self.assertIn("rows[]", [taken["holders"][one]["name"] for one in taken["blocks"][0][2]])
        del bank, rows, cut

    def test_a_name_is_of_parts_where_all_of_them_are(self):
        device, kept = Device(), []
        for part in (2, 1, 2):
            kept.append(TensorBase(device.tensor(4 * MIB)._address, nbytes=4 * MIB // part - 24))
        taken = self.check(device, *[("element", "kept[]")] * 3)
        self.assertEqual(said(taken, "traits"), [None] * 3)
        del kept[1]
        device.blocks[1]["state"] = "inactive"
        taken = names_of(device)
        self.assertEqual(said(taken, "traits"), [["part"]] * 2)
        del kept

    def test_a_graph_keeps_a_leaf_and_its_gradient(self):
        device = Device()
        leaf = device.tensor()
        leaf._grad = device.tensor()
        losses = [device.tensor(node=FunctionBase((), (AccumulateGrad(leaf),)))]
        leaf = None
        self.check(device, ("graph", "losses[]"), ("graph", "losses[]"), ("element", "losses[]"))
        del losses

    def test_a_state_that_goes_on_keeps_the_graph_it_shares(self):
        device = Device()
        node = FunctionBase([device.tensor()])
        logits = device.tensor(node=FunctionBase((), (node,)))
        state = device.tensor(node=node)
        node = None

        def _call_impl(given):  # as PyTorch's module.py has it
            self.check(device, ("graph", "state"), ("local", "logits"), ("local", "state"))

        code = _call_impl.__code__.replace(co_filename=os.path.join("torch", "nn", "modules", "module.py"))
        types.FunctionType(code, globals(), "_call_impl", None, _call_impl.__closure__)(state)
        del logits, state

    def test_a_state_of_a_module_keeps_the_graph_it_shares(self):
        device = Device()
        node = FunctionBase([device.tensor()])
        logits = device.tensor(node=FunctionBase((), (node,)))
        model = Module()
        model.hidden = (device.tensor(node=node),)
        node = None
        self.check(device, ("graph", "model.hidden[]"), ("local", "logits"), ("element", "model.hidden[]"))
        del logits, model

    def test_what_a_call_reaches_has_the_program_s_name(self):
        device = Device()
        inner = Module({"weight": device.tensor()})
        inner.cache = [device.tensor()]
        model = Module((), {"inner": inner})
        inner = None

        def _call_impl(module, given):  # as PyTorch's module.py has it
            return self.check(device, ("parameter", "model.inner.weight"), ("element", "model.inner.cache[]"),
                              ("local", "given"))

        code = _call_impl.__code__.replace(co_filename=os.path.join("torch", "nn", "modules", "module.py"))
        call = types.FunctionType(code, globals(), "_call_impl", None, _call_impl.__closure__)
        taken = call(model._modules["inner"], device.tensor())
        self.assertEqual(said(taken, "traits"), [None, None, ["in_call"]])
        del model

    def test_what_a_deep_copy_has_made_so_far_is_of_the_call(self):
        device = Device()

        def deepcopy(memo):
            return self.check(device, ("element", "memo[]"))

        code = deepcopy.__code__.replace(co_filename=os.path.join(os.path.dirname(os.__file__), "copy.py"))
        taken = types.FunctionType(code, globals(), "deepcopy", None, deepcopy.__closure__)({7: device.tensor()})
        self.assertEqual(said(taken, "traits"), [["in_call"]])

    def test_what_a_node_of_the_program_s_own_stores_is_its_graph_s(self):
        device = Device()

        class Mine(FunctionBase):
            pass

        node = Mine()
        node.stored = device.tensor()
        out = device.tensor(node=node)
        node = None
        self.check(device, ("graph", "out.stored"), ("local", "out"))
        del out

    def test_closures_hooks_generators_and_partials(self):
        device = Device()

        def make():
            acts = [device.tensor()]
            return lambda value: acts.append(value)

        def generate():
            held = device.tensor()
            yield held

        model = Module()
        model._forward_hooks[1] = make()
        running = generate()
        next(running)
        self.check(device, ("hook", "acts[]"), ("generator", "held"))
        del model, running

    def test_defaults_of_arguments_have_their_names(self):
        device = Device()

        def score(value, scale=1, window=[device.tensor()], *, seen={"first": device.tensor()}):
            window.append(value)

        score(device.tensor())
        taken = self.check(device, ("element", "window[]"), ("attribute", "seen.first"), ("element", "window[]"))
        self.assertEqual(taken["holders"][0]["function"], "score")
        del score

    def test_a_traceback_holds_the_locals_of_its_frames(self):
        device = Device()

        def step():
            batch = device.tensor()
            raise ValueError(str(batch._address))

        try:
            step()
        except ValueError as error:
            kept = error
        taken = self.check(device, ("traceback", "kept"))
        self.assertEqual(taken["holders"][0]["function"], "test_a_traceback_holds_the_locals_of_its_frames")
        self.assertEqual(taken["holders"][0]["variables"], ["batch"])
        del kept

    def test_many_functions_alike_are_named_after_what_keeps_them(self):
        device, later = Device(), []

        def put_off(image):
            later.append(lambda: image)

        for _ in range(2):
            put_off(device.tensor())
        self.check(device, *[("closure", "image")] * 2)
        put_off(device.tensor())
        taken = self.check(device, *[("closure", "later[]")] * 3)
        self.assertEqual(taken["holders"][0]["variables"], ["image"])
        del later

    def test_the_mode_of_modules_and_of_the_graphs_that_run_through_them(self):
        device = Device()
        weight = device.tensor()
        inner = Module({"weight": weight})
        model, inner.training = Module((), {"inner": inner}), True
        model.training = False
        node = FunctionBase([weight, device.tensor()])
        weight = None
        out = device.tensor(node=node)
        node = None
        taken = self.check(device, ("parameter", "inner.weight"), ("graph", "out"), ("local", "out"))
        self.assertEqual(said(taken, "mode")[:2], ["train", "train"])
        inner = None
        taken = self.check(device, ("parameter", "model.inner.weight"), ("graph", "out"), ("local", "out"))
        self.assertEqual(said(taken, "mode")[:2], ["eval", "eval"])
        del model, out

    def test_containers_state_dictionaries_and_what_an_optimizer_has(self):
        device = Device()
        model = Module({"weight": device.tensor()})
        optimizer = Optimizer([{"params": [model._parameters["weight"]]}], {})
        optimizer.history = [device.tensor()]
        kept = collections.deque([{"layer.weight": device.tensor()}])
        pair = (device.tensor(),)
        taken = self.check(device, ("parameter", "model.weight"), ("element", "optimizer.history[]"), ("element", "kept[][]"),
                           ("element", "pair[]"))
        self.assertEqual(said(taken, "traits"), [["optimized"], ["of_optimizer"], ["state_dict"], None])
        self.assertEqual(said(taken, "container"), [None, "list", "dict", None])
        del model, optimizer, kept, pair

    def test_what_a_hook_fills(self):
        device, seen, others = Device(), [], []

        class Tap(object):
            def __init__(self):
                self.features = {}

            def see(self, module, inputs, output):
                self.features.setdefault("x", []).append(output)

        def also(module, inputs, output):
            seen.append(output)

        tap, model = Tap(), Module()
        model._forward_hooks.update({1: tap.see, 2: also})
        tap.see(0, 0, device.tensor())
        seen.append(device.tensor())
        others.append(device.tensor())
        taken = self.check(device, ("element", "tap.features.x[]"), ("element", "seen[]"), ("element", "others[]"))
        self.assertEqual(said(taken, "traits"), [["hooked"], ["hooked"], None])
        del tap, model, seen, others

    def test_a_reference_cycle_is_named_by_its_types(self):
        device = Device()

        class Trie(object):
            pass

        one, other = Trie(), Trie()
        one.to, other.to, other.score = other, one, device.tensor()
        gc.disable()
        one = other = None
        try:
            self.check(device, ("cycle", "reference cycle of Trie"))
        finally:
            gc.enable()
            gc.collect()

    def test_what_hangs_on_a_cycle_is_of_the_cycle(self):
        device = Device()

        class Context(object):
            pass

        context = Context()
        context.itself, context.kept = context, device.tensor(node=FunctionBase([device.tensor()]))
        gc.disable()
        context = None
        try:
            self.assertEqual({kind for kind, _ in owners(names_of(device))}, {"cycle"})
        finally:
            gc.enable()
            gc.collect()

    def test_what_a_view_on_a_cycle_is_a_view_of_is_of_the_cycle(self):
        device = Device()

        class Context(object):
            pass

        base, context = device.tensor(), Context()
        view = TensorBase(base._address)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(base))  # as C++ does
        known = view._viewed = weakref.ref(base)
        context.chosen, view.context = view, context
        gc.disable()
        base = view = context = None
        try:
            self.check(device, ("cycle", "reference cycle of Context, TensorBase"))
        finally:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(known()))
            gc.enable()
            gc.collect()

    def test_what_c_alone_holds_is_told_by_the_line_that_allocated_it(self):
        device = Device()
        here = {"filename": __file__, "line": 7, "name": "train"}
        held = map(lambda tensor, _: tensor, [device.tensor(frames=[here])], iter(()))
        values = zip([next(iter([[device.tensor(frames=[here])]]))])
        hidden = property(held.__next__), property(values.__next__)  # is not looked into
        del held, values
        taken = names_of(device)
        self.assertEqual({kind for kind, _ in owners(taken)}, {"unseen"})
        self.assertEqual({one["line"] for one in taken["holders"] if one["blocks"]}, {7})
        del hidden

    def test_what_is_held_weakly_is_not_named(self):
        device = Device()
        table = weakref.WeakValueDictionary()
        table["one"] = kept = device.tensor()
        (kept,) = [None]
        self.check(device, ("not_found", "not found"))
        del table

    def test_slots_class_attributes_and_containers(self):
        device = Device()

        class Slotted(object):
            __slots__ = ("held",)
            kept_by_class = [device.tensor()]

        box = Slotted()
        box.held = collections.deque([device.tensor()])
        pair = collections.namedtuple("Pair", "left right")(device.tensor(), {1: device.tensor()})
        self.check(device, ("element", "Slotted.kept_by_class[]"), ("element", "box.held[]"), ("attribute", "pair.left"),
                   ("element", "pair.right[]"))
        del box, pair

    def test_a_thread_s_locals(self):
        import threading

        device, ready, done = Device(), threading.Event(), threading.Event()

        def work():
            mine = device.tensor()
            ready.set()
            done.wait()
            del mine

        thread = threading.Thread(target=work)
        thread.start()
        ready.wait()
        self.check(device, ("local", "mine"))
        done.set()
        thread.join()

    def test_blocks_that_no_variable_needs_to_explain(self):
        device = Device()
        here = {"filename": __file__, "line": 7, "name": "train"}
        device.tensor(8519680 + 24, frames=[here])
        device.tensor(frames=[here])
        taken = self.check(device, ("workspace", "workspace of cuBLAS"), ("not_found", "not found"))
        self.assertEqual(taken["holders"][1]["line"], 7)

    def test_a_workspace_of_a_common_size_is_told_by_its_calls(self):
        device, given = Device(), []
        here = {"filename": __file__, "line": 7, "name": "train"}
        device.tensor((32 << 20) + 24, frames=[here])
        device.tensor((32 << 20) + 24, frames=[{"filename": "??", "line": 0, "name": "at::cuda::getNewWorkspace()"}, here])
        device.tensor((32 << 20) + 24, frames=[here])
        given.append((device.blocks[2]["address"], 32 << 20))
        workspace, other = ("workspace", "workspace of cuBLAS"), ("not_found", "not found")
        self.check(device, other, workspace, other)
        with mock.patch.object(record, "_is_given", lambda *one: one in given):
            self.check(device, other, workspace, workspace)

    def test_casts_of_weights_that_autocast_keeps(self):
        def half(size):
            return (size - 24) // 2 + 24

        def taken_of(casts, depth=1, is_cache_on=True):
            device = Device()
            sizes = [4 * MIB, 4 * MIB, 8 * MIB, 16 * MIB]
            model = Module({"w%d" % i: device.tensor(size) for i, size in enumerate(sizes)})
            for size in casts:
                device.tensor(size)
            Torch.depth_of_autocast, Torch.is_cache_on = depth, is_cache_on
            try:
                found = owners(names_of(device))[len(sizes):]
                self.assertEqual(Torch.depth_of_autocast, depth)
            finally:
                Torch.depth_of_autocast, Torch.is_cache_on = 0, True
            del model
            return [kind for kind, _ in found]

        kept, lost = "autocast_cache", "not_found"
        casts = [half(4 * MIB), half(16 * MIB), MIB]
        self.assertEqual(taken_of(casts), [kept, kept, lost])
        self.assertEqual(taken_of([half(4 * MIB)] * 3 + [half(8 * MIB)]), [kept, kept, lost, kept])  # each has one
        self.assertEqual(taken_of([half(4 * MIB)]), [lost])  # too few to be more than chance
        self.assertEqual(taken_of(casts, depth=0), [lost] * 3)
        self.assertEqual(taken_of(casts, is_cache_on=False), [lost] * 3)


class Hostile(object):
    """Whatever is asked of it, it says so."""

    asked = []

    def __getattribute__(self, name):
        Hostile.asked.append(name)
        raise RuntimeError(name)


def _refuse(name):
    def refuse(*_):
        Hostile.asked.append(name)
        raise RuntimeError(name)

    return refuse


DUNDERS = ("__getattr__", "__eq__", "__hash__", "__repr__", "__str__", "__bool__", "__len__", "__iter__", "__getitem__",
           "__contains__", "__call__", "__index__", "__sizeof__", "__dir__", "__reduce__", "__get__", "__del__")
for dunder in DUNDERS[:-1]:
    setattr(Hostile, dunder, _refuse(dunder))


class HostileMeta(type):
    __hash__ = _refuse("metaclass hash")
    __eq__ = _refuse("metaclass eq")
    __getattribute__ = _refuse("metaclass getattribute")
    __instancecheck__ = __subclasscheck__ = _refuse("metaclass check")


class Unchanged(unittest.TestCase):
    def test_nothing_of_the_program_is_run(self):
        device = Device()
        hostile, of_meta = Hostile(), HostileMeta("Of", (dict,), {"__iter__": _refuse("iter"), "items": _refuse("items")})()
        object.__setattr__(hostile, "held", device.tensor())
        dict.__setitem__(of_meta, "held", device.tensor())

        class Property(object):
            __dict__ = property(_refuse("__dict__"))
            __class__ = property(_refuse("__class__"))
            slow = property(_refuse("slow"))

        other = Property()
        del Hostile.asked[:]
        taken = names_of(device)
        self.assertEqual(Hostile.asked, [])
        self.assertEqual(owners(taken), [("attribute", "hostile.held"), ("attribute", "of_meta.held")])
        del hostile, of_meta, other

    def test_a_local_that_is_let_go_is_gone(self):
        device = Device()

        def run():
            value = device.tensor()
            gone = weakref.ref(value)
            names_of(device)
            value = None
            return gone() is None

        self.assertTrue(run())

    def test_the_dictionary_of_locals_that_a_program_asked_for_stays(self):
        device = Device()
        value = device.tensor()
        mine = locals()
        names_of(device)
        self.assertIs(mine["value"], value)

    def test_a_function_that_only_has_such_a_name_is_read(self):
        device = Device()
        value, model = device.tensor(), types.SimpleNamespace(eval=len)
        self.assertEqual(owners(names_of(device)), [("local", "value")])
        model.eval(())
        del value

    def test_the_collector_and_threads_go_on_as_before(self):
        gc.disable()
        try:
            names_of(Device())
            self.assertFalse(gc.isenabled())
        finally:
            gc.enable()
        before = sys.getswitchinterval()
        names_of(Device())
        self.assertTrue(gc.isenabled())
        self.assertEqual(sys.getswitchinterval(), before)

    def test_no_object_of_ours_stays(self):
        device = Device()
        names_of(device)
        gc.collect()
        gc.disable()
        try:
            before = len(gc.get_objects())
            names_of(device)
            self.assertLess(len(gc.get_objects()) - before, 20)  # frames and functions that Python keeps for use
        finally:
            gc.enable()


class Bounds(unittest.TestCase):
    def test_a_walk_ends_at_its_bounds_and_says_so(self):
        device = Device()
        kept = [[device.tensor()] for _ in range(30000)]
        self.assertEqual(names_of(device, holders.Limits(1e-9))["bound"], "time")
        taken = names_of(device, holders.Limits(60, objects=5000))
        self.assertEqual(taken["bound"], "objects")
        self.assertEqual(taken["live_bytes"], sum(one["bytes"] for one in taken["holders"]))
        del kept

    def test_the_first_three_and_five_seconds_and_then_a_hundredth_of_the_run(self):
        names = holders.Names()
        names.walks, names.seconds = 3, 4.9
        self.assertTrue(names.is_due())
        names.seconds, names.began = 6.0, names.began - 50
        self.assertFalse(names.is_due())
        names.began -= 100
        self.assertTrue(names.is_due())
        names.seconds, names.walks = 60.0, 2
        self.assertTrue(names.is_due())

    def said(self, torch):
        names, err = holders.Names(), io.StringIO()
        with contextlib.redirect_stderr(err):
            for _ in range(2):
                with names.taking(torch, "call") as add_names:
                    snapshot = {"segments": [], "mine": 1}
                    add_names(snapshot)
        self.assertEqual(snapshot, {"segments": [], "mine": 1})
        return err.getvalue()

    def test_what_goes_wrong_is_one_line_and_the_snapshot_stays(self):
        class Broken(Torch):
            _C = types.SimpleNamespace(**{name: value for name, value in vars(Torch._C).items() if name[:2] != "__"})

        del Broken._C.TensorBase
        said = self.said(Broken)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertTrue(said.startswith("ashlar: not kept: who holds the memory, by name: AttributeError"), said)

    def test_a_later_snapshot_has_the_names_of_the_failure(self):
        names, device, later = holders.Names(), Device(), {}
        with holders.Again(names).taking(Torch, "exit", True) as add_names:
            add_names(later)
        self.assertEqual(later, {})
        with names.taking(Torch, "out_of_memory") as add_names:
            add_names(device.snapshot())
        with holders.Again(names).taking(Torch, "exit", True) as add_names:
            add_names(later)
        self.assertEqual(later[holders.KEY]["when"], "out_of_memory")

    def test_without_the_gil_nothing_is_taken(self):
        before = getattr(sys, "_is_gil_enabled", None)
        sys._is_gil_enabled = lambda: False
        try:
            said = self.said(Torch)
        finally:
            del sys._is_gil_enabled
            if before is not None:
                sys._is_gil_enabled = before
        self.assertEqual(said, "ashlar: not kept: who holds the memory, by name: this Python runs without the GIL\n")


class Texts(unittest.TestCase):
    def test_control_characters_are_escaped(self):
        self.assertEqual(record.escaped("a\x1b[2Jb\n"), "a\\x1b[2Jb\\n")

    def test_keys_are_names_or_are_not_shown(self):
        self.assertTrue(reading.is_name("loss"))
        for key in ("layers.0.weight", "a" * 65, "user@example.org", 3, "x\n"):
            self.assertFalse(reading.is_name(key))

    def test_what_is_a_library(self):
        for file in (os.__file__, "/x/lib/python3.9/site-packages/torch/nn/a.py", "<frozen importlib>", None):
            self.assertTrue(roots.is_library(file), file)
        for file in (__file__, "<stdin>", "<ipython-input-3-abc>", "/tmp/ipykernel_7/1.py"):
            self.assertFalse(roots.is_library(file), file)


class Libraries(unittest.TestCase):
    """What each library holds, as the library that is preloaded writes it."""

    TEXTS = {0: b"900 2 /lib/libc10_cuda.so\n20 1 /home/me/my lib\xff.so\n3 1 \n", 1: b""}

    def told(self, device, text, size):
        text.value = self.TEXTS[device]
        return len(self.TEXTS[device])

    def added(self, snapshot, **how):
        with mock.patch.object(libraries, "_told", [lambda *_: 0, self.told]):
            libraries.add_to(snapshot, **how)
        return snapshot.get("allocator_settings")

    def test_they_are_settings_of_the_snapshot(self):
        added = self.added({"allocator_settings": {"max_split_size": -1}, "device_traces": [[], []]})
        self.assertEqual(added, {
            "max_split_size": -1,
            "ashlar_device_0_library_0": "900 2 /lib/libc10_cuda.so",
            "ashlar_device_0_library_1": "20 1 /home/me/my lib\\xff.so",
            "ashlar_device_0_library_2": "3 1 ",
        })

    def test_folders_are_left_out_where_names_are(self):
        added = self.added({"allocator_settings": {}, "device_traces": [[]]}, without_folders=True)
        self.assertEqual(added["ashlar_device_0_library_1"], "20 1 my lib\\xff.so")

    def test_a_snapshot_without_settings_or_a_process_without_our_libraries_stays_as_it_is(self):
        self.assertIsNone(self.added({"device_traces": [[]]}))
        snapshot = {"allocator_settings": {}, "device_traces": [[]]}
        libraries.add_to(snapshot)
        self.assertEqual(snapshot["allocator_settings"], {})


if __name__ == "__main__":
    unittest.main()
