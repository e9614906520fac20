// oneDNN, opened at run time (no link-time dependency): the matmul of bfloat16 matrices on processors that
// have instructions for it (AVX512_BF16, or the tiles of AMX). There is one instance per process, made on
// first use. Internal to bf16_matmul.cpp.
#pragma once

#include <memory>
#include <string>

#include "trainer/kernels/bf16_matmul.h"

namespace shardscope::trainer::kernels {

class OneDnn {
  public:
    static const OneDnn& get();
    ~OneDnn();

    // False if it was not built in, is not installed, or the processor has no bfloat16 instructions (the
    // library would then emulate them, at a tenth of the speed).
    bool usable() const { return library_ != nullptr; }
    // Whether its instructions are also faster than converting to fp32: tiles are, and AVX512_BF16 is
    // (measured: 2.0 times the speed of fp32 on an AMD Zen 5), except on Intel's processors, where it takes
    // twice as long as the same number of fp32 multiplications (measured: 0.6 times on a Sapphire Rapids).
    bool fast() const { return fast_; }
    // The library and its instructions, or why it is not usable.
    const std::string& description() const { return description_; }

    // As bf16_matmul, but no size may be 0; only if usable(). Thread safe: each thread compiles, keeps and
    // runs its own matmul for each shape. Throws std::runtime_error with the library's status.
    void multiply(const MatmulShape& shape, const Bf16* a, const Bf16* b, const Bf16* bias, Bf16* c) const;

  private:
    OneDnn();

    struct Library;
    std::unique_ptr<Library> library_;
    bool fast_ = false;
    std::string description_;
};

}  // namespace shardscope::trainer::kernels
