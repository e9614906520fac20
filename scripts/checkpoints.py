#!/usr/bin/env python3
"""PyTorch and shardscope-train read each other's checkpoints; see checkpoints.sh."""

import argparse
import json
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
# Networks whose filters are kept channels last.
IMAGES_JOB = """
[run]
steps = %(steps)d
ranks = %(ranks)d
[model]
name = "MODEL"
width = WIDTH
KEYS
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
# A language model of transformers' size; every window of the text is the same.
LANGUAGE_JOB = """
[run]
steps = %(steps)d
ranks = %(ranks)d
[model]
KEYS
layers = 2
heads = 4
width = 48
context = 16
[data]
type = "text"
path = "TEXT"
batch = 2
[parallel]
mode = "%(mode)s"
[optimizer]
type = "adamw"
lr = 0.01
"""
# What transformers has and our BERT lacks: zeros in ours. And what shares another tensor's numbers.
LACKING = {"bert.embeddings.token_type_embeddings.weight", "cls.predictions.bias"}
TIED = {"lm_head.weight", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}


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
    return [name for name in names if not torch.equal(like(name, theirs[name], ours[name]).float(), theirs[name].float())]


def like(name, theirs, ours):
    """Ours in PyTorch's order: images.py's, and that of the inputs of a VGG's first Linear."""
    import torch
    if not name.startswith("classifier.0.weight"):
        return images.like(theirs, ours)
    pixels = 7 * 7
    tensor = torch.tensor(ours).reshape(len(theirs), pixels, theirs.shape[1] // pixels)
    return tensor.transpose(1, 2).reshape(theirs.shape)


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


def momentum_of(net):
    """The state dict of SGD's momentum, of zeros, under the names that get_optimizer_state_dict() has."""
    import torch
    return {"state": {name: {"momentum_buffer": torch.zeros_like(parameter)} for name, parameter in net.named_parameters()}}


def check_filters(ours, report, name, width, keys):
    """A model with filters: its parameters, statistics and momentum in PyTorch's order."""
    import torch
    import torch.distributed.checkpoint as dcp
    job = IMAGES_JOB.replace("MODEL", name).replace("WIDTH", str(width)).replace("KEYS", keys)
    expected = saved(ours.train(job, "full", "--checkpoint.format=full", mode="ddp"))
    net = plain_net(name, width)

    folder = ours.train(job, "filters", "--checkpoint.format=dcp", mode="ddp")
    state = {"model": net.state_dict(), "optim": momentum_of(net)}
    dcp.load(state, checkpoint_id=os.path.join(folder, "step-%d" % STEPS))
    found = whole(state)
    different = differences(found, expected)
    counted = {int(t) for path, t in found.items() if path.endswith("num_batches_tracked")}
    if counted - {STEPS}:
        different.append("num_batches_tracked %s" % counted)
    report.line("ours of a %s, loaded by PyTorch" % name, len(found), different)
    if not different:
        report.line("logits of PyTorch's %s with these, next to our order" % name, 1, other_logits(name, width, net, expected))

    safetensors = safetensors_package()
    if safetensors:
        folder = os.path.join(ours.train(job, "filters", "--checkpoint.format=safetensors", mode="ddp"), "step-%d" % STEPS)
        found = safetensors.load_file(os.path.join(folder, "model.safetensors"))
        found |= safetensors.load_file(os.path.join(folder, "optimizer.safetensors"))
        report.line("ours of a %s in safetensors" % name, len(found), differences(found, expected))

    # Theirs: contiguous filters, and those in channels_last.
    for form in (torch.contiguous_format, torch.channels_last):
        net = plain_net(name, width)
        with torch.no_grad():
            for tensor in net.parameters():
                tensor.copy_(torch.randn_like(tensor))
        net = net.to(memory_format=form)
        theirs = os.path.join(ours.folder, "net_%s_%s" % (name, form))
        dcp.save({"model": net.state_dict()}, checkpoint_id=theirs)
        kept = {path: tensor.detach() for path, tensor in net.named_parameters()}  # the statistics move in the one step
        report.line("PyTorch's of a %s, %s" % (name, form), len(kept), initial(ours, job, theirs, kept))
    if safetensors:
        path = os.path.join(ours.folder, "theirs.safetensors")
        safetensors.save_file({n: tensor.contiguous() for n, tensor in net.state_dict().items()}, path)
        report.line("safetensors of a %s" % name, len(kept), initial(ours, job, path, kept))


def plain_net(name, width):
    """The network with PyTorch's order of the inputs of a VGG's first Linear."""
    net = images.net_of(name, width)
    if name.startswith("vgg"):
        net.forward = lambda x: net.classifier(net.avgpool(net.features(x)).flatten(1))
    return net


def other_logits(name, width, net, expected):
    """["logits"] if the network does not compute those of images.py's, which has our order of inputs and our weights."""
    import torch
    like_ours = images.net_of(name, width)
    with torch.no_grad():
        for path, tensor in like_ours.state_dict().items():
            if path in expected:
                tensor.copy_(images.like(tensor, expected[path]))
        x = torch.randn(4, 3, 32, 32)
        a, b = net.eval()(x), like_ours.eval()(x)
    return [] if images.relative(a, b) < 1e-5 else ["logits"]


def safetensors_package():
    try:
        import safetensors.torch
        return safetensors.torch
    except ImportError:
        return None


def check_safetensors(ours, report):
    safetensors = safetensors_package()
    if not safetensors:
        print("safetensors: left out, the package is not installed")
        return
    import torch
    load_file, save_file = safetensors.load_file, safetensors.save_file
    folder = ours.train(JOB, "safe", "--checkpoint.format=safetensors")
    step = os.path.join(folder, "step-%d" % STEPS)
    found = load_file(os.path.join(step, "model.safetensors")) | load_file(os.path.join(step, "optimizer.safetensors"))
    report.line("ours in safetensors, loaded by its package", len(found), differences(found, saved(folder)))
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        tensors = {name: torch.randn_like(parameter).to(dtype) for name, parameter in mlp().named_parameters()}
        path = os.path.join(ours.folder, "theirs.safetensors")
        save_file(tensors, path)
        report.line("safetensors of its package, %s" % dtype, len(tensors), initial(ours, JOB, path, tensors))


def transformers_package():
    try:
        import transformers
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        return transformers
    except ImportError:
        return None


def hugging_face_models(transformers):
    """{type: (our keys, a small model with random weights)}, with the constants of our norms."""
    import torch
    torch.manual_seed(1)
    small = {"vocab_size": 256, "bos_token_id": 0, "eos_token_id": 0}
    return {
        "gpt": ('type = "gpt"\ntied_embeddings = true', transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_layer=2, n_head=4, n_embd=48, n_positions=16, **small))),
        "llama": ('type = "llama"\nkv_heads = 2', transformers.LlamaForCausalLM(transformers.LlamaConfig(
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=48, intermediate_size=128,
            max_position_embeddings=16, rms_norm_eps=1e-5, **small))),
        "bert": ('type = "bert"\ntied_embeddings = true', transformers.BertForMaskedLM(transformers.BertConfig(
            num_hidden_layers=2, num_attention_heads=4, hidden_size=48, intermediate_size=192, max_position_embeddings=16,
            vocab_size=257)))}


