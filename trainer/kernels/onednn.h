// oneDNN, opened at run time (no link-time dependency): the product of bfloat16 matrices on processors that
// have instructions for it. One instance for the process, made on first use. Internal to bf16_product.cpp.
#pragma once

#include <memory>
#include <string>

#include "trainer/kernels/bf16_product.h"

namespace shardscope::trainer::kernels {

class OneDnn {
  public:
    static const OneDnn& get();
    ~OneDnn();

    // False where it was not built in, is not installed, or the processor has no bfloat16 instructions (the
    // library would then emulate them, at a tenth of the speed).
    bool usable() const { return library_ != nullptr; }
    // The library and its instructions, or why it is not usable.
    const std::string& description() const { return description_; }

    // As bf16_product, no size 0; only where usable. Thread safe: each thread keeps the compiled products of
    // the shapes that it met, and runs them alone. Throws std::runtime_error with the library's status.
    void product(const ProductShape& shape, const Bf16* a, const Bf16* b, const Bf16* bias, Bf16* c) const;

  private:
    OneDnn();

    struct Library;
    std::unique_ptr<Library> library_;
    std::string description_;
};

}  // namespace shardscope::trainer::kernels
