"""The fake mode of shardscope_torch.py: trains a script for a few steps without a GPU and without weights, and writes
what PyTorch's profiler would have recorded of its memory.

    python3 -m shardscope_torch --fake OUT.json[.gz] [--ranks N] [--steps K] SCRIPT.py [ARGUMENT ...]

Tensors are PyTorch's FakeTensors: they have a shape, a type and a device, but no values. The device "cuda" and the
process group are fake, too, so that a model may be as large, and have as many ranks, as one likes. A dispatch mode
sees each operation's results: a storage begins when an operation first returns it, ends when its weak reference dies,
and changes when FSDP resizes it. Sizes are those of the storages, before an allocator rounds them.

The trace has the profiler's format, for rank 0, and the K steps after the first. Its times only give the order of
events, as {"times": "none"} among its facts says. Written for PyTorch 2.15, whose internals it replaces.
"""

import contextlib
import gc
import gzip
import json
import os
import re
import sys
import traceback
import types
import weakref

import torch
import torch.distributed as dist
import torch.distributed.tensor
from torch._subclasses import fake_tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import shardscope_torch

DEVICE_MEMORY = 80 << 30  # that of the fake device, if the script asks
ACCELERATOR = "shardscope_none"  # hides a build's CUDA from autograd's engine, which would look for the driver
HERE = os.path.abspath(__file__)
TORCH = os.path.dirname(os.path.abspath(torch.__file__))

_ITEM = torch.ops.aten._local_scalar_dense.default
_SET_DATA = torch.Tensor.data.__set__
_DEVICE = torch.ops.prim.device.default
# Operation of c10d -> its name in the profiler's traces, and the name of NCCL's kernel.
_COLLECTIVES = {
    "c10d::_allgather_base_": ("_allgather_base", "AllGather"),
    "c10d::allgather_": ("all_gather", "AllGather"),
    "c10d::allgather_into_tensor_coalesced_": ("allgather_into_tensor_coalesced", "AllGather"),
    "c10d::_reduce_scatter_base_": ("_reduce_scatter_base", "ReduceScatter"),
    "c10d::reduce_scatter_": ("reduce_scatter", "ReduceScatter"),
    "c10d::allreduce_": ("allreduce", "AllReduce"),
    "c10d::broadcast_": ("broadcast", "Broadcast"),
    "c10d::alltoall_base_": ("all_to_all", "SendRecv"),
    "_c10d_functional::all_reduce": ("allreduce", "AllReduce"),
    "_c10d_functional::all_gather_into_tensor": ("_allgather_base", "AllGather"),
    "_c10d_functional::reduce_scatter_tensor": ("_reduce_scatter_base", "ReduceScatter"),
}
_TYPES = {torch.float32: "Float", torch.bfloat16: "BFloat16", torch.float16: "Half", torch.float64: "Double",
          torch.int64: "Long", torch.int32: "Int", torch.uint8: "Byte", torch.bool: "Bool"}


class Finished(BaseException):
    """Ends the script after its last step; not an Exception, so that the script does not handle it."""


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _place():
    """Where the script is: the innermost frame that is neither PyTorch's nor ours."""
    for frame in reversed(traceback.extract_stack()):
        path = os.path.abspath(frame.filename)
        if path != HERE and not path.startswith((TORCH, os.path.dirname(os.__file__), "<")) and os.path.exists(path):
            return "{}:{}".format(os.path.basename(path), frame.lineno)
    return "PyTorch"


_WRAPPERS = (HERE, *(os.path.join(TORCH, path) for path in (
    "_compile.py", "_ops.py", "_dynamo/eval_frame.py", "utils/_stats.py", "_subclasses/fake_tensor.py")))


def _asked_by_engine():
    """Whether autograd's engine itself asks, not a hook or a function written in Python."""
    if torch.is_grad_enabled() or torch._C._current_graph_task_id() == -1:
        return False
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in _WRAPPERS:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "_engine_run_backward"


# --- the trace -------------------------------------------------------------------------------------------------

