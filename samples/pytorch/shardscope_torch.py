"""Shows a PyTorch program's modules and steps to shardscope-record (or to Nsight Systems), without a change to
the model.

    shardscope-record -o run.sqlite -- python3 -m shardscope_torch train.py     # an unmodified script

or, in the script itself, for one model:

    import shardscope_torch
    with shardscope_torch.attach(model, optimizer):
        ...                                                                     # the training loop

What is recorded, as NVTX ranges of the default domain:

    nn.Module: Linear_0                 each call of a module; numbered in each class by first appearance
    nn.Module path: Linear_0 net.0.up   once, of no length: its place in the model
    nn.Module: Linear_0 (backward)      the backward of a module that has no modules in it
    ProfilerStep#3                      from the first forward of a training step to the end of optimizer.step()
    everything PyTorch itself names     record_function(...): Optimizer.step#Adam.step, enumerate(DataLoader)#...,
                                        DistributedDataParallel.forward, FullyShardedDataParallel.forward and its
                                        kin, FSDP::all_gather ... and your own

A loop whose forward stands within a record_function of its own names its steps itself:
record_function("ProfilerStep#3"), as torch.profiler does.

Nothing is touched when nobody records ($NVTX_INJECTION64_PATH is not set), and everything is put back at the end.
Works with PyTorch 1.13 and later, with CUDA or without; needs nothing else.
"""

import ctypes
import os
import runpy
import sys
import threading
import types
import weakref

__all__ = ["attach"]

MODULE_PREFIX = "nn.Module: "
PATH_PREFIX = "nn.Module path: "
# Attributes of wrappers, which are not part of a module's fully qualified name.
WRAPPERS = {"_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod"}
BACKWARD_SUFFIX = " (backward)"


# --- output of ranges ------------------------------------------------------------------------------------------

def _nvtx():
    """(push(bytes), pop()), or None when nobody records."""
    path = os.environ.get("NVTX_INJECTION64_PATH")
    if not path:
        return None
    import torch

    if hasattr(torch._C, "_nvtx"):  # in builds with CUDA
        nvtx = torch.cuda.nvtx
        return (lambda text: nvtx.range_push(text.decode())), nvtx.range_pop
    try:
        library = ctypes.PyDLL(path)  # holds the interpreter's lock during calls, which are short
        push, pop = library.shardscope_range_push, library.shardscope_range_pop
    except (OSError, AttributeError):  # another tool's library
        return None
    push.argtypes, push.restype = [ctypes.c_char_p], None
    pop.argtypes, pop.restype = [], None
    return push, pop


# --- watched modules -------------------------------------------------------------------------------------------

