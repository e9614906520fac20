#!/usr/bin/env python3
"""PyTorch and shardscope-train read each other's checkpoints; see checkpoints.sh."""

import argparse
import os
import sys
import tempfile

import images
import torch_peer

RANKS, LAYERS, WIDTH, STEPS = 2, 3, 10, 3
JOB = """
[run]
steps = %(steps)d
ranks = %(ranks)d
[model]
type = "mlp"
layers = %(layers)d
width = %(width)d
[parallel]
mode = "%(mode)s"
[optimizer]
type = "adamw"
lr = 0.01
"""
# The filters of a ResNet, which are kept channels last.
IMAGES_JOB = """
[run]
steps = %(steps)d
ranks = %(ranks)d
[model]
name = "resnet18"
width = 4
[data]
type = "images"
path = "%(images)s"
image = 32
classes = 10
batch = 8
[parallel]
mode = "%(mode)s"
[optimizer]
type = "sgd"
momentum = 0.9
lr = 0.01
"""


def saved(folder):
    """{name as in PyTorch: values} of the latest checkpoint in the folder, of any format."""
    values = images.saved(folder)
    return {(path if not state else path + "." + state): v for (path, state), v in values.items()}


class Ours:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder

    def train(self, job, name, *arguments, ranks=RANKS, steps=STEPS, mode="fsdp"):
        """Runs the job and returns the folder in which it has saved."""
        path, to = os.path.join(self.folder, "job.toml"), os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(job % {"ranks": ranks, "steps": steps, "layers": LAYERS, "width": WIDTH,
                              "mode": mode, "images": os.path.join(self.folder, "images.bin")})
        torch_peer.ours(self.tool, path, "--checkpoint.save=" + to, "--overwrite", *arguments)
        return to


def mlp():
    import torch
    layers = []
    for i in range(LAYERS):
        layers += ([torch.nn.ReLU()] if i else []) + [torch.nn.Linear(WIDTH, WIDTH)]
    net = torch.nn.Module()
    net.net = torch.nn.Sequential(*layers)
    net.forward = net.net.forward
    return net


def state_dict(net, optimizer):
    from torch.distributed.checkpoint.state_dict import get_state_dict
    model, state = get_state_dict(net, optimizer)
    return {"model": model, "optim": state}


def whole(state):
    """{name: whole tensor} of the parameters and their optimizer state."""
    tensors = dict(state["model"])
    for path, values in state["optim"]["state"].items():
        tensors.update({path + "." + name: tensor for name, tensor in values.items() if name != "step"})
    return {name: tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor for name, tensor in tensors.items()}


def differences(theirs, ours):
    """The names of tensors that differ in a bit; all, if one has others than the other."""
    import torch
    names = {name for name in theirs if not name.endswith("num_batches_tracked")}
    if names != set(ours):
        return sorted(names ^ set(ours))
    return [name for name in names if not torch.equal(images.like(theirs[name], ours[name]).float(),
                                                      theirs[name].float())]