class Trace:
    """Events in the order of the host. The clock counts them."""

    PROCESS = 1

    def __init__(self, ranks):
        self.ranks = ranks
        self.active = False  # between the first step's begin and the last one's end
        self.live = self.peak = self.peak_before = 0  # bytes of the device
        self.steps = 0
        self._events, self._now = [], 1000
        self._open = []  # ranges: (index of the event or -1, key of the autograd node or None)
        self._forward = {}  # sequence number of autograd -> when the operation began that made the node
        self._linked = 0
        self._correlation = 0
        self._step_began = 0

    def _tick(self):
        self._now += 1
        return self._now

    def _add(self, name, category, start, took, arguments, thread=PROCESS, process=PROCESS):
        self._events.append({"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start,
                             "dur": took, "args": arguments})

    # --- ranges

    def push(self, name, category="user_annotation", arguments=None, node=None):
        if node is None:
            self.follow_autograd()
        at = -1
        if self.active:
            at = len(self._events)
            self._add(name, category, self._tick(), 0, arguments or {})
        self._open.append((at, node))

    def pop(self):
        while True:
            at, node = self._open.pop()
            if at >= 0:
                self._events[at]["dur"] = self._tick() - self._events[at]["ts"]
            if node is None:  # a node's range that is still open inside ends, too
                return

    def follow_autograd(self):
        """Opens and closes the ranges of autograd's nodes, whose work is seen only when it calls operations."""
        inside = bool(self._open) and self._open[-1][1] is not None
        if torch._C._current_graph_task_id() == -1:
            if inside:
                self._end_node()
            return
        node = torch._C._current_autograd_node()
        if node is None:
            return
        name, number = node.name(), node._sequence_nr()
        key = (name, number)
        # FSDP's ranges are open inside the node that runs its hook.
        if next((own for _, own in reversed(self._open) if own is not None), None) == key:
            return
        if inside:
            self._end_node()
        self.push("autograd::engine::evaluate_function: " + name, "cpu_op", node=key)
        if not self.active:
            return
        start = self._now + 1
        self._add(name, "cpu_op", self._tick(), 0, {"Sequence number": number})
        began = self._forward.get(number)
        if began is not None:
            self._linked += 1
            common = {"cat": "fwdbwd", "name": "fwdbwd", "id": self._linked, "pid": self.PROCESS, "tid": self.PROCESS}
            self._events.append({"ph": "s", "ts": began, **common})
            self._events.append({"ph": "f", "ts": start, "bp": "e", **common})
        self._inner = len(self._events) - (3 if began is not None else 1)

    def _end_node(self):
        at, _ = self._open.pop()
        if at >= 0:
            if self._inner > at:
                self._events[self._inner]["dur"] = self._tick() - self._events[self._inner]["ts"]
            self._events[at]["dur"] = self._tick() - self._events[at]["ts"]

    # --- operations

    def operation(self, name, dims):
        """Begins one; returns its index, for end()."""
        if not self.active:
            return -1
        start = self._tick()
        if torch.is_grad_enabled():
            self._forward.setdefault(torch._C._autograd._get_sequence_nr() - 1, start)
        self._add(name, "cpu_op", start, 0, {"Input Dims": dims} if dims else {})
        return len(self._events) - 1

    def end(self, at):
        if at >= 0:
            self._events[at]["dur"] = self._tick() - self._events[at]["ts"]

    def collective(self, operation, output, source, group):
        if not self.active or not source:
            return
        name, kernel = _COLLECTIVES[operation]
        self._correlation += 1
        identity = {"correlation": self._correlation}
        self._add("cudaLaunchKernel", "cuda_runtime", self._tick(), 1, identity)
        self._tick()
        self._add("ncclDevKernel_{}_RING_LL".format(kernel), "kernel", self._tick(), 1, {
            **identity, "device": 0, "stream": 20, "Collective name": name,
            "In msg nelems": sum(t.numel() for t in source), "Out msg nelems": sum(t.numel() for t in output),
            "Group size": len(group), "dtype": _TYPES.get(source[0].dtype, "Byte"),
            "Process Group Name": "_".join(map(str, group[:2])) if len(group) < self.ranks else "0",
            "Process Group Ranks": str(group)}, thread=20, process=0)

    def memory(self, address, size):
        self.live += size
        if not self.active:
            self.peak_before = max(self.peak_before, self.live)
            return
        self.follow_autograd()
        self.peak = max(self.peak, self.live)
        self._events.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": self.PROCESS,
                             "tid": self.PROCESS, "ts": self._tick(), "s": "t",
                             "args": {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size,
                                      "Total Allocated": self.live}})

    # --- steps

    def begin_steps(self, live):
        """`live`: address and bytes of each storage, which stand before the first step."""
        self.active, self.live = True, 0
        for address, size in live:
            self.memory(address, size)
        self._step_began = self._tick()
        self.peak = self.live

    def end_step(self):
        self.follow_autograd()
        name = "ProfilerStep#{}".format(self.steps)
        self._add(name, "user_annotation", self._step_began, self._tick() - self._step_began, {})
        self.steps += 1
        self._step_began = self._tick()

    def write(self, path):
        whole = {
            "schemaVersion": 1,
            "shardscope": {"configuration": {"times": "none"}},
            "deviceProperties": [{"id": 0, "name": "fake"}],
            "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": self.ranks},
            "record_shapes": 1,
            "profile_memory": 1,
            "traceEvents": self._events,
        }
        text = json.dumps(whole, separators=(",", ":"))
        with (gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w")) as file:
            file.write(text)


# --- storages, operations and collectives ----------------------------------------------------------------------

class Recorder(TorchDispatchMode):
    def __init__(self, trace):
        super().__init__()
        self.trace = trace
        self.values = {}  # place in the script -> what it asked the value of
        self.processor = False  # C++ takes the fake device for the processor
        self.paused = False  # operations ask only for shapes
        self.numbers = False  # int32 tensors have values: DDP's reducer reads the numbers of its buckets
        self._live = {}  # address of a StorageImpl -> (our address, bytes, weak reference)
        self._next = 1 << 32

    def _see(self, tensor):
        if tensor.device.type != "cuda":
            return
        storage = tensor.untyped_storage()
        place = storage._cdata
        if place in self._live:
            if self._live[place][1] != storage.nbytes():
                self.resized(storage)
            return
        self._begin(storage)

    def _begin(self, storage):
        place, size = storage._cdata, storage.nbytes()
        self._next += 512 + size
        address = self._next
        self._live[place] = (address, size, weakref.ref(storage, lambda _: self._end(place, address)))
        if size:
            self.trace.memory(address, size)

    def _end(self, place, address):
        if place in self._live and self._live[place][0] == address:
            _, size, _ = self._live.pop(place)
            if size:
                self.trace.memory(address, -size)

    def live(self):
        """Address and bytes of what has not ended, in the order of its beginning."""
        gc.collect()  # cycles of Python's would keep a few tensors of the construction for a while
        return [(address, size) for address, size, _ in self._live.values() if size]

    def resized(self, storage):
        known = self._live.get(storage._cdata)
        if known is None or known[1] == storage.nbytes():
            return
        if known[1]:
            self.trace.memory(known[0], -known[1])
        self._begin(storage)

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is _DEVICE or any(issubclass(kind, dist.tensor.DTensor) for kind in kinds):
            return function(*args, **kwargs) if function is _DEVICE else NotImplemented
        if function is _ITEM:
            return self._value(function, args)
        schema = function._schema
        if self.paused or (function.is_view and not torch.is_grad_enabled()):
            return function(*args, **kwargs)
        if function.is_view:  # its backward may allocate
            self.trace.end(self.trace.operation(schema.name, None))
            return function(*args, **kwargs)
        if self.processor and "device" in kwargs:
            kwargs = {**kwargs, "device": torch.device("cuda", 0)}
        if self.numbers and (kwargs.get("dtype") == torch.int32 or self._are_real(args)):
            with fake_tensor.unset_fake_temporarily():
                return function(*args, **{**kwargs, **({"device": "cpu"} if "device" in kwargs else {})})
        self.trace.follow_autograd()
        dims = [list(a.shape) if isinstance(a, torch.Tensor) else [] for a in args]
        at = self.trace.operation(schema.name, dims)
        if schema.name in _COLLECTIVES:
            self._collective(schema.name, args)
        out = function(*args, **kwargs)
        for tensor in _tensors(out):
            self._see(tensor)
        self.trace.end(at)
        return out

    @staticmethod
    def _are_real(args):
        found = list(_tensors(args))
        return bool(found) and not any(isinstance(t, fake_tensor.FakeTensor) for t in found)

    def _collective(self, name, args):
        if name.startswith("_c10d_functional"):
            group = dist.distributed_c10d._resolve_process_group(args[-1])
            source = list(_tensors(args[0]))
            factor = {"all_gather_into_tensor": group.size(), "reduce_scatter_tensor": 1 / group.size()}.get(
                name.split("::")[1], 1)
            output = [types.SimpleNamespace(numel=lambda: int(source[0].numel() * factor))]
        else:
            one = name in ("c10d::allreduce_", "c10d::broadcast_")
            group = dist.ProcessGroup.unbox(args[1 if one else 2])
            output, source = list(_tensors(args[0])), list(_tensors(args[0 if one else 1]))
        self.trace.collective(name, output, source, dist.get_process_group_ranks(group))

    def _value(self, function, args):
        """A value that the script asks for: what is known of it, else 1 (False for bool)."""
        try:
            return function(*args)
        except fake_tensor.DataDependentOutputException:
            place = _place()
            if place != "PyTorch":
                self.values.setdefault(place, str(args[0].dtype).replace("torch.", ""))
            dtype = args[0].dtype
            return False if dtype == torch.bool else 1.0 if dtype.is_floating_point else 1


# --- the fake device -------------------------------------------------------------------------------------------

class _Stream:
    """Streams and events: everything happens in the order of the host."""

    def __init__(self, *_, **__):
        self.device, self.stream_id, self.device_index, self.device_type = torch.device("cuda", 0), 0, 0, 1
        self.cuda_stream = 0

    def record(self, *_):
        return self

    def record_event(self, event=None):
        return event or _Stream()

    def wait(self, *_):
        pass

    wait_stream = wait_event = synchronize = wait

    def query(self):
        return True

    def elapsed_time(self, _):
        return 1.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def _fake_cuda(replace, recorder):
    """torch.cuda as a machine with one device per rank has it."""
    cuda, stream = torch.cuda, _Stream()
    ranks = recorder.trace.ranks
    properties = types.SimpleNamespace(name="fake", major=9, minor=0, total_memory=DEVICE_MEMORY,
                                       multi_processor_count=132, warp_size=32)
    answers = {
        "is_available": True, "device_count": ranks, "current_device": 0, "is_initialized": True, "_lazy_init": None,
        "init": None, "set_device": None, "synchronize": None, "empty_cache": None, "manual_seed": None,
        "manual_seed_all": None, "get_device_properties": properties, "get_device_name": "fake",
        "get_device_capability": (9, 0), "is_bf16_supported": True, "current_stream": stream,
        "default_stream": stream, "stream": stream, "set_stream": None, "set_rng_state": None,
        "reset_peak_memory_stats": None, "ipc_collect": None, "mem_get_info": (DEVICE_MEMORY, DEVICE_MEMORY),
        "memory_stats": {}, "memory_summary": "", "_sleep": None,
    }
    for name, answer in answers.items():
        replace(cuda, name, lambda *_, answer=answer, **__: answer)
    for name in ("memory_allocated", "memory_reserved"):
        replace(cuda, name, lambda *_: recorder.trace.live)
    for name in ("max_memory_allocated", "max_memory_reserved"):
        replace(cuda, name, lambda *_: recorder.trace.peak)
    replace(cuda, "get_rng_state", lambda *_: torch.zeros(16, dtype=torch.uint8))
    for name in ("Stream", "Event"):
        replace(cuda, name, _Stream)
    replace(torch.Tensor, "record_stream", lambda *_: None)
    replace(torch.Tensor, "pin_memory", lambda self, *_: self)
    replace(torch.Tensor, "is_pinned", lambda *_: False)


def _fake_engine(replace, recorder):
    """Lets autograd's engine run without a driver: it must not take the fake device for one that has streams, so inside
    it tensors are the processor's; the operations that it calls, and recomputations, still see the device."""
    with contextlib.suppress(ImportError, RuntimeError):
        from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

        _setup_privateuseone_for_python_backend(ACCELERATOR)
    dispatch = fake_tensor.FakeTensorMode.dispatch
    processor = torch.device("cpu")

    def device_or_dispatch(self, function, kinds, args=(), kwargs=None):
        if function is _DEVICE and not self.in_kernel_invocation:
            if recorder.processor or _asked_by_engine():
                return processor
        return dispatch(self, function, kinds, args, kwargs or {})

    replace(fake_tensor.FakeTensorMode, "dispatch", device_or_dispatch)
    replace(fake_tensor.FakeTensorMode, "avoid_device_init", property(lambda _: True))


class _Devices(TorchFunctionMode):
    """A device that is given by its number alone is the fake one, not the accelerator that hides it."""

    @staticmethod
    def _device(value):
        hidden = isinstance(value, torch.device) and value.type == ACCELERATOR
        return torch.device("cuda", 0) if hidden else value

    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        number = name in ("to", "cuda") and len(args) > 1 and type(args[1]) is int
        if number:
            args = (args[0], torch.device("cuda", 0), *args[2:])
        if "device" in kwargs:
            device = kwargs["device"]
            kwargs = {**kwargs, "device": torch.device("cuda", 0) if type(device) is int else self._device(device)}
        out = self._device(function(*map(self._device, args), **kwargs))
        if function == _SET_DATA and all(isinstance(t, fake_tensor.FakeTensor) for t in args):
            args[0].fake_device = args[1].fake_device
        return out


def _fake_attention(replace):
    """Attention by the kernels that a GPU would take: flash, or the memory-efficient one in fp32 or with a mask."""
    functional, aten = torch.nn.functional, torch.ops.aten
    original = functional.scaled_dot_product_attention

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if query.device.type != "cuda" or query.dim() != 4:
            return original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if torch.is_autocast_enabled("cuda"):
            to = torch.get_autocast_dtype("cuda")
            query, key, value = query.to(to), key.to(to), value.to(to)
        half = query.dtype in (torch.bfloat16, torch.float16)
        if enable_gqa and not (half and attn_mask is None):
            groups = query.size(-3) // key.size(-3)
            key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
        if half and attn_mask is None:
            return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, scale=scale)[0]
        if attn_mask is not None:
            if attn_mask.dtype == torch.bool:
                attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, float("-inf"))
            attn_mask = attn_mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))
        return aten._scaled_dot_product_efficient_attention(query, key, value, attn_mask, query.requires_grad,
                                                            dropout_p, is_causal, scale=scale)[0]

    replace(functional, "scaled_dot_product_attention", attention)


