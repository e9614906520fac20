"""horovod.torch; the package says what it stands for."""

import contextlib
import os

import torch.distributed


def init():
    torch.distributed.init_process_group("gloo")


def shutdown():
    torch.distributed.destroy_process_group()


def rank():
    return torch.distributed.get_rank()


def size():
    return torch.distributed.get_world_size()


def local_rank():
    return int(os.environ["LOCAL_RANK"])


def allreduce(tensor, name=None):
    result = tensor.clone()
    torch.distributed.all_reduce(result)
    return result / size()


def broadcast_parameters(parameters, root_rank):
    for value in parameters.values():
        torch.distributed.broadcast(value, root_rank)


def DistributedOptimizer(optimizer, named_parameters):
    """The same object with a class of its own, as Horovod's."""
    assert len(list(named_parameters)) == sum(len(group["params"]) for group in optimizer.param_groups)
    kind = type(optimizer)

    class Distributed(kind):
        reduced, skips = False, False

        def synchronize(self):
            assert not self.reduced, "reduced twice"
            self.reduced = True
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.grad = allreduce(parameter.grad)

        @contextlib.contextmanager
        def skip_synchronize(self):
            assert self.reduced, "nothing has been reduced"
            self.skips = True
            yield
            self.reduced = self.skips = False

        def step(self, closure=None):
            if not self.skips:
                self.synchronize()
                self.reduced = False
            return super().step(closure)

    optimizer.__class__ = type(kind.__name__, (Distributed,), {})
    return optimizer