def reload(rank, case, given, _mesh):
    """A process, under fully_shard if there are two: loads ours into a model and an optimizer, saves what these have then,
    and returns it whole, with the optimizer's steps and rate."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import set_state_dict
    from torch.distributed.fsdp import fully_shard
    source, to = given
    net = mlp()
    if case.ranks > 1:
        for layer in net.net:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer)
        fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.5)
    state = state_dict(net, optimizer)
    dcp.load(state, checkpoint_id=source)
    set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
    state = state_dict(net, optimizer)
    dcp.save(state, checkpoint_id=to)
    tensors = whole(state)
    steps = {int(values["step"]) for values in state["optim"]["state"].values()}
    rate = optimizer.param_groups[0]["lr"]
    return ({name: tensor.detach().clone().numpy() for name, tensor in tensors.items()}, steps, rate) if rank == 0 else None


class Report:
    def __init__(self):
        self.wrong = 0

    def line(self, what, count, different):
        self.wrong += bool(different)
        print("%-72s %4d tensors %s" % (what, count, "differ: %s" % different[:3] if different else "equal"), flush=True)


def check_dcp(ours, report):
    import torch
    import torch.distributed.checkpoint as dcp
    # A width that two ranks do not divide evenly, and pieces that end within a row: FSDP1's flat parameters.
    for layout, ranks in (("fsdp1", 1), ("fsdp1", 3), ("fsdp2", 2), ("lean", 2)):
        folder = ours.train(JOB, "dcp", "--checkpoint.format=dcp", "--fsdp.layout=" + layout, ranks=ranks,
                            mode="fsdp" if ranks > 1 else "none")
        values = saved(folder)
        for processes in (1, RANKS):
            again = os.path.join(ours.folder, "theirs_%d" % processes)
            found = torch_peer.run(reload, torch_peer.Case("mlp", processes),
                                   (os.path.join(folder, "step-%d" % STEPS), again), 29950 + processes, 1)[0]
            tensors, steps, rate = found
            tensors = {name: torch.from_numpy(value) for name, value in tensors.items()}
            different = differences(tensors, values)
            if steps != {STEPS} or rate != 0.01:
                different.append("step %s, rate %s" % (steps, rate))
            report.line("ours of %d ranks, %s, loaded by PyTorch on %d" % (ranks, layout, processes), len(tensors), different)
    # Training continues from PyTorch's copy as from our own.
    expected = saved(ours.train(JOB, "on", "--checkpoint.load=" + folder, "--checkpoint.format=full", steps=STEPS + 2))
    for processes in (1, RANKS):
        continued = saved(ours.train(JOB, "again", "--checkpoint.load=%s/theirs_%d" % (ours.folder, processes),
                                     "--checkpoint.format=full", steps=STEPS + 2))
        report.line("PyTorch's of %d processes, two steps on, next to our own" % processes, len(continued),
                    [name for name in expected if continued.get(name) != expected[name]])
    # bf16.
    narrow = {name: torch.tensor(value).to(torch.bfloat16) for name, value in values.items() if "exp_avg" not in name}
    shapes = {name: parameter.shape for name, parameter in mlp().named_parameters()}
    narrow = {name: tensor.reshape(shapes[name]) for name, tensor in narrow.items()}
    dcp.save({"model": narrow}, checkpoint_id=os.path.join(ours.folder, "bf16"))
    report.line("PyTorch's in bf16, as initial values", len(narrow),
                initial(ours, JOB, os.path.join(ours.folder, "bf16"), narrow))


def initial(ours, job, source, tensors):
    """The names of tensors that a run which starts from `source` does not have. Its rate is 0."""
    values = saved(ours.train(job, "initial", "--checkpoint.initial_load=" + source, "--checkpoint.format=full",
                              "--optimizer.lr=1e-30", "--optimizer.weight_decay=0", steps=1))
    return differences(tensors, {name: values[name] for name in tensors})


def check_filters(ours, report):
    import torch
    import torch.distributed.checkpoint as dcp
    images.write_images(os.path.join(ours.folder, "images.bin"))
    folder = ours.train(IMAGES_JOB, "filters", "--checkpoint.format=dcp", mode="ddp")
    values = saved(folder)
    net = images.network(18, 4)
    state = {"model": net.state_dict()}
    dcp.load(state, checkpoint_id=os.path.join(folder, "step-%d" % STEPS))
    found = {name: tensor for name, tensor in state["model"].items()}
    parameters = {name: value for name, value in values.items() if "momentum" not in name}
    different = differences(found, parameters)
    counted = {int(t) for name, t in found.items() if name.endswith("num_batches_tracked")}
    if counted != {STEPS}:
        different.append("num_batches_tracked %s" % counted)
    report.line("ours of a resnet18, loaded by PyTorch", len(found), different)
    # Contiguous filters, and those in channels_last.
    for form in (torch.contiguous_format, torch.channels_last):
        with torch.no_grad():
            net.load_state_dict({name: torch.randn_like(t) if t.is_floating_point() else t for name, t in found.items()})
        net = net.to(memory_format=form)
        theirs = os.path.join(ours.folder, "net_%s" % form)
        dcp.save({"model": net.state_dict()}, checkpoint_id=theirs)
        kept = {name: tensor for name, tensor in net.named_parameters()}  # the statistics move in the one step
        report.line("PyTorch's of a resnet18, %s" % form, len(kept), initial(ours, IMAGES_JOB, theirs, kept))


def check_safetensors(ours, report):
    try:
        from safetensors.torch import load_file, save_file
    except ImportError:
        print("safetensors: left out, the package is not installed")
        return
    import torch
    folder = ours.train(JOB, "safe", "--checkpoint.format=safetensors")
    step = os.path.join(folder, "step-%d" % STEPS)
    found = load_file(os.path.join(step, "model.safetensors")) | load_file(os.path.join(step, "optimizer.safetensors"))
    report.line("ours in safetensors, loaded by its package", len(found), differences(found, saved(folder)))
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        tensors = {name: torch.randn_like(parameter).to(dtype) for name, parameter in mlp().named_parameters()}
        path = os.path.join(ours.folder, "theirs.safetensors")
        save_file(tensors, path)
        report.line("safetensors of its package, %s" % dtype, len(tensors), initial(ours, JOB, path, tensors))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    arguments = parser.parse_args()
    import torch
    torch.set_num_threads(1)
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(arguments.tool, folder)
        check_dcp(ours, report)
        check_filters(ours, report)
        check_safetensors(ours, report)
    print("PyTorch %s" % torch.__version__)
    sys.exit(1 if report.wrong else 0)


if __name__ == "__main__":
    main()