def _fake_tensors(replace, recorder):
    """What PyTorch asks of tensors that have no values."""
    resize = torch.UntypedStorage.resize_

    def resized(storage, size):
        out = resize(storage, size)
        recorder.resized(storage)
        return out

    replace(torch.UntypedStorage, "resize_", resized)
    # Two storages are the same if their addresses are; those of fake ones are all 0.
    replace(torch.UntypedStorage, "data_ptr", lambda storage: storage._cdata if storage.nbytes() else 0)
    replace(torch.Tensor, "data_ptr", lambda tensor: tensor.untyped_storage()._cdata)

    def tolist(tensor):
        if tensor.dim() == 1 and not tensor.dtype.is_floating_point:
            return list(range(tensor.numel()))  # most likely a permutation of a data set
        return torch.ones(tensor.shape).numpy().tolist() if not tensor.dim() else [tolist(row) for row in tensor]

    replace(torch.Tensor, "tolist", tolist)
    load = torch.utils.data.DataLoader.__init__

    def load_here(loader, *args, **kwargs):
        """Without workers, which are processes that know nothing of the fake mode."""
        none = {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False, "multiprocessing_context": None}
        load(loader, *args, **{**kwargs, **{name: none[name] for name in none if name in kwargs}})

    replace(torch.utils.data.DataLoader, "__init__", load_here)
    # A module's parameters change their device by swapping, which the fake mode's own weak references would prevent.
    replace(torch.utils, "weakref", types.SimpleNamespace(**{**vars(weakref), "getweakrefs": lambda _: []}))
    foreach = torch.utils._foreach_utils._foreach_supported_types
    if fake_tensor.FakeTensor not in foreach:
        foreach.append(fake_tensor.FakeTensor)


