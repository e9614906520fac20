"""What PyTorch does with a configuration: one rank's collectives and allocations in the order of its host.

One process is rank r of N in a process group that carries nothing out (FakeProcessGroup). Tensors are real ones on
the processor, whose storages are seen by a dispatch mode when they are made and by a weak reference when they end;
values do not matter. A storage's category is known only later (a gradient is one when it has become a parameter's
.grad), so peaks by category are counted after the run.
"""

import contextlib
import gc
import re
import warnings
import weakref

import torch
import torch.distributed as dist
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    checkpoint_wrapper,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    BackwardPrefetch,
    CPUOffload,
    CPUOffloadPolicy,
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    _runtime_utils,
    fully_shard,
)
from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
from torch.distributed.fsdp.wrap import CustomPolicy, ModuleWrapPolicy, _recursive_wrap, size_based_auto_wrap_policy
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

import models
from shardscope import STEPS

VERSION = torch.__version__.split("+")[0]

_C10D = torch.ops.c10d
_COLLECTIVES = {
    _C10D._allgather_base_.default: "all_gather",
    _C10D.allgather_.default: "all_gather",
    _C10D._reduce_scatter_base_.default: "reduce_scatter",
    _C10D.reduce_scatter_.default: "reduce_scatter",
    _C10D.allreduce_.default: "all_reduce",
    _C10D.broadcast_.default: "broadcast",
}
_DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float64: "fp64", torch.int32: "int32"}
_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def _tensors(value):
    """Those in nested lists, too."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _bytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


class Recorder(TorchDispatchMode):
    """Collectives, and each storage from its allocation to its free."""

    def __init__(self):
        super().__init__()
        self.phase, self.unit = "setup", ""
        self.step = -1
        self.collectives = []  # (step, collective)
        self.changes = []  # (step, storage, bytes): an allocation, or a free where bytes is below 0
        self._next = 0
        self._purpose = None
        self._live = {}  # address of a StorageImpl -> (our number, bytes, the weak reference)
        self.category = {}  # number of a storage -> its category

    # --- storages

    def see(self, tensor, category=None):
        """Records a storage that is new; `category` replaces what was known of it."""
        storage = tensor.untyped_storage()
        known = self._live.get(storage._cdata)
        if known is None:
            number, address = self._next, storage._cdata
            self._next += 1
            reference = weakref.ref(storage, lambda _: self._end(address, number))
            self._live[address] = (number, storage.nbytes(), reference)
            self.changes.append((self.step, number, storage.nbytes()))
            # What remains of the set-up and is never named later is small: the ranks of a device mesh. Temporaries
            # of the optimizer do not count: ours is fused, and whether PyTorch's is depends on the kind of tensor.
            by_phase = {"setup": "ignored", "none": "other", "optimizer": "ignored"}
            self.category[number] = category or self._purpose or by_phase.get(self.phase, "activations")
        elif category:
            self.category[known[0]] = category

    @contextlib.contextmanager
    def made_for(self, category):
        """What is allocated meanwhile has this category, after a reduce-scatter "gradients"."""
        before, self._purpose = self._purpose, category
        try:
            yield
        finally:
            self._purpose = before

    def _end(self, address, number):
        if address in self._live and self._live[address][0] == number:
            _, size, _ = self._live.pop(address)
            self.changes.append((self.step, number, -size))

    def _resized(self, storage):
        known = self._live.get(storage._cdata)
        if known is None:
            return
        number, before, reference = known
        now = storage.nbytes()
        if now != before:
            self._live[storage._cdata] = (number, now, reference)
            self.changes.append((self.step, number, now - before))

    # --- operations

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if any(issubclass(t, torch.distributed.tensor.DTensor) for t in types):
            return NotImplemented  # its own operations on local tensors come here, too
        if function in _COLLECTIVES:
            self._collective(_COLLECTIVES[function], function, args)
        out = function(*args, **(kwargs or {}))
        for tensor in _tensors(out):
            self.see(tensor)
        if function is torch.ops.aten.cat.default and self.phase == "backward":  # FSDP1's split, backwards
            for tensor in (*args[0], out):
                self.see(tensor, "unsharded_gradients")
        return out

    def _collective(self, kind, function, args):
        # The output, then the input where it is another, then the group.
        one = function in (_C10D.allreduce_.default, _C10D.broadcast_.default)
        output, source = list(_tensors(args[0])), list(_tensors(args[0 if one else 1]))
        group = dist.ProcessGroup.unbox(args[1 if one else 2])
        self.collectives.append((self.step, {
            "kind": kind,
            "bytes": max(_bytes(output), _bytes(source)),
            "dtype": _DTYPES.get(source[0].dtype, str(source[0].dtype)),
            "group": group.size(),
            "unit": self.unit,
            "phase": self.phase,
        }))
        if kind == "reduce_scatter":
            self._purpose = "gradients"
            for tensor in output:
                self.see(tensor, "gradients")
        elif kind == "all_reduce" and self.unit.startswith("bucket"):  # DDP's
            for tensor in output:
                self.see(tensor, "communication")


# --- PyTorch's own steps, named ----------------------------------------------------------------------------

def _clean(path):
    """A module's path without the wrappers in it, as ours name it; the root is "root"."""
    parts = [p for p in path.split(".") if p not in ("_fsdp_wrapped_module", "_checkpoint_wrapped_module", "module")]
    return ".".join(p for p in parts if p) or "root"