def _tensors(value):
    """The tensors in what a module takes or gives."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


class _OfThread(threading.local):
    """What is open on one thread."""

    def __init__(self):
        self.calls = []  # modules that are being called, the outer before the inner
        self.backward = None  # the module whose backward range is open
        self.functions = 0  # how many record_function ranges are open


class Attachment:
    """What attach() gives: a context manager that can also be detached by hand."""

    def __init__(self, nvtx, model, optimizer):
        import torch

        self._torch = torch
        # A region that torch.compile compiles has no ranges inside; PyTorch before 2.1 cannot report whether it is one.
        self._compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
        self._push, self._pop = nvtx
        self._names = weakref.WeakKeyDictionary()  # module -> the bytes of its range
        self._paths = weakref.WeakKeyDictionary()  # module -> its fully qualified name
        self._classes = {}  # class name -> how many so far
        self._thread = _OfThread()
        self._parameters_hooked = weakref.WeakSet()
        self._step = None  # the open step's thread
        self._step_is_over = False  # but a range in it is still open
        self._steps = 0
        self._handles = []
        self._restore = []  # functions that restore what was replaced, last first
        self._active = True
        self._any_optimizer = optimizer is None
        self._watch_modules(model)
        self._watch_record_function()
        if optimizer is not None:
            self._watch_optimizer(optimizer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.detach()

    def detach(self):
        """Puts everything back. Ranges that are open on this thread end."""
        if not self._active:
            return
        self._active = False
        self._end_backward(self._thread.backward)
        while self._thread.calls:
            self._thread.calls.pop()
            self._pop()
        self._end_step()
        for handle in self._handles:
            handle.remove()
        for restore in reversed(self._restore):
            restore()

    # --- forward ---

    def _watch_modules(self, model):
        if model is None:  # all modules
            hooks = self._torch.nn.modules.module
            self._handles.append(hooks.register_module_forward_pre_hook(self._before_forward))
            self._handles.append(self._register_after(hooks.register_module_forward_hook))
            return
        for module in model.modules():
            self._handles.append(module.register_forward_pre_hook(self._before_forward))
            self._handles.append(self._register_after(module.register_forward_hook))

    def _register_after(self, register):
        try:
            return register(self._after_forward, always_call=True)  # also when forward() raises
        except TypeError:  # PyTorch before 2.1
            return register(self._after_forward)

    def _name(self, module):
        name = self._names.get(module)
        if name is None:
            kind = type(module).__name__
            number = self._classes.get(kind, 0)
            self._classes[kind] = number + 1
            name = "{}{}_{}".format(MODULE_PREFIX, kind, number).encode()
            self._names[module] = name
            self._name_path(module, "{}_{}".format(kind, number))
        return name

    def _name_path(self, module, short):
        """A range without length that names the module's place in the model, once."""
        if not self._thread.calls:  # a model, or a part that is called alone
            wrapped = type(module).__name__ in ("DistributedDataParallel", "DataParallel", "DeepSpeedEngine")
            for path, inner in module.named_modules():
                path = [p for p in path.split(".") if p not in WRAPPERS]
                self._paths.setdefault(inner, ".".join(path[1:] if wrapped else path))
        path = self._paths.get(module)
        if path:
            self._push("{}{} {}".format(PATH_PREFIX, short, path).encode())
            self._pop()

    def _before_forward(self, module, inputs):
        if self._compiling() or not self._active:
            return
        if self._step is None and module.training and self._torch.is_grad_enabled():
            self._begin_step()
        self._push(self._name(module))
        self._thread.calls.append(module)

    def _after_forward(self, module, inputs, output):
        if self._compiling() or not self._active:
            return
        calls = self._thread.calls
        if not any(module is call for call in calls):
            return
        while True:  # inner ones are still open if forward() raised
            inner = calls.pop()
            self._pop()
            if inner is module:
                break
        if next(module.children(), None) is None and self._torch.is_grad_enabled():
            self._watch_backward(module, inputs, output)

    # --- backward: from the gradient of a module's output to that of its input ---

    def _watch_backward(self, module, inputs, output):
        outputs = [t for t in _tensors(output) if t.requires_grad]
        if not outputs:
            return

        def begin(_):
            self._begin_backward(module)

        def end(_):
            self._end_backward(module)

        outputs[0].register_hook(begin)
        differentiable = [t for t in _tensors(inputs) if t.requires_grad]
        if differentiable:
            differentiable[0].register_hook(end)
        elif module not in self._parameters_hooked:  # the first layer: it ends with its parameters' gradients
            self._parameters_hooked.add(module)
            for parameter in module.parameters(recurse=False):
                if parameter.requires_grad:
                    self._handles.append(parameter.register_hook(end))

    def _begin_backward(self, module):
        if not self._active:
            return
        self._end_backward(self._thread.backward)
        self._push(self._name(module) + BACKWARD_SUFFIX.encode())
        self._thread.backward = module
        try:  # closes whatever is open when the backward pass ends
            engine = self._torch.autograd.Variable._execution_engine
            engine.queue_callback(lambda: self._end_backward(self._thread.backward))
        except (RuntimeError, AttributeError):
            pass

    def _end_backward(self, module):
        if module is not None and self._thread.backward is module:
            self._thread.backward = None
            self._pop()

    # --- ranges that PyTorch names itself ---

    def _watch_record_function(self):
        record_function = self._torch.autograd.profiler.record_function
        enter, leave = record_function.__enter__, record_function.__exit__
        attachment = self

        def named_enter(self):
            if attachment._active:
                if "post_backward" in str(self.name):  # FSDP's, after the gradients of a unit: it belongs to no module
                    attachment._end_backward(attachment._thread.backward)
                attachment._push(str(self.name).encode())
                attachment._thread.functions += 1
                self._shardscope_thread = threading.get_ident()
            return enter(self)

        def named_leave(self, *error):
            result = leave(self, *error)
            if self.__dict__.pop("_shardscope_thread", None) == threading.get_ident() and attachment._active:
                attachment._pop()
                attachment._thread.functions -= 1
                ends = attachment._any_optimizer and str(self.name).startswith("Optimizer.step#")
                if ends or attachment._step_is_over:
                    attachment._end_step()
            return result

        record_function.__enter__, record_function.__exit__ = named_enter, named_leave

        def restore():
            if record_function.__enter__ is named_enter:
                record_function.__enter__, record_function.__exit__ = enter, leave

        self._restore.append(restore)

    # --- steps ---

    def _begin_step(self):
        thread = self._thread
        if thread.calls or thread.functions or thread.backward is not None:
            return  # inside a range, maybe a step that the program names itself: ranges nest
        self._push("ProfilerStep#{}".format(self._steps).encode())
        self._steps += 1
        self._step, self._step_is_over = threading.get_ident(), False

    def _end_step(self):
        if self._step != threading.get_ident():
            return
        self._step_is_over = True
        if not self._thread.calls and not self._thread.functions:
            self._step, self._step_is_over = None, False
            self._pop()

    def _watch_optimizer(self, optimizer):
        step = optimizer.step

        def stepped(_, *arguments, **named):
            try:
                return step(*arguments, **named)
            finally:
                if self._active:
                    self._end_step()

        # A method, as learning rate schedulers expect, that hides the class's own.
        ours = types.MethodType(stepped, optimizer)
        before = optimizer.__dict__.get("step")
        optimizer.step = ours

        def restore():
            if optimizer.__dict__.get("step") is not ours:
                return  # another wrapper was installed over this one and calls it: from now on it does nothing
            if before is None:
                del optimizer.__dict__["step"]
            else:
                optimizer.step = before

        self._restore.append(restore)