def _fake_ranks(replace, recorder):
    """The process group of rank 0, that carries nothing out."""
    ranks = recorder.trace.ranks
    from torch.testing._internal.distributed.fake_pg import FakeStore

    original = dist.init_process_group
    os.environ.update({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
                       "MASTER_ADDR": "localhost", "MASTER_PORT": "29500", "GROUP_RANK": "0"})

    def init_process_group(*_, **__):
        original("fake", rank=0, world_size=ranks, store=FakeStore())

    replace(dist, "init_process_group", init_process_group)
    replace(dist.distributed_c10d, "init_process_group", init_process_group)
    replace(dist.device_mesh, "init_process_group", init_process_group)

    def of_real_tensors(original):
        """The ranks of a device mesh have values."""
        def run(*args, **kwargs):
            with fake_tensor.unset_fake_temporarily():
                return original(*args, **kwargs)
        return run

    # What the others would send is taken to be what this rank has.
    replace(dist, "all_gather_object", lambda found, own, *_, **__: found.__setitem__(slice(None), [own] * len(found)))
    replace(dist, "gather_object", lambda own, found=None, *_, **__: found and found.__setitem__(
        slice(None), [own] * len(found)))
    replace(dist, "broadcast_object_list", lambda *_, **__: None)
    for name in ("__init__", "__getitem__", "_flatten", "_unflatten", "from_group"):
        if hasattr(dist.DeviceMesh, name):
            replace(dist.DeviceMesh, name, of_real_tensors(getattr(dist.DeviceMesh, name)))
    make_mesh = of_real_tensors(dist.device_mesh.init_device_mesh)
    replace(dist, "init_device_mesh", make_mesh)
    replace(dist.device_mesh, "init_device_mesh", make_mesh)
    propagator = dist.tensor._sharding_prop.ShardingPropagator
    propagate = propagator._propagate_tensor_meta_non_cached

    def propagate_shapes(*args, **kwargs):
        """DTensor runs each operation once on tensors of the global shapes, which are not the rank's."""
        recorder.paused = True
        try:
            return propagate(*args, **kwargs)
        finally:
            recorder.paused = False

    replace(propagator, "_propagate_tensor_meta_non_cached", propagate_shapes)
    reducer = dist.Reducer

    def make_reducer(*args, **kwargs):
        """DDP's reducer, whose timers would ask the driver."""
        recorder.processor = True
        try:
            return reducer(*args, **kwargs)
        finally:
            recorder.processor = False

    replace(dist, "Reducer", make_reducer)
    rebuild = reducer._rebuild_buckets

    def rebuild_buckets(self):
        recorder.numbers = True
        try:
            return rebuild(self)
        finally:
            recorder.numbers = False

    replace(reducer, "_rebuild_buckets", rebuild_buckets)

    def reduce(_, bucket):
        """Instead of DDP's own all-reduce, whose result a process group that does nothing does not have."""
        dist.all_reduce(bucket.buffer())
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    wrapper = torch.nn.parallel.DistributedDataParallel
    replace(torch.nn.parallel.distributed, "_verify_param_shape_across_processes", lambda *_: None)
    forward = wrapper.forward

    def forward_with_hook(self, *args, **kwargs):
        if not self._comm_hooks:
            self.register_comm_hook(None, reduce)
        return forward(self, *args, **kwargs)

    replace(wrapper, "forward", forward_with_hook)


