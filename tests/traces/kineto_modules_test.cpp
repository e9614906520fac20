// The module view of Kineto's traces: Python frames, operators, the backward by its links to the forward
// pass, recomputation, compiled regions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/module_nodes.h"
#include "tests/traces/run_builder.h"
#include "traces/analysis/modules/autograd_nodes.h"
#include "traces/analysis/modules/modules.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";

class KinetoRun {
  public:
    KinetoRun() {
        run.sink().add(schema::ThreadRow{.global_tid = backward_thread, .name = "pt_autograd_0", .rank = 0});
    }
    void frame(std::int64_t start, std::int64_t end, std::string_view name) {
        run.range(0, start, end, name, -1, store::kFunctionDomain);
    }
    void op(std::int64_t start, std::int64_t end, std::string_view name) {
        run.range(0, start, end, name, -1, store::kOperatorDomain);
    }
    // A range on autograd's own thread.
    void backward(std::int64_t start, std::int64_t end, std::string_view name,
                  std::string_view domain = store::kOperatorDomain) {
        run.range_on(backward_thread, start, end, name, -1, domain);
    }
    void link(std::int64_t forward, std::int64_t to) {
        run.sink().add(schema::LinkRow{
            .from_tid = RunBuilder::tid(0), .from_time = forward, .to_tid = backward_thread, .to_time = to});
    }
    // A kernel of 10 ns that a call on autograd's thread launches.
    void backward_kernel(std::int64_t start, std::int64_t launched) {
        ++correlation_;
        run.sink().add(schema::RuntimeRow{.start = launched,
                                          .end = launched + 1,
                                          .global_tid = backward_thread,
                                          .correlation = correlation_,
                                          .name = run.sink().intern("cudaLaunchKernel")});
        run.sink().add(schema::KernelRow{.start = start,
                                         .end = start + 10,
                                         .device = 0,
                                         .stream = 7,
                                         .correlation = correlation_,
                                         .global_pid = RunBuilder::pid(0),
                                         .short_name = run.sink().intern("gemm")});
    }
    // Net_0 [0, 100) calls Linear_0 [10, 40) and Linear_1 [50, 80) through frames of the program, each with
    // an operator.
    void forward() {
        frame(0, 100, "nn.Module: Net_0");
        frame(5, 95, "model.py(12): forward");
        frame(10, 40, "nn.Module: Linear_0");
        op(15, 35, "aten::linear");
        op(20, 30, "aten::addmm");
        frame(50, 80, "nn.Module: Linear_1");
        op(55, 75, "aten::linear");
        op(60, 70, "aten::addmm");
    }
    ModuleNode net() {
        trace = run.take();
        const ModuleView view = module_view(*trace);
        EXPECT_EQ(view.ranks.at(0).modules.size(), 1u);
        return view.ranks[0].modules.at(0);
    }

    static inline const std::int64_t backward_thread = RunBuilder::other_tid(0);
    RunBuilder run;
    std::unique_ptr<store::Trace> trace;

  private:
    std::int64_t correlation_ = 1000;
};

TEST(KinetoModules, NestThroughFramesAndCountTheirDirectOperators) {
    KinetoRun kineto;
    kineto.forward();
    kineto.op(85, 90, "aten::relu");
    kineto.run.range(0, 84, 92, "a user's range", -1, store::kAnnotationDomain);  // not an operator
    const ModuleNode net = kineto.net();
    EXPECT_EQ(net.name, "Net_0");
    ASSERT_THAT(names(net.children), ElementsAre("Linear_0", "Linear_1"));
    EXPECT_EQ(net.operators, 1);              // relu
    EXPECT_EQ(net.children[0].operators, 1);  // linear, not the addmm in it
    EXPECT_DOUBLE_EQ(net.host_us, us(100));
    EXPECT_DOUBLE_EQ(net.host_self_us, us(100 - 30 - 30));
    EXPECT_DOUBLE_EQ(net.children[0].host_self_us, us(30));
}

TEST(KinetoModules, ABackwardNodeBelongsToTheModuleOfItsForwardOperator) {
    KinetoRun kineto;
    kineto.forward();
    kineto.backward(200, 230, std::string(kEvaluate) + "AddmmBackward0");
    kineto.backward(202, 228, "AddmmBackward0");
    kineto.link(60, 202);  // linked to the operator inside the node, as PyTorch does
    kineto.backward(240, 260, std::string(kEvaluate) + "torch::autograd::AccumulateGrad");
    kineto.backward(300, 340, std::string(kEvaluate) + "AddmmBackward0");
    kineto.backward(302, 338, "AddmmBackward0");
    kineto.link(20, 302);
    kineto.backward(400, 450, std::string(kEvaluate) + "MseLossBackward0");  // no link
    kineto.backward_kernel(500, 210);
    kineto.backward_kernel(510, 250);
    kineto.backward_kernel(520, 310);
    kineto.backward_kernel(530, 410);
    const ModuleNode net = kineto.net();
    ASSERT_THAT(names(net.children), ElementsAre("Linear_0", "Linear_1"));
    const ModuleNode &first = net.children[0], &second = net.children[1];
    EXPECT_DOUBLE_EQ(first.backward_host_us, us(40));
    EXPECT_DOUBLE_EQ(first.backward_device_us, us(10));
    EXPECT_DOUBLE_EQ(first.host_us, us(30 + 40));
    EXPECT_DOUBLE_EQ(second.backward_host_us, us(30 + 20));  // including the gradient's accumulation after it
    EXPECT_DOUBLE_EQ(second.backward_device_us, us(20));
    EXPECT_EQ(second.operators, 1);  // only the forward's
    EXPECT_DOUBLE_EQ(net.backward_host_us, us(40 + 50));
    EXPECT_DOUBLE_EQ(net.device_us, us(30));  // the loss ran outside any module
}