def check_hugging_face(ours, report):
    """transformers' models as initial values, and ours under their names."""
    import torch
    transformers, safetensors = transformers_package(), safetensors_package()
    if not transformers or not safetensors:
        print("Hugging Face's names: left out, the package %s is not installed" %
              ("transformers" if safetensors else "safetensors"))
        return
    text = os.path.join(ours.folder, "text")
    with open(text, "w", encoding="utf-8") as file:
        file.write(torch_peer.WINDOW * 200)
    for name, (keys, model) in hugging_face_models(transformers).items():
        job = LANGUAGE_JOB.replace("KEYS", keys).replace("TEXT", text)
        with torch.no_grad():  # so that no tensor is all zeros or ones
            for tensor in model.parameters():
                tensor.add_(0.1 * torch.randn_like(tensor))
        theirs = os.path.join(ours.folder, "hf_" + name)
        model.save_pretrained(theirs)
        tensors = safetensors.load_file(os.path.join(theirs, "model.safetensors"))
        lacking = {n for n in tensors if n in LACKING}
        named = ["--checkpoint.format=safetensors", "--checkpoint.names=huggingface"]
        for ranks in (1, RANKS):
            folder = ours.train(job, "named", "--checkpoint.initial_load=" + theirs, "--optimizer.lr=1e-30", *named,
                                "--optimizer.weight_decay=0", ranks=ranks, steps=1, mode="fsdp" if ranks > 1 else "none")
            found = safetensors.load_file(os.path.join(folder, "step-1", "model.safetensors"))
            different = sorted(found.keys() ^ tensors.keys())
            different += [n for n in tensors if n in found and not torch.equal(
                found[n], torch.zeros_like(tensors[n]) if n in lacking else tensors[n])]
            report.line("%s of transformers, read and written by %d ranks" % (name, ranks), len(tensors), different)
        # And trained by us: its class finds every parameter, and has our loss.
        folder = os.path.join(ours.train(job, "named", "--checkpoint.initial_load=" + theirs, *named, ranks=1, mode="none"),
                              "step-%d" % STEPS)
        missing, unexpected = model.load_state_dict(safetensors.load_file(os.path.join(folder, "model.safetensors")),
                                                    strict=False)
        model.tie_weights()
        different = list(unexpected) + [n for n in missing if n not in TIED]
        report.line("ours of a %s, loaded by transformers" % name, len(tensors), different)
        if name == "bert":
            continue  # which tokens are masked is drawn
        path = os.path.join(ours.folder, "job.toml")
        run = torch_peer.ours(ours.tool, path, "--checkpoint.load=" + folder, "--run.steps=%d" % (STEPS + 1), "--format=json")
        ours_loss = json.loads(run)["losses"][0]
        window = torch.tensor([list(torch_peer.WINDOW.encode())])
        with torch.no_grad():
            logits = model.eval()(window).logits[0]
        loss = torch.nn.functional.cross_entropy(logits, window[0].roll(-1)).item()
        report.line("loss of its next step, %.7f here and %.7f there" % (ours_loss, loss), 1,
                    [] if abs(ours_loss - loss) < 1e-5 * loss else ["loss"])


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
        images.write_images(os.path.join(folder, "images.bin"))
        check_filters(ours, report, "resnet18", 4, "")
        check_filters(ours, report, "vgg11", 4, "dropout = 0")
        check_filters(ours, report, "vit_b_16", 32, images.KEYS["vit"])
        check_safetensors(ours, report)
        check_hugging_face(ours, report)
    print("PyTorch %s" % torch.__version__)
    sys.exit(1 if report.wrong else 0)


if __name__ == "__main__":
    main()