# --- modules and steps -----------------------------------------------------------------------------------------

class Attachment(shardscope_torch.Attachment):
    """Ranges of modules and of record_function, in the trace; each module's parameters by shape."""

    def __init__(self, trace, recorder, steps):
        self._trace, self._recorder, self._all_steps = trace, recorder, steps
        self._trained = False  # a forward has begun since the last step's end
        self._flat = weakref.WeakKeyDictionary()  # module -> shapes of the parameters that FSDP1 flattened
        super().__init__((lambda name: trace.push(name.decode()), trace.pop), None, None)

    def _before_forward(self, module, inputs):
        super()._before_forward(module, inputs)
        handle = getattr(module, "_handle", None)
        if handle is not None and hasattr(handle, "flat_param"):
            flat = handle.flat_param
            for info, shape in zip(flat._param_infos, flat._shapes):
                shapes = self._flat.setdefault(info.module, {})
                shapes[info.param_name] = list(shape)
            return
        shapes = dict(self._flat.get(module, {}))
        for name, parameter in module._parameters.items():
            if parameter is not None:
                shapes.setdefault(name, list(parameter.shape))
        first = next(shardscope_torch._tensors(inputs), None)
        if shapes or first is not None:
            dims = [list(first.shape) if first is not None else []] + list(shapes.values())
            self._trace.end(self._trace.operation("shardscope::parameters", dims))

    def _watch_backward(self, module, inputs, output):
        pass  # autograd's links say where each node belongs

    def _begin_step(self):
        self._trained = True  # a step begins where the one before it ends

    def _end_step(self):
        if not self._active or not self._trained:  # after a step, a second optimizer's may follow
            return
        self._trained = False
        if not self._trace.active:  # the first step differs: FSDP sets itself up, and the optimizer has no state yet
            self._trace.begin_steps(self._recorder.live())
            return
        self._trace.end_step()
        if self._trace.steps == self._all_steps:
            self._trace.active = False
            raise Finished


