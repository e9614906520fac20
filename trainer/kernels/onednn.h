// oneDNN, opened at run time (no link-time dependency): convolutions, and the matmul of bfloat16 matrices on
// processors that have instructions for it (AVX512_BF16, or the tiles of AMX). There is one instance per
// process, made on first use. Internal to bf16_matmul.cpp and convolution.cpp.
#pragma once

#include <memory>
#include <string>

#include "trainer/kernels/bf16_matmul.h"
#include "trainer/kernels/convolution.h"

namespace shardscope::trainer::kernels {

// Each thread compiles, keeps and runs its own operation for each shape, so that all is thread safe. Throws
// std::runtime_error with the library's status.
class OneDnn {
  public:
    static const OneDnn& get();
    ~OneDnn();

    // False if it was not built in, is not installed, or cannot use the processor.
    bool usable() const { return library_ != nullptr; }
    // The library and its instructions, or why it is not usable.
    const std::string& description() const { return description_; }

    // False if the processor has no bfloat16 instructions (the library would then emulate them, at a tenth of
    // the speed).
    bool has_bf16() const { return has_bf16_; }
    // Whether its instructions are also faster than converting to fp32: tiles are, and AVX512_BF16 is
    // (measured: 2.0 times the speed of fp32 on an AMD Zen 5), except on Intel's processors, where it takes
    // twice as long as the same number of fp32 multiplications (measured: 0.6 times on a Sapphire Rapids).
    bool fast_bf16() const { return fast_bf16_; }
    // Why bfloat16 is not fast here, or its instructions.
    const std::string& bf16_description() const { return usable() ? bf16_description_ : description_; }
    // As bf16_matmul, but no size may be 0; only if has_bf16().
    void multiply(const MatmulShape& shape, const Bf16* a, const Bf16* b, const Bf16* bias, Bf16* c) const;

    // As the functions of convolution.h. False, and nothing is done, if it is not usable, cannot compile, or
    // has no code of its own for the shape: its general code takes a hundred times as long as a matmul.
    bool convolve(const float* x, const float* w, const float* bias, float* y,
                  const ConvolutionShape& shape) const;
    bool convolve_backward_input(const float* dy, const float* w, float* dx,
                                 const ConvolutionShape& shape) const;
    bool convolve_backward_weight(const float* dy, const float* x, float* dw,
                                  const ConvolutionShape& shape) const;

    struct Library;

  private:
    OneDnn();

    std::unique_ptr<Library> library_;
    bool has_bf16_ = false, fast_bf16_ = false;
    std::string description_, bf16_description_;
};

}  // namespace shardscope::trainer::kernels
