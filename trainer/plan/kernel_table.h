// The rows of kernels.def, parsed once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/plan/plan.h"

namespace shardscope::trainer::plan {

// Groups of kernels that are limited by the same resources.
enum class KernelClass : std::uint8_t {
    matmul,
    attention,
    norm,
    elementwise,
    embedding,
    loss,
    optimizer,
    copy,
    compression
};
inline constexpr std::size_t kKernelClasses = 9;
inline constexpr std::array<std::string_view, kKernelClasses> kKernelClassNames = {
    "matmul", "attention", "norm", "elementwise", "embedding", "loss", "optimizer", "copy", "compression"};

struct KernelArg {
    enum class Role : std::uint8_t { in, out, inout };
    std::string_view name;
    Role role = Role::in;
    int element_bytes = 0;        // 0: that of the operation's dtype
    bool may_have_none = false;   // has no buffer if the result is not needed
    bool may_be_missing = false;  // may be omitted at the end
    bool repeats = false;         // one or more args
};

struct KernelInfo {
    Kernel kernel = Kernel::none;
    std::string_view name;
    KernelClass kernel_class = KernelClass::elementwise;
    std::vector<KernelArg> args;
    std::vector<std::string_view> dims, scalars;
    std::string_view meaning;

    // The description of the arg at `place` of an operation.
    const KernelArg& arg(std::size_t place) const {
        return args[place < args.size() ? place : args.size() - 1];
    }
};

const KernelInfo& kernel_info(Kernel kernel);
const std::vector<KernelInfo>& kernel_table();  // indexed by Kernel

// How an operation made by PlanBuilder::kernel() differs from its kernel's row, as a sentence: in the number
// of args, by an arg that has no buffer or no room for an element, or by an extra dim. Empty if it matches.
std::string misfit(const Op& op);

}  // namespace shardscope::trainer::plan
