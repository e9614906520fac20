#!/usr/bin/env python3
"""Lays PyTorch's context parallelism beside shardscope-train's; see context_parallel.sh."""

import argparse
import os
import re
import sys
import tempfile

import torch_peer
from torch_peer import Case

MESHES = [("gpt", 1, 2), ("gpt", 1, 4), ("gpt", 2, 2), ("llama", 1, 2), ("llama", 1, 4), ("llama", 2, 2)]
# Our exchange, and PyTorch's form: a method of set_rotate_method, or what its flex attention does.
FORMS = [("ring", "alltoall"), ("allgather", "allgather"), ("allgather", "flex")]


def use_kernels_of_cpu():
    """context_parallel knows the attention kernels of GPUs only: gives its ring those of the CPU."""
    import torch
    from torch.distributed.tensor import DTensor, Shard
    from torch.distributed.tensor.experimental._context_parallel import _attention as theirs

    forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default

    def whole(results, mesh):
        return tuple(DTensor.from_local(result, mesh, [Shard(2)], run_check=False) for result in results)

    def handle_forward(_, tensors, __):
        q, k, v, dropout, causal = tensors
        local = (tensor._local_tensor for tensor in (q, k, v))
        mesh = q.device_mesh
        return whole(theirs._templated_ring_attention(mesh.get_group(), 2, forward, *local, is_causal=causal,
                                                      dropout_p=dropout), mesh)

    def handle_backward(_, tensors, __):
        *tensors, dropout, causal = tensors
        grad_out, q, k, v, out, logsumexp = (tensor._local_tensor for tensor in tensors)
        mesh = tensors[0].device_mesh
        return whole(theirs._templated_ring_attention_backward(
            mesh.get_group(), 2, backward, grad_out=grad_out, grad_out_name="grad_out", query=q, key=k, value=v,
            out=out, logsumexp=logsumexp, is_causal=causal, dropout_p=dropout), mesh)

    theirs.custom_ops.update({forward: handle_forward, backward: handle_backward})


def attention_of_flex(places, mesh, note):
    """What PyTorch's flex attention does in a context group, without its kernel, which has to be compiled: its operator
    that gathers keys and values, and a mask. note(kind, bytes) is told the collectives within that operator, which a
    Recorder does not see."""
    import torch.nn.functional as F
    from torch.distributed import _functional_collectives as collectives
    from torch.distributed.tensor.experimental._context_parallel import _HeadTailLoadBalancer, flex_cp_allgather

    plain = F.scaled_dot_product_attention  # context_parallel replaces it
    order = _HeadTailLoadBalancer(torch_peer.CONTEXT, mesh.size(), "cpu")._generate_indices()[0]

    def noted(name, kind):
        original = getattr(collectives, name)

        def wrapped(tensor, *args, **kwargs):
            result = original(tensor, *args, **kwargs)
            note(kind, max(t.numel() * t.element_size() for t in (tensor, result)))
            return result
        setattr(collectives, name, wrapped)

    noted("all_gather_single", "all_gather")
    noted("reduce_scatter_single", "reduce_scatter")

    def attention(q, k, v):
        k, v = flex_cp_allgather(k, v, 2, mesh.get_group().group_name)
        return plain(q, k, v, attn_mask=places[:, None] >= order[None], enable_gqa=True)
    return attention


def torch_rank(rank, case, weights, mesh):
    import torch.nn.functional as F
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import set_rotate_method

    weights, form = weights
    seen, losses, gradients = [], [], {}
    recorder = torch_peer.Recorder(seen, "context")
    chosen = [torch_peer.causal_attention]
    net = torch_peer.build(case, weights, attention=lambda *qkv: chosen[0](*qkv))
    torch_peer.divide(case, net, mesh)
    if form == "flex":
        chosen[0] = attention_of_flex(net.places, mesh["context"],
                                      lambda *what: seen.append(("context", *what)) if recorder.on else None)
    else:
        set_rotate_method(form)
        use_kernels_of_cpu()
    for step in range(torch_peer.STEPS):
        tokens, targets = torch_peer.samples(case)
        net.zero_grad()
        with context_parallel(mesh["context"], buffers=[tokens, targets, net.places], buffer_seq_dims=[1, 1, 0]):
            recorder.on = step == torch_peer.STEPS - 1
            with recorder.mode:
                loss = F.cross_entropy(net(tokens).flatten(0, 1), targets.flatten())
                loss.backward()
            recorder.on = False
        if step == 0:
            gradients = {name: value.grad.full_tensor().numpy() for name, value in net.named_parameters()}
        torch_peer.descend(net.parameters())
        losses.append(loss.item())
    return losses, seen, gradients