@contextlib.contextmanager
def _patched(recorder, paths):
    """Names the unit while PyTorch works on it, and the categories of what it allocates for it."""
    restore = []

    def replace(owner, name, make):
        original = getattr(owner, name)
        setattr(owner, name, make(original))
        restore.append((owner, name, original))

    @contextlib.contextmanager
    def unit(name):
        before, recorder.unit = recorder.unit, name
        try:
            yield
        finally:
            recorder.unit = before

    def of_handle(original):
        def run(state, handle, *rest):
            with unit(paths.get(handle, "?")), recorder.made_for("communication"):
                return original(state, handle, *rest)
        return run

    for name in ("_unshard", "_post_backward_hook", "_reduce_grad", "_reduce_grad_no_shard"):
        replace(_runtime_utils, name, of_handle)

    def of_group(original):
        def run(self, *rest):
            with unit(_clean(self._module_fqn or "")), recorder.made_for("communication"):
                return original(self, *rest)
        return run

    def mark_gradients(original):
        def mark(group):  # leaves no reference to a gradient behind
            for p in group.fsdp_params:
                gradient = getattr(getattr(p, "_unsharded_param", None), "grad", None)
                if gradient is not None:
                    recorder.see(gradient, "unsharded_gradients")

        def run(self, *rest):
            mark(self)
            with unit(_clean(self._module_fqn or "")), recorder.made_for("communication"):
                return original(self, *rest)
        return run

    replace(FSDPParamGroup, "unshard", of_group)
    replace(FSDPParamGroup, "post_backward", mark_gradients)

    def mark_outputs(original):
        def run(self, *rest):
            out = original(self, *rest)
            for tensor in self.all_gather_outputs:
                recorder.see(tensor, "unsharded_parameters")
            return out
        return run

    replace(FSDPParam, "alloc_all_gather_outputs", mark_outputs)

    def mark_arriving(original):
        def run(self, *rest):
            fresh = not hasattr(self, "_unsharded_param")
            out = original(self, *rest)
            if fresh and self._unsharded_param.requires_grad:
                self._unsharded_param.register_hook(lambda g: recorder.see(g, "unsharded_gradients"))
            return out
        return run

    replace(FSDPParam, "init_unsharded_param", mark_arriving)

    def resize(original):
        def run(storage, size):
            out = original(storage, size)
            recorder._resized(storage)
            return out
        return run

    replace(torch.UntypedStorage, "resize_", resize)
    # What needs an accelerator does nothing.
    replace(torch.Tensor, "pin_memory", lambda original: lambda self, *rest: self)
    torch.cpu.Stream.synchronize = lambda self: None

    def recomputed(original):
        def run(self, *args, **kwargs):
            if recorder.phase != "backward":
                return original(self, *args, **kwargs)
            recorder.phase = "recompute"
            try:
                return original(self, *args, **kwargs)
            finally:
                recorder.phase = "backward"
        return run

    for owner in set(models.CLASSES.values()):
        replace(owner, "forward", recomputed)
    try:
        yield
    finally:
        for owner, name, original in reversed(restore):
            setattr(owner, name, original)


