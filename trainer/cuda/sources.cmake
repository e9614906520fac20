# CUDA sources of the trainer: nvcc compiles them for the module, and a C++ compiler for the tests that
# simulate CUDA on the CPU (tests/trainer/played_cuda).
set(SHARDSCOPE_CUDA_KERNELS
    activation.cu attention.cu attention_plain.cu batch_norm.cu cached_attention.cu compression.cu context_attention.cu convolution.cu copies.cu device.cu
    dropout.cu elementwise.cu embedding.cu experts.cu flash_backward.cu flash_forward.cu gemm.cu
    image_kernels.cu initialize.cu int8_linear.cu kernels.cu kv_head.cu local_kernels.cu loss.cu norm_parameters.cu norms.cu optimizer.cu
    pool.cu reductions.cu rotary.cu row_sums.cu vocabulary.cu)
# Sources without kernels, compiled by a C++ compiler in both cases.
set(SHARDSCOPE_CUDA_DEVICE
    cuda_device.cpp gpus.cpp groups.cpp local_group.cpp nccl_group.cpp nccl_library.cpp nccl_start.cpp
    nccl_watchdog.cpp progress.cpp roll_call.cpp stream.cpp)
# The sources that call CUDA libraries, which the tests replace.
set(SHARDSCOPE_CUDA_LIBRARIES cublaslt.cpp)
# Sources whose results match the CPU bit for bit: nothing is contracted to FMA.
set(SHARDSCOPE_CUDA_EXACT dropout.cu initialize.cu optimizer.cu pool.cu rotary.cu)