class _Nothing:
    """An attachment when nobody records."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def detach(self):
        pass


def attach(model=None, optimizer=None):
    """Records the modules of `model` (None: all), and training steps, until the context ends.

    A step ends with `optimizer.step()`; without an optimizer, with that of any.
    """
    nvtx = _nvtx()
    return _Nothing() if nvtx is None else Attachment(nvtx, model, optimizer)


USAGE = """usage: python3 -m shardscope_torch SCRIPT [ARGUMENT ...]
       python3 -m shardscope_torch --fake OUT.json [--ranks N] [--steps K] SCRIPT [ARGUMENT ...]"""


def _fake(arguments):
    """The fake mode, which shardscope_fake.py describes."""
    options = {"--fake": None, "--ranks": "2", "--steps": "3"}
    while len(arguments) > 1 and arguments[0] in options:
        options[arguments[0]] = arguments[1]
        arguments = arguments[2:]
    numbers = [options["--ranks"], options["--steps"]]
    if not arguments or not all(n.isdigit() and int(n) > 0 for n in numbers):
        sys.exit(USAGE)
    import shardscope_fake

    shardscope_fake.main(options["--fake"], *map(int, numbers), arguments)


def main():
    if len(sys.argv) < 2:
        sys.exit(USAGE)
    if sys.argv[1] == "--fake":
        return _fake(sys.argv[1:])
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    with attach():
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