# --- a job of PyTorch's ------------------------------------------------------------------------------------

def _classes(names):
    return tuple(models.CLASSES[name] for name in names.split(","))


def _regex(pattern):
    """* and ? stand for characters of one part of a path, ** for any."""
    parts = re.split(r"(\*\*|\*|\?)", pattern)
    return "".join({"**": ".*", "*": "[^.]*", "?": "[^.]"}.get(part, re.escape(part)) for part in parts)


def _selected(model, text):
    """The modules that a selection of a job chooses."""
    kind, _, names = text.partition(":")
    if kind == "module":
        return {m for m in model.modules() if isinstance(m, _classes(names))}
    if kind == "every":
        every, _, names = names.partition(",")
        of_class = [[m for m in model.modules() if isinstance(m, c)] for c in _classes(names)]
        return {m for modules in of_class for m in modules[::int(every)]}
    if kind == "path":
        return {m for name, m in model.named_modules() if any(re.fullmatch(_regex(p), name) for p in names.split(","))}
    return set()


def _policy(c, model):
    """What PyTorch calls a policy, for fsdp.wrap and fsdp.exclude."""
    excluded = _selected(model, c.exclude)
    if c.wrap.startswith("size:"):
        def policy(module, recurse, nonwrapped_numel):
            large = size_based_auto_wrap_policy(module, recurse, nonwrapped_numel, min_num_params=int(c.wrap[5:]))
            return large and (recurse or module not in excluded)
        return policy
    if c.wrap.startswith("module:") and not excluded and c.unit == "none":
        return ModuleWrapPolicy(set(_classes(c.wrap[len("module:"):])))
    chosen = _selected(model, c.wrap) - excluded
    strategies = {m: ShardingStrategy[c.strategy] for m in chosen}
    pairs = {True: "FULL_SHARD", False: "SHARD_GRAD_OP"}
    if c.shard_group:
        pairs = {True: "HYBRID_SHARD", False: "_HYBRID_SHARD_ZERO2"}
    for m, reshards in _reshards(c, model).items():
        strategies[m] = ShardingStrategy[pairs[reshards]]
    return CustomPolicy(lambda m: {"sharding_strategy": strategies[m]} if m in chosen else False)


def _reshards(c, model):
    """The modules that fsdp.unit names, and whether they are freed after their forward."""
    reshards = {}
    for rule in c.unit.split():
        if rule != "none":
            selection, _, value = rule.rpartition("=")
            reshards.update((m, value == "true") for m in _selected(model, selection))
    return reshards


def _units(model, c):
    """The modules below `model` that fsdp.wrap makes units of, inner ones first, by PyTorch's own recursion."""
    if c.wrap == "root":
        return []
    policy = _policy(c, model)
    if isinstance(policy, CustomPolicy):
        chosen = _selected(model, c.wrap) - _selected(model, c.exclude)
        return [m for m in reversed(list(model.modules())) if m in chosen]
    chosen = []

    def mark(module, **_):
        chosen.append(module)
        return module

    _recursive_wrap(model, policy, mark, set(), set())
    return [m for m in chosen if m is not model]