def in_their_form(ours, form, ranks):
    """Our collectives with those of an attention as PyTorch has them in this form."""
    for group, kind, size in ours:
        if group == "context" and form == "allgather" and kind == "reduce_scatter":
            yield group, "all_gather", size
            yield from [(group, "send", size // ranks)] * ranks
        elif group == "context" and form == "flex":
            yield from [(group, kind, size // 2)] * 2
        else:
            yield group, kind, size


def gradients_differ(tool, folder, case, start, theirs):
    """The largest distance of a gradient from PyTorch's, by its norm. Ours is that of a step whose rate is so large
    that rounding the weights does not matter."""
    import numpy

    saved, rate, squares = os.path.join(folder, "moved"), 1000, {}
    torch_peer.ours(tool, torch_peer.job(folder, case, steps=1, rate=rate), "--checkpoint.save=" + saved,
                    "--checkpoint.format=full", "--overwrite")
    moved = torch_peer.saved_weights(saved)
    for name, gradient in theirs.items():
        before, after = (torch_peer.ours_of(case, weights, name).double().numpy() for weights in (start, moved))
        distance = numpy.linalg.norm(((before - after) / rate).reshape(gradient.shape) - gradient)
        joined = squares.setdefault(re.sub(r"\.[qkv]\.", ".qkv.", name), [0, 0])  # one tensor of ours
        joined[0] += distance**2
        joined[1] += numpy.linalg.norm(gradient) ** 2
    return max(distance / norm for distance, norm in squares.values()) ** 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--show", action="store_true", help="print the collectives that differ")
    arguments = parser.parse_args()
    import torch

    wrong, port = 0, 29800
    with tempfile.TemporaryDirectory() as folder:
        print("%-6s %4s %7s  %-9s  %-14s  %11s  %9s  %5s  %12s  %16s" % (
            "model", "data", "context", "exchange", "PyTorch's form", "collectives", "PyTorch's", "equal",
            "loss differs", "gradients differ"))
        weights = {model: torch_peer.our_weights(arguments.tool, folder, model) for model in ("gpt", "llama")}
        for model, data, ranks in MESHES:
            for exchange, form in FORMS:
                port += 1
                case = Case(model, data, context_ranks=ranks, exchange=exchange, batch=4 // data)
                path = torch_peer.job(folder, case)
                losses = torch_peer.our_losses(arguments.tool, path)
                collectives = [found for found in map(torch_peer.our_collective,
                                                      torch_peer.our_steady_steps(arguments.tool, path)[0]) if found]
                results = torch_peer.run(torch_rank, case, (weights[model], form), port, case.ranks)
                _, theirs, gradients = results[0]
                their_losses = [sum(values) / len(values) for values in zip(*(found[0] for found in results.values()))]
                expected = list(in_their_form(collectives, form, ranks))
                equal = sum(a == b for a, b in zip(expected, theirs))
                loss_difference = max(abs(a / b - 1) for a, b in zip(losses, their_losses))
                difference = gradients_differ(arguments.tool, folder, case, weights[model], gradients)
                bad = max(loss_difference, difference) > 1e-5 or not equal == len(theirs) == len(expected)
                wrong += bad
                print("%-6s %4d %7d  %-9s  %-14s  %11d  %9d  %5d  %12.1e  %16.1e  %s" % (
                    model, data, ranks, exchange, form, len(collectives), len(theirs), equal, loss_difference,
                    difference, "DIFFERS" if bad else ""), flush=True)
                if bad and arguments.show:
                    torch_peer.show_difference(losses, their_losses, expected, theirs)
    print("PyTorch %s, gloo" % torch.__version__)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