TEST(KinetoModules, ACheckpointsRecomputationIsPartOfTheBackward) {
    KinetoRun kineto;
    kineto.forward();
    kineto.backward(200, 300, std::string(kEvaluate) + "CheckpointFunctionBackward");
    kineto.backward(202, 298, "CheckpointFunctionBackward");
    kineto.backward(210, 240, "nn.Module: Linear_0", store::kFunctionDomain);  // recomputation
    kineto.backward(215, 235, "aten::linear");
    kineto.backward(250, 290, std::string(kEvaluate) + "AddmmBackward0");  // of the recomputed part
    kineto.backward(252, 288, "AddmmBackward0");
    kineto.run.sink().add(schema::LinkRow{.from_tid = KinetoRun::backward_thread,
                                          .from_time = 215,
                                          .to_tid = KinetoRun::backward_thread,
                                          .to_time = 252});
    kineto.link(55, 202);  // the checkpoint was made in Linear_1
    const ModuleNode net = kineto.net();
    ASSERT_THAT(names(net.children), ElementsAre("Linear_0", "Linear_1"));
    EXPECT_EQ(net.children[0].occurrences, 1);
    EXPECT_EQ(net.children[0].operators, 1);
    EXPECT_DOUBLE_EQ(net.children[0].backward_host_us, us(30 + 40));
    EXPECT_DOUBLE_EQ(net.children[1].backward_host_us, us(100 - 30 - 40));
}

TEST(KinetoModules, RecomputationUnderAnUntiedNodeAddsNoOccurrence) {
    KinetoRun kineto;
    kineto.forward();
    kineto.backward(200, 300, std::string(kEvaluate) + "MulBackward0");
    kineto.backward(210, 240, "nn.Module: Linear_0", store::kFunctionDomain);
    const ModuleNode net = kineto.net();
    EXPECT_EQ(net.children[0].occurrences, 1);
    EXPECT_DOUBLE_EQ(net.children[0].backward_host_us, us(30));
    EXPECT_DOUBLE_EQ(net.backward_host_us, us(30));
}

TEST(KinetoModules, IfTheEngineHasNoRangesTheLinkedOperatorIsTheNode) {
    KinetoRun kineto;  // in the format of 2021
    kineto.forward();
    kineto.backward(200, 230, "AddmmBackward");
    kineto.link(20, 200);
    kineto.backward(240, 260, "torch::autograd::AccumulateGrad");
    const ModuleNode net = kineto.net();
    EXPECT_DOUBLE_EQ(net.children[0].backward_host_us, us(30 + 20));
}

TEST(KinetoModules, ACompiledRegionIsARowOfItsOwnName) {
    KinetoRun kineto;
    kineto.frame(0, 100, "nn.Module: Net_0");
    kineto.op(10, 60, "Torch-Compiled Region: 0/0");
    kineto.op(20, 50, "CompiledFunction");
    kineto.backward(200, 230, std::string(kEvaluate) + "CompiledFunctionBackward");
    kineto.backward(201, 229, "CompiledFunctionBackward");
    kineto.link(20, 201);
    const ModuleNode net = kineto.net();
    ASSERT_THAT(names(net.children), ElementsAre("Torch-Compiled Region: 0/0"));
    EXPECT_EQ(net.operators, 0);
    EXPECT_EQ(net.children[0].occurrences, 1);
    EXPECT_EQ(net.children[0].operators, 1);
    EXPECT_DOUBLE_EQ(net.children[0].host_us, us(50 + 30));
    EXPECT_DOUBLE_EQ(net.children[0].backward_host_us, us(30));
}

TEST(KinetoModules, TheBackwardOfASelectedTimeFindsItsModuleOutsideIt) {
    KinetoRun kineto;
    kineto.forward();
    kineto.backward(200, 230, std::string(kEvaluate) + "AddmmBackward0");
    kineto.backward(202, 228, "AddmmBackward0");
    kineto.link(20, 202);
    const auto trace = kineto.run.take();
    const ModuleView view = module_view(*trace, {.from_ns = 150});
    ASSERT_THAT(names(view.ranks.at(0).modules), ElementsAre("Net_0"));
    const ModuleNode& net = view.ranks[0].modules[0];
    ASSERT_THAT(names(net.children), ElementsAre("Linear_0"));  // nothing of Linear_1 is selected
    EXPECT_EQ(net.children[0].occurrences, 0);
    EXPECT_DOUBLE_EQ(net.children[0].backward_host_us, us(30));
}

TEST(KinetoModules, FramesThatOverlapTakeTheirParentsTimeOnce) {
    KinetoRun kineto;
    kineto.frame(0, 100, "nn.Module: Net_0");
    kineto.frame(10, 60, "nn.Module: A_0");
    kineto.frame(40, 90, "nn.Module: B_0");  // as asynchronous work that shares a thread's id
    const ModuleNode net = kineto.net();
    EXPECT_DOUBLE_EQ(net.host_self_us, us(100 - 80));  // without 10..90
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
