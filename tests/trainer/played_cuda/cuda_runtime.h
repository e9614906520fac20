// Replaces <cuda_runtime.h>, so that the trainer's CUDA sources compile with a C++ compiler and run on the
// CPU: the language is in grid.h, the runtime's functions in runtime_api.h.
#pragma once

#include "tests/trainer/played_cuda/grid.h"
#include "tests/trainer/played_cuda/runtime_api.h"

namespace played_cuda {

// What <<<>>> does: the arguments are copied now, the grid runs when its stream reaches it.
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            A&&... args) {
    enqueue(stream, [=, copies = std::tuple<std::decay_t<P>...>(std::forward<A>(args)...)] {
        run_grid(grid, block, shared_bytes, [&] { std::apply(kernel, copies); });
    });
}

}  // namespace played_cuda
