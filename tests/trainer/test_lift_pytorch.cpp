// The shapes of PyTorch's operators as parameters.
#include <gtest/gtest.h>

#include "trainer/lift/operator_parameters.h"

namespace shardscope::trainer::lift {
namespace {

std::vector<std::int64_t> elements(std::string_view operation, std::string_view detail) {
    std::vector<std::int64_t> all;
    for (const OperatorParameter& parameter : parameters_of(operation, detail))
        all.push_back(parameter.elements);
    return all;
}

TEST(OperatorParameters, AreTheInputsThatTheSignatureCallsWeightAndBias) {
    EXPECT_EQ(elements("aten::linear", R"({"Input Dims":[[8,16],[32,16],[32]]})"),
              (std::vector<std::int64_t>{512, 32}));
    EXPECT_EQ(elements("aten::linear", R"({"Input Dims":[[8,16],[32,16],[]]})"),
              (std::vector<std::int64_t>{512}));
    EXPECT_EQ(elements("aten::conv2d", R"({"Input Dims":[[1,3,8,8],[64,3,7,7],[],[],[],[],[]]})"),
              (std::vector<std::int64_t>{64 * 3 * 7 * 7}));
    EXPECT_EQ(elements("aten::layer_norm", R"({"Input Dims":[[8,16],[],[16],[16],[],[]]})"),
              (std::vector<std::int64_t>{16, 16}));
    EXPECT_EQ(elements("aten::embedding", R"({"Input Dims":[[1000,64],[8,4],[],[],[]]})"),
              (std::vector<std::int64_t>{64000}));
}

TEST(OperatorParameters, OthersHaveNoneAndBrokenShapesTellNone) {
    EXPECT_FALSE(reads_parameters("aten::mm"));
    EXPECT_TRUE(elements("aten::mm", R"({"Input Dims":[[8,16],[16,32]]})").empty());
    for (const char* broken :
         {"", "[]", "{}", R"({"Input Dims":7})", R"({"Input Dims":[[8,16]]})",
          R"({"Input Dims":[[8,16],[-1,16],["x"]]})", R"({"Input Dims":[[1],[0,16],[]]})",
          R"({"Input Dims":[[1],[1099511627776,1099511627776],[]]})"})
        EXPECT_TRUE(elements("aten::linear", broken).empty()) << broken;
}

}  // namespace
}  // namespace shardscope::trainer::lift