def fsdp1(c, model, _):
    strategy = ShardingStrategy[c.strategy]
    options = {}
    if c.shard_group:
        options["device_mesh"] = init_device_mesh(
            "cpu", (c.ranks // c.shard_group, c.shard_group), mesh_dim_names=("replicate", "shard"))
    if (c.param, c.reduce) != ("fp32", "fp32"):
        options["mixed_precision"] = MixedPrecision(
            param_dtype=_PRECISIONS[c.param] if c.param != "fp32" else None,
            reduce_dtype=_PRECISIONS[c.reduce], buffer_dtype=_PRECISIONS[c.param])
    policy = None if c.wrap == "root" else _policy(c, model)
    wrapped = FullyShardedDataParallel(
        model, sharding_strategy=strategy, auto_wrap_policy=policy, device_id=torch.device("cpu"),
        backward_prefetch=None if c.backward_prefetch == "NONE" else BackwardPrefetch[c.backward_prefetch],
        forward_prefetch=c.forward_prefetch, limit_all_gathers=c.limit_all_gathers,
        use_orig_params=c.use_orig_params,
        cpu_offload=CPUOffload(offload_params=True) if c.cpu_offload else None, **options)
    _checkpoint(c, wrapped)
    return wrapped


def fsdp2(c, model, _):
    if c.shard_group:
        mesh = init_device_mesh("cpu", (c.ranks // c.shard_group, c.shard_group), mesh_dim_names=("replicate", "shard"))
    else:
        mesh = init_device_mesh("cpu", (c.ranks,))
    units, reshards = _units(model, c), _reshards(c, model)
    # None: all but the root's.
    reshard = {"true": True, "false": False, "auto": None}[c.reshard]
    if c.strategy not in ("FULL_SHARD", "HYBRID_SHARD"):
        reshard = False
    options = dict(
        mesh=mesh, reshard_after_forward=reshard,
        mp_policy=MixedPrecisionPolicy(
            param_dtype=_PRECISIONS[c.param] if c.param != "fp32" else None,
            reduce_dtype=_PRECISIONS[c.reduce] if (c.param, c.reduce) != ("fp32", "fp32") else None))
    if c.cpu_offload:
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
    # A checkpointed module is wrapped before it is sharded, so that the unit is around the wrapper.
    wrappers = _checkpoint(c, model)
    own = {wrappers.get(unit, unit): reshards[unit] for unit in units if unit in reshards}
    units = [wrappers.get(unit, unit) for unit in units]
    for unit in units:
        fully_shard(unit, **{**options, "reshard_after_forward": own.get(unit, reshard)})
    fully_shard(model, **options)
    if c.forward_prefetch:
        order = [m for m in model.modules() if m in set(units)]
        for this, after in zip(order, order[1:]):
            this.set_modules_to_forward_prefetch([after])
        model.set_modules_to_forward_prefetch(order[:1])
    return model


def _checkpoint(c, model):
    """Wraps modules of the class; returns module -> wrapper."""
    wrappers = {}
    if not c.checkpointing:
        return wrappers
    implementation = CheckpointImpl.REENTRANT if c.reentrant else CheckpointImpl.NO_REENTRANT
    chosen = [m for m in model.modules() if isinstance(m, models.CLASSES[c.checkpointing])]
    for module in chosen:
        wrappers[module] = checkpoint_wrapper(module, checkpoint_impl=implementation)
    for parent in list(model.modules()):
        if isinstance(parent, CheckpointWrapper):
            continue
        for name, child in list(parent.named_children()):
            if child in wrappers:
                setattr(parent, name, wrappers[child])
    return wrappers


def _ddp(c, model, recorder):
    # PyTorch 2.15 has a first bucket of another size only if bucket_cap_mb is not given.
    assert c.bucket_cap_mb == c.first_bucket_mb
    _checkpoint(c, model)
    wrapped = DistributedDataParallel(model, bucket_cap_mb=c.bucket_cap_mb, static_graph=c.static_graph,
                                      gradient_as_bucket_view=c.gradient_as_bucket_view)

    def reduce(recorder, bucket):
        """Instead of the reducer's own all-reduce, whose result a process group that does nothing does not have."""
        before, recorder.unit = recorder.unit, "bucket %d" % bucket.index()
        dist.all_reduce(bucket.buffer())
        recorder.unit = before
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    wrapped.register_comm_hook(recorder, reduce)
    for parameter in wrapped.parameters():
        parameter.register_hook(lambda gradient: recorder.see(gradient, "gradients"))
    return wrapped


def make_optimizer(c, parameters):
    if c.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=0.01, foreach=False)
    return torch.optim.AdamW(parameters, lr=0.01, foreach=False)


def _mark_parameters(c, recorder, model):
    """The categories of what persists, and of FSDP1's buffers, which it allocates and frees by resizing."""
    if c.wrapper == "fsdp1":
        for module in FullyShardedDataParallel.fsdp_modules(model):
            handle = module._handle
            if handle is None:
                continue
            flat = handle.flat_param
            recorder.see(flat._local_shard, "parameters")
            if hasattr(flat, "_full_param_padded"):
                recorder.see(flat._full_param_padded, "unsharded_parameters")
            if hasattr(flat, "_mp_shard"):
                recorder.see(flat._mp_shard,
                             "communication" if handle.uses_sharded_strategy else "unsharded_parameters")
    elif c.wrapper == "fsdp2":
        for parameter in model.parameters():
            recorder.see(parameter._local_tensor, "parameters")
    else:
        for parameter in model.parameters():
            recorder.see(parameter, "parameters")


def _mark_gradients(c, recorder, model):
    if c.wrapper == "fsdp1":
        handles = [m._handle for m in FullyShardedDataParallel.fsdp_modules(model) if m._handle is not None]
        gradients = [handle.flat_param.grad for handle in handles]
    else:
        gradients = [getattr(p.grad, "_local_tensor", p.grad) for p in model.parameters()]
    for gradient in gradients:
        if gradient is not None:
            recorder.see(gradient, "gradients")


def _train(c, recorder, model, optimizer):
    for step in range(STEPS):
        recorder.step, recorder.phase = step, "none"
        optimizer.zero_grad(set_to_none=True)
        for micro in range(c.accumulation):
            last = micro + 1 == c.accumulation
            reduces = last or c.accumulation_sync
            if c.wrapper == "fsdp2":
                model.set_requires_gradient_sync(reduces)
            silent = contextlib.nullcontext() if reduces or c.wrapper == "fsdp2" else model.no_sync()
            with silent:
                recorder.phase = "data"
                source, target = models.batch(c)
                recorder.phase = "forward"
                output = model(source)
                loss = models.loss(c, output, target)
                one = torch.ones_like(loss)
                recorder.see(one, "ignored")  # a few bytes, which are a constant for ours
                recorder.phase = "backward"
                loss.backward(one)
                del one
                if step == 0 and micro == 0:
                    _mark_parameters(c, recorder, model)
                if reduces or c.wrapper == "ddp":
                    _mark_gradients(c, recorder, model)
            if not last:
                del source, target, output, loss
        recorder.phase = "optimizer"
        optimizer.step()
        if step == 0:
            for state in optimizer.state.values():
                for name, tensor in state.items():
                    if isinstance(tensor, torch.Tensor):
                        tensor = getattr(tensor, "_local_tensor", tensor)
                        recorder.see(tensor, "ignored" if name == "step" else "optimizer_state")
        recorder.phase = "none"
        del source, target, output, loss


def _peaks(recorder):
    """Per step the peak; and the categories at the highest of them."""
    live, by_category = 0, {}
    peaks = [0] * STEPS
    best, at_peak = -1, {}
    for step, storage, change in recorder.changes:
        category = recorder.category[storage]
        if category == "ignored":
            continue
        live += change
        by_category[category] = by_category.get(category, 0) + change
        if step < 0:
            continue
        peaks[step] = max(peaks[step], live)
        if live > best:
            best, at_peak = live, dict(by_category)
    return peaks, at_peak


def run(configuration):
    """As shardscope.run()."""
    c = configuration
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("fake", rank=c.rank, world_size=c.ranks, store=FakeStore())
    recorder, paths = Recorder(), {}
    try:
        with warnings.catch_warnings(), _patched(recorder, paths), recorder:
            warnings.simplefilter("ignore")
            model = {"ddp": _ddp, "fsdp1": fsdp1, "fsdp2": fsdp2}[c.wrapper](c, models.make(c), recorder)
            for path, module in model.named_modules():
                if isinstance(module, FullyShardedDataParallel) and module._handle is not None:
                    paths[module._handle] = _clean(path)
            optimizer = make_optimizer(c, model.parameters())
            gc.collect()
            _train(c, recorder, model, optimizer)
            recorder.step = STEPS
            changes = list(recorder.changes)
    finally:
        dist.destroy_process_group()
    recorder.changes = [change for change in changes if change[0] < STEPS]
    peaks, at_peak = _peaks(recorder)
    steps = []
    for step in range(STEPS):
        steps.append({
            "collectives": [one for at, one in recorder.collectives if at == step],
            "peak": peaks[step],
            "allocations": sum(1 for at, _, change in recorder.changes if at == step and change > 0),
        })
    return {"steps": steps, "at_peak": at_peak}
