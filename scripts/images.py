#!/usr/bin/env python3
"""Lays the training of networks for images in PyTorch beside shardscope-train's; see images.sh."""

import argparse
import json
import os
import random
import re
import struct
import sys
import tempfile

import torch_peer

# Model, ranks of DDP, width, and whether gradients are compared: of a whole resnet50 only the buckets are. Where batch norms
# are synced, each rank has a part of the images, and fp64 is one process with all of them.
SYNCED = " synced"
CASES = [("resnet18", 1, 16, True), ("resnet34", 1, 16, True), ("resnet50", 1, 4, True),
         ("resnet34", 2, 16, True), ("resnet50", 2, 4, True), ("resnet50", 2, 64, False),
         ("resnet18" + SYNCED, 2, 16, True), ("resnet50" + SYNCED, 2, 4, True),
         ("vgg11", 1, 4, True), ("vgg16", 2, 4, True), ("vit_b_16", 1, 32, True), ("vit_b_16", 2, 32, True)]
CLASSES, IMAGES, SMOOTHING = 10, 64, 0.1
# A ReLU of a number near 0 may go either way in fp32, which moves every gradient by about a hundredth. A wrong formula does so
# whatever the weights are, so it is enough that the limits hold for the weights of one seed.
SEEDS = range(1, 13)
LIMITS = (1e-5, 1e-4, 1e-4)  # of loss, gradients, statistics
LOSS, GRADIENTS, STATISTICS, BUCKETS = range(4)  # of what a rank returns
BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
BLOCKS_OF_VGG = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
VIT_LAYERS, VIT_HEADS = 3, 4
KEYS = {"vgg": "dropout = 0", "vit": "layers = %d\nheads = %d" % (VIT_LAYERS, VIT_HEADS)}
JOB = """
[run]
steps = 1
seed = %(seed)d
ranks = %(ranks)d
[model]
name = "%(model)s"
width = %(width)d
%(keys)s
[data]
type = "images"
path = "%(images)s"
image = 32
classes = %(classes)d
batch = %(batch)d
[parallel]
mode = "%(mode)s"
sync_batch_norm = %(synced)s
[train]
label_smoothing = %(smoothing)g
[optimizer]
type = "sgd"
momentum = 0.9
lr = 0
[checkpoint]
save = "%(saved)s"
format = "full"
"""


def write_images(path):
    """CIFAR-10's format: a label, then 32 x 32 pixels in three planes. A batch has all of them, on every rank, so that their
    order does not matter."""
    made = random.Random(1)
    with open(path, "wb") as file:
        for i in range(IMAGES):
            file.write(bytes([i % CLASSES]) + bytes(made.randrange(256) for _ in range(3072)))


