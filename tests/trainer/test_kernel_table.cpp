// The table of kernels: its rows can be parsed, and a Plan cannot contain a kernel that does not match its
// row.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/plan/builder.h"
#include "trainer/plan/kernel_table.h"

namespace shardscope::trainer::plan {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

TEST(KernelTable, EveryRowNamesWhatTheKernelWrites) {
    std::set<std::string_view> names;
    for (const KernelInfo& info : kernel_table()) {
        EXPECT_TRUE(names.insert(info.name).second) << info.name;
        EXPECT_LE(info.dims.size(), KernelOp().dims.size()) << info.name;
        EXPECT_LE(info.scalars.size(), KernelOp().scalars.size()) << info.name;
        if (info.kernel == Kernel::none) continue;
        bool writes = false;
        for (const KernelArg& arg : info.args) {
            EXPECT_THAT(std::string(arg.name), ::testing::MatchesRegex("[a-z]+")) << info.name;
            writes = writes || arg.role != KernelArg::Role::in;
        }
        EXPECT_TRUE(writes) << info.name;
    }
}

TEST(KernelTable, ReadsRolesTypesAndOptionalArgs) {
    const KernelInfo& gelu = kernel_info(Kernel::linear_gelu_forward);
    EXPECT_EQ(gelu.name, "linear_gelu_forward");
    EXPECT_EQ(gelu.kernel_class, KernelClass::matmul);
    ASSERT_THAT(gelu.args, SizeIs(5));
    EXPECT_EQ(gelu.args[0].role, KernelArg::Role::out);
    EXPECT_TRUE(gelu.args[1].may_have_none);
    EXPECT_EQ(gelu.args[2].name, "x");
    EXPECT_EQ(gelu.args[2].role, KernelArg::Role::in);
    EXPECT_TRUE(gelu.args[4].may_be_missing);
    EXPECT_EQ(gelu.dims, (std::vector<std::string_view>{"rows", "in", "out", "decodes"}));
    const KernelInfo& adamw = kernel_info(Kernel::adamw);
    EXPECT_EQ(adamw.args[0].role, KernelArg::Role::inout);
    EXPECT_EQ(adamw.args[0].element_bytes, 4);
    EXPECT_THAT(adamw.scalars, SizeIs(4));
    EXPECT_TRUE(kernel_info(Kernel::split).arg(7).repeats);
    EXPECT_EQ(kernel_info(Kernel::clip_factor).args[1].element_bytes, 8);
    EXPECT_EQ(kernel_info(Kernel::int8_linear_forward).args[2].element_bytes, 1);
}

class KernelOfAPlan : public ::testing::Test {
  protected:
    PlanBuilder builder_{PlanKind::steady, {}};
    Tensor tensor(std::int64_t elements) {
        return builder_.new_tensor("t", MemoryCategory::activations, elements);
    }
};

TEST_F(KernelOfAPlan, NeedsTheArgsOfItsRow) {
    const Tensor y = tensor(8), x = tensor(8);
    EXPECT_NO_THROW(builder_.kernel(Kernel::relu_forward, "relu", {y, x}, {8}));
    EXPECT_THAT(
        [&] { builder_.kernel(Kernel::relu_forward, "relu", {y}, {8}); },
        ThrowsMessage<std::logic_error>(HasSubstr("relu_forward takes y, x, [counts], but has 1 args")));
    EXPECT_THAT(
        [&] {
            builder_.kernel(Kernel::relu_forward, "relu", {y, x, x, x}, {8});
        },
        ThrowsMessage<std::logic_error>(HasSubstr("relu_forward takes y, x, [counts], but has 4 args")));
    EXPECT_THAT(
        [&] {
            builder_.kernel(Kernel::relu_forward, "relu", {y, {}}, {8});
        },
        ThrowsMessage<std::logic_error>(HasSubstr("relu_forward has no x")));
}

TEST_F(KernelOfAPlan, MayOmitOptionalArgs) {
    const Tensor y = tensor(8), x = tensor(8), w = tensor(64), bias = tensor(8);
    EXPECT_NO_THROW(builder_.kernel(Kernel::linear_forward, "nt", {y, x, w}, {1, 8, 8}));
    EXPECT_NO_THROW(builder_.kernel(Kernel::linear_forward, "nt", {y, x, w, bias}, {1, 8, 8}));
    EXPECT_NO_THROW(builder_.kernel(Kernel::linear_gelu_forward, "nt", {y, {}, x, w}, {1, 8, 8}));
    EXPECT_NO_THROW(builder_.kernel(Kernel::cat, "cat", {w, x, x, y, x, bias}, {}));
}

TEST_F(KernelOfAPlan, HasRoomForAnElementAndNoExtraDim) {
    const Tensor y = tensor(8), x = tensor(8);
    Arg odd = y;
    odd.bytes = 3;
    EXPECT_THAT(
        [&] {
            builder_.kernel(Kernel::cast_to_fp32, "cast", {odd, x}, {8});
        },
        ThrowsMessage<std::logic_error>(HasSubstr("its y of 3 bytes is less than an element of 4")));
    EXPECT_THAT(
        [&] {
            builder_.kernel(Kernel::add, "add", {y, x, x}, {8, 8});
        },
        ThrowsMessage<std::logic_error>(HasSubstr("add takes 1 dims, but more are given")));
    EXPECT_THAT(misfit(builder_.kernel(Kernel::add, "add", {y, x, x}, {8})), IsEmpty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::plan
