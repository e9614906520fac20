"""A stand-in for Horovod: what samples/pytorch/train_horovod.py calls, over PyTorch's process group and torchrun's
environment. As in Horovod, step() reduces unless synchronize() has been called within skip_synchronize().
"""