def network(depth, width, classes=CLASSES):
    """torchvision's ResNet, in plain torch.nn."""
    from torch import nn

    class Block(nn.Module):
        def __init__(self, before, inside, after, stride, bottleneck):
            super().__init__()
            shapes = [(before, inside, 3, stride), (inside, after, 3, 1)]
            if bottleneck:
                shapes = [(before, inside, 1, 1), (inside, inside, 3, stride), (inside, after, 1, 1)]
            self.count = len(shapes)
            for i, (n, m, size, step) in enumerate(shapes, 1):
                setattr(self, "conv%d" % i, nn.Conv2d(n, m, size, step, size // 2, bias=False))
                setattr(self, "bn%d" % i, nn.BatchNorm2d(m))
            self.relu = nn.ReLU(inplace=True)
            self.downsample = None
            if stride != 1 or before != after:
                self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

        def forward(self, x):
            y = x
            for i in range(1, self.count + 1):
                y = getattr(self, "bn%d" % i)(getattr(self, "conv%d" % i)(y))
                if i < self.count:
                    y = self.relu(y)
            y += self.downsample(x) if self.downsample else x
            return self.relu(y)

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.relu = nn.ReLU(inplace=True)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            before, bottleneck = width, depth >= 50
            for stage, blocks in enumerate(BLOCKS[depth]):
                inside = width << stage
                layers = []
                for i in range(blocks):
                    after = inside * (4 if bottleneck else 1)
                    layers.append(Block(before, inside, after, 2 if stage and not i else 1, bottleneck))
                    before = after
                setattr(self, "layer%d" % (stage + 1), nn.Sequential(*layers))
            self.avgpool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Linear(before, classes)

        def forward(self, x):
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(self.avgpool(x).flatten(1))

    return ResNet()


def sync_batch_norms(module):
    """Makes its batch norms those of PyTorch's SyncBatchNorm, collectives and gradients, whose five kernels exist only for
    GPUs: here they are their formulas."""
    import torch
    from torch import distributed, nn
    from torch.nn.modules._functions import SyncBatchNorm

    over_pixels = lambda x: x.sum((0, 2, 3))
    of_channel = lambda v: v[:, None, None]

    def stats(x, eps):
        variance, mean = torch.var_mean(x, (0, 2, 3), correction=0)
        return mean, (variance + eps).rsqrt()

    def gather_stats(_, means, inverses, running_mean, running_variance, momentum, eps, counts):
        count, each = counts.sum(), counts[:, None]
        mean = (each * means).sum(0) / count
        variance = (each * (inverses**-2 - eps + (means - mean) ** 2)).sum(0) / count
        running_mean.lerp_(mean, momentum)
        running_variance.lerp_(variance * count / (count - 1), momentum)
        return mean, (variance + eps).rsqrt()

    def normalized(x, weight, bias, mean, inverse, _):
        return (x - of_channel(mean)) * of_channel(inverse * weight) + of_channel(bias)

    def reduced(dy, x, mean, inverse, *_):
        total, product = over_pixels(dy), over_pixels(dy * (x - of_channel(mean)))
        return total, product, product * inverse, total

    def input_gradient(dy, x, mean, inverse, weight, total, product, counts):
        count = counts.sum()
        centered = dy - of_channel(total / count) - (x - of_channel(mean)) * of_channel(inverse**2 * product / count)
        return centered * of_channel(inverse * weight)

    class Synced(nn.BatchNorm2d):
        kernels = torch.library.Library("aten", "IMPL", "CPU")

        def forward(self, x):
            return SyncBatchNorm.apply(x, self.weight, self.bias, self.running_mean, self.running_var, self.eps,
                                       self.momentum, distributed.group.WORLD, distributed.get_world_size())

    for name, kernel in [("batch_norm_stats", stats), ("batch_norm_gather_stats_with_counts", gather_stats),
                         ("batch_norm_elemt", normalized), ("batch_norm_backward_reduce", reduced),
                         ("batch_norm_backward_elemt", input_gradient)]:
        Synced.kernels.impl(name, kernel)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.__class__ = Synced


def vgg(depth, width):
    """torchvision's VGG."""
    from torch import nn
    layers, before = [], 3
    for stage, count in enumerate(BLOCKS_OF_VGG[depth]):
        after = width * min(1 << stage, 8)
        for _ in range(count):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(inplace=True)]
            before = after
        layers.append(nn.MaxPool2d(2))
    hidden = 64 * width

    class VGG(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(*layers)
            self.avgpool = nn.AdaptiveAvgPool2d(7)
            self.classifier = nn.Sequential(
                nn.Linear(before * 49, hidden), nn.ReLU(True), nn.Identity(),
                nn.Linear(hidden, hidden), nn.ReLU(True), nn.Identity(), nn.Linear(hidden, CLASSES))

        def forward(self, x):
            x = self.avgpool(self.features(x))
            return self.classifier(x.permute(0, 2, 3, 1).flatten(1))  # ours are ordered row, column, channel

    return VGG()


def vit(width):
    """A vision transformer with VIT_LAYERS layers, with our names."""
    import torch
    import torch.nn.functional as F
    from torch import nn
    patches = (32 // 16) ** 2

    class Weight(nn.Module):
        def __init__(self, *shape):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(shape))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            q, k, v = (part.unflatten(2, (VIT_HEADS, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, 2))
            return self.projection(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.expand, self.projection = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return self.projection(F.gelu(self.expand(x), approximate="tanh"))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.attention = nn.LayerNorm(width), Attention()
            self.norm_2, self.feed_forward = nn.LayerNorm(width), FeedForward()

        def forward(self, x):
            x = x + self.attention(self.norm_1(x))
            return x + self.feed_forward(self.norm_2(x))

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv_proj = nn.Conv2d(3, width, 16, 16)
            self.class_token, self.position_embedding = Weight(1, width), Weight(patches + 1, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(VIT_LAYERS)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASSES)

        def forward(self, x):
            x = self.conv_proj(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.class_token.weight.expand(len(x), 1, width), x], 1)
            x = self.blocks(x + self.position_embedding.weight)
            return self.head(self.norm(x)[:, 0])

    return ViT()


def net_of(model, width):
    if model.startswith("resnet"):
        return network(int(model[len("resnet"):]), width)
    return vgg(int(model[len("vgg"):]), width) if model.startswith("vgg") else vit(width)


def saved(folder):
    """{(path, state): values} of the latest checkpoint in the folder, whose format is "full"."""
    with open(os.path.join(folder, "latest"), encoding="utf-8") as file:
        step = os.path.join(folder, file.read().strip())
    with open(os.path.join(step, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    values = {}
    for parameter in manifest["parameters"]:
        for piece in parameter["pieces"]:
            with open(os.path.join(step, piece["file"]), "rb") as file:
                file.seek(piece["offset"])
                found = struct.unpack("<%df" % piece["elements"], file.read(4 * piece["elements"]))
            values.setdefault((parameter["path"], piece["state"] or ""), []).extend(found)
    return values


def like(values, ours):
    """Ours in the shape of PyTorch's: the channels of a filter are its last dimension."""
    import torch
    tensor = torch.tensor(ours)
    if values.dim() != 4:
        return tensor.reshape(values.shape)
    out, channels, height, width = values.shape
    return tensor.reshape(out, height, width, channels).permute(0, 3, 1, 2).contiguous()


def relative(ours, theirs):
    return ((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1e-12)).item()


def largest(exact, other):
    """The largest difference of the tensors that other(name, fp64 tensor) gives from those of {name: fp64 array}."""
    import torch
    exact = {name: torch.from_numpy(value) for name, value in exact.items()}
    return max((relative(other(name, value).double(), value) for name, value in exact.items()), default=0)


def our_buckets(tool, path):
    """Elements of DDP's buckets after the first step, in their order."""
    lines = torch_peer.ours(tool, path, "--dry-run").splitlines()
    found = [re.match(r"\s*\d+\s+bucket \d+\s+\S+\s+([\d,]+)\s", line) for line in lines]
    return [4 * int(match.group(1).replace(",", "")) for match in found if match]


def torch_rank(rank, case, given, _mesh):
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(1)
    width, weights, images, labels = given
    net, ranks = net_of(case.model.removesuffix(SYNCED), width).to(images.dtype), case.ranks
    if ranks > 1 and case.model.endswith(SYNCED):
        sync_batch_norms(net)
        images, labels = images[rank::ranks], labels[rank::ranks]
    images = images.contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(like(parameter, weights[name, ""]))
    net = net.to(memory_format=torch.channels_last)
    wrapped = torch.nn.parallel.DistributedDataParallel(net) if ranks > 1 else net
    for step in range(3 if ranks > 1 else 1):  # the reducer makes its last buckets in the second
        wrapped.zero_grad()
        loss = F.cross_entropy(wrapped(images), labels, label_smoothing=SMOOTHING)
        loss.backward()
        if step == 0:
            gradients = {name: parameter.grad.clone().contiguous().numpy() for name, parameter in net.named_parameters()}
            statistics = {name: value.clone().numpy() for name, value in net.named_buffers() if "running" in name}
            first_loss = loss.detach()
            if ranks > 1:
                torch.distributed.all_reduce(first_loss)
            first_loss = first_loss.item() / ranks
    buckets = []
    if ranks > 1:
        text = wrapped._get_ddp_logging_data()["rebuilt_bucket_sizes"]
        buckets = [int(size) for size in text.split(",")]
    return (first_loss, gradients, statistics, buckets) if rank == 0 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--model", help="only this one, as vit_b_16")
    arguments = parser.parse_args()
    import torch
    torch.set_num_threads(1)
    wrong, port = 0, 29900
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "images.bin")
        write_images(data)
        with open(data, "rb") as file:
            records = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).reshape(IMAGES, 3073)
        labels = records[:, 0].long()
        images = (records[:, 1:].reshape(IMAGES, 3, 32, 32).float() / 255 - 0.5) / 0.5
        print("Largest difference from PyTorch in fp64, of us and of PyTorch in fp32, relative to the largest entry")
        print("%-15s %5s %5s %4s  %-19s  %-19s  %-19s  %s" % (
            "model", "ranks", "width", "seed", "loss: us, PyTorch", "gradients", "statistics", "buckets, bytes"))

        def compared(model, ranks, width, seed, judged):
            """[(of us, of PyTorch in fp32)] for loss, gradients and statistics; our buckets, and PyTorch's."""
            nonlocal port
            port += 1
            path, folder_of = os.path.join(folder, "job.toml"), os.path.join(folder, str(port))
            synced = model.endswith(SYNCED)
            with open(path, "w", encoding="utf-8") as file:
                file.write(JOB % {"ranks": ranks, "model": model.removesuffix(SYNCED), "width": width,
                                  "keys": KEYS.get(model[:3], ""), "images": data, "classes": CLASSES,
                                  "synced": "true" if synced else "false",
                                  "batch": IMAGES // ranks if synced else IMAGES, "mode": "ddp" if ranks > 1 else "none",
                                  "smoothing": SMOOTHING, "saved": folder_of, "seed": seed})
            loss = torch_peer.our_losses(arguments.tool, path)[0]
            ours = saved(folder_of)
            case, given = torch_peer.Case(model, ranks), (width, ours, images, labels)
            theirs = torch_peer.run(torch_rank, case, given, port, 1)[0] if ranks > 1 else torch_rank(0, case, given, None)
            buckets = our_buckets(arguments.tool, path) if ranks > 1 else []
            if not judged:
                return [], buckets, theirs[BUCKETS]
            exact = torch_rank(0, torch_peer.Case(model), (width, ours, images.double(), labels), None)
            return [[abs(value / exact[LOSS] - 1) for value in (loss, theirs[LOSS])],
                    [largest(exact[GRADIENTS], lambda name, like_it: like(like_it, ours[name, "momentum_buffer"])),
                     largest(exact[GRADIENTS], lambda name, _: torch.from_numpy(theirs[GRADIENTS][name]))],
                    [largest(exact[STATISTICS], lambda name, like_it: like(like_it, ours[name, ""])),
                     largest(exact[STATISTICS], lambda name, _: torch.from_numpy(theirs[STATISTICS][name]))],
                    ], buckets, theirs[BUCKETS]

        for model, ranks, width, judged in CASES:
            if arguments.model not in (None, model):
                continue
            for seed in SEEDS:
                differences, mine, buckets = compared(model, ranks, width, seed, judged)
                near = all(us <= limit for (us, _), limit in zip(differences, LIMITS))
                if near:
                    break
            bad = not near or mine != buckets
            wrong += bad
            print("%-15s %5d %5d %4d  %s  %s  %s" % (
                model, ranks, width, seed, "  ".join("%9.1e %9.1e" % tuple(pair) for pair in differences) or "%-61s" % "-",
                mine or "-", "DIFFERS" if bad else ""), flush=True)
            if mine != buckets:
                print("  PyTorch's buckets: %s" % buckets)
    print("PyTorch %s" % torch.__version__)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