def _run(script, trace, recorder, steps):
    restore = []

    def replace(owner, name, new):
        restore.append((owner, name, owner.__dict__.get(name)))
        setattr(owner, name, new)

    _fake_attention(replace)
    for fake in (_fake_engine, _fake_cuda, _fake_tensors, _fake_ranks):
        fake(replace, recorder)
    torch.set_grad_enabled(True)
    import runpy

    mode = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
    try:
        attachment = Attachment(trace, recorder, steps)
        with mode, recorder, _Devices(), torch.autograd.set_multithreading_enabled(False), attachment:
            try:
                runpy.run_path(script, run_name="__main__")
            except Finished:
                pass
            trace.active = False
    finally:
        for owner, name, old in reversed(restore):
            delattr(owner, name) if old is None else setattr(owner, name, old)


INSTEAD = "do something else there when torch.cuda.get_device_name() is \"fake\""


def _explain(error):
    """One sentence: what a script without values cannot do, and what to do."""
    place = "PyTorch"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = os.path.abspath(frame.filename)
        if os.path.exists(path) and not path.startswith((TORCH, os.path.dirname(os.__file__), HERE)):
            place = "{}:{}".format(os.path.basename(path), frame.lineno)
            break
    text = str(error).strip().split("\n")[0]
    if isinstance(error, (fake_tensor.DynamicOutputShapeException, fake_tensor.DataDependentOutputException)):
        what = "{} gives a result whose size or value depends on the data, of which the fake mode has none".format(text)
    elif text.startswith("c10d."):
        what = "the fake process group does not have the collective {}".format(text)
    elif isinstance(error, (fake_tensor.UnsupportedOperatorException, fake_tensor.UnsupportedFakeTensorException)):
        return ("{}: {} has no fake implementation (a custom kernel); give it one with torch.library.register_fake, or "
                "let the script {}".format(place, text, INSTEAD))
    elif "numpy()" in text:
        what = "this needs a tensor's values, of which the fake mode has none"
    elif "CUDA" in type(error).__name__ or re.search("CUDA error|NVIDIA driver|CUDA driver|CUDA_HOME", text):
        what = "this asks for a real GPU, which the fake mode does not have ({})".format(text)
    else:
        return "{}: {}: {}; if only the fake mode fails there, let the script {}".format(
            place, type(error).__name__, text, INSTEAD)
    return "{}: {}; let the script {}".format(place, what, INSTEAD)


def main(out, ranks, steps, arguments):
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    trace = Trace(ranks)
    recorder = Recorder(trace)
    try:
        _run(arguments[0], trace, recorder, steps)
    except Exception as error:
        if os.environ.get("SHARDSCOPE_FAKE_TRACEBACK"):
            raise
        sys.exit("shardscope_torch: {}".format(_explain(error)))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    if trace.steps == 0:
        sys.exit("shardscope_torch: {} ended before the second step of a torch.optim.Optimizer, so there is nothing to "
                 "write; let it train for {} steps".format(arguments[0], steps + 1))
    trace.write(out)
    mega = 1 << 20
    print("{}: {} steps of rank 0 of {}; peak allocated {:.1f} MiB ({} bytes), before that {:.1f} MiB".format(
        out, trace.steps, ranks, trace.peak / mega, trace.peak, trace.peak_before / mega))
    for place, kind in sorted(recorder.values.items()):
        print("Note: {} asks for the value of a {}; it got {}, so what depends on it is not what a real run does.".format(
            place, kind, "False" if kind == "bool" else 1))
