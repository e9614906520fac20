// samples/pytorch: an unmodified PyTorch program under shardscope-record shows its module tree and its steps.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/record/pytorch_sample.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kSteps = 10;  // as in samples/pytorch/train.py

TEST_F(PytorchSample, AnUnmodifiedScriptShowsItsModulesAndSteps) {
    const Outcome outcome = record({"-m", "shardscope_torch", SHARDSCOPE_PYTORCH_SAMPLE "/train.py"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("loss "));

    const Json ranks = answer({"modules", trace_}).at("ranks");
    ASSERT_EQ(ranks.size(), 1u);
    const Json& roots = ranks[0].at("modules");
    ASSERT_EQ(roots.size(), 1u);
    EXPECT_EQ(roots[0].at("name"), "Perceptron_0");
    EXPECT_EQ(roots[0].at("occurrences"), kSteps);
    std::vector<std::string> children, paths;
    for (const Json& child : roots[0].at("children")) {
        children.push_back(child.at("name"));
        paths.push_back(child.at("fqn"));
        EXPECT_EQ(child.at("occurrences"),
                  child.at("name") == "ReLU_0" ? 3 * kSteps : kSteps);  // one object, thrice
        EXPECT_GT(child.at("host_us").get<double>(), 0);
        EXPECT_GT(child.at("backward_host_us").get<double>(), 0);
        EXPECT_LT(child.at("backward_host_us").get<double>(), roots[0].at("host_us").get<double>());
    }
    EXPECT_THAT(children, ElementsAre("Linear_0", "ReLU_0", "Linear_1", "Linear_2"));
    EXPECT_THAT(paths, ElementsAre("layers.0", "activation", "layers.1", "layers.2"));

    // A step lasts from the forward to the optimizer's end.
    std::vector<std::string> steps;
    for (int i = 0; i < kSteps; ++i) steps.push_back("ProfilerStep#" + std::to_string(i));
    EXPECT_EQ(texts("SELECT name FROM ranges WHERE name LIKE 'ProfilerStep%' ORDER BY start_ns"), steps);
    EXPECT_EQ(answer({"summary", trace_}).at("ranks").at(0).at("steps"), kSteps);
    // Each step contains one forward, each layer's backward, and the optimizer, whose end is the step's.
    EXPECT_THAT(texts("SELECT count(*) FROM ranges s JOIN ranges r ON r.start_ns >= s.start_ns AND r.end_ns "
                      "<= s.end_ns "
                      "WHERE s.name LIKE 'ProfilerStep%' AND (r.name IN ('nn.Module: Perceptron_0', "
                      "'Optimizer.step#SGD.step') OR r.name LIKE '%Linear%(backward)')"),
                ElementsAre(std::to_string(kSteps * (1 + 1 + 3))));
    EXPECT_THAT(texts("SELECT count(*) FROM ranges WHERE name LIKE 'enumerate(DataLoader)#%'"),
                ElementsAre(std::to_string(kSteps + 1)));  // the last call finds the end of the data
}

TEST_F(PytorchSample, AttachesToOneModelAndIsGoneAfterwards) {
    const Outcome outcome = record_script(R"(
import torch, shardscope_torch
model, other = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()), torch.nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())
before = torch.autograd.profiler.record_function.__enter__
def step():
    other(torch.randn(2, 4))
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
step()
with shardscope_torch.attach(model, optimizer):
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(2):
        step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        model(torch.randn(2, 4))
step()
assert torch.autograd.profiler.record_function.__enter__ is before
assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
)");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto count = [&](const std::string& name) {
        return texts("SELECT count(*) FROM ranges WHERE name = '" + name + "'").at(0);
    };
    EXPECT_EQ(count("nn.Module: Sequential_0"), "3");
    EXPECT_EQ(count("nn.Module: Linear_0"), "3");  // the other model's layer is not recorded
    EXPECT_EQ(count("nn.Module: Linear_0 (backward)"), "2");
    EXPECT_EQ(count("nn.Module: Tanh_0 (backward)"), "2");
    EXPECT_EQ(texts("SELECT name FROM ranges WHERE name LIKE 'ProfilerStep%'"),
              (std::vector<std::string>{"ProfilerStep#0", "ProfilerStep#1"}));  // evaluation is not a step
}

TEST_F(PytorchSample, AForwardThatRaisesLeavesNoRangeOpen) {
    const Outcome outcome = record_script(R"(
import torch, shardscope_torch
class Fails(torch.nn.Module):
    def forward(self, x):
        raise ValueError("no")
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fails, self.good = Fails(), torch.nn.Linear(2, 2)
    def forward(self, x):
        try:
            self.fails(x)
        except ValueError:
            pass
        return self.good(x)
with shardscope_torch.attach():
    net = Net()
    net(torch.randn(1, 2))
    with torch.autograd.profiler.record_function("after"):
        pass
)");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json roots = answer({"modules", trace_}).at("ranks").at(0).at("modules");
    ASSERT_EQ(roots.size(), 1u);
    EXPECT_EQ(roots[0].at("name"), "Net_0");
    // "after" is not inside any module.
    EXPECT_THAT(
        texts("SELECT count(*) FROM ranges a JOIN ranges m ON m.name LIKE 'nn.Module%' AND m.start_ns < "
              "a.start_ns AND m.end_ns > a.start_ns WHERE a.name = 'after'"),
        ElementsAre("0"));
}

TEST_F(PytorchSample, StepsThatAProgramNamesItselfAreTheSteps) {
    const Outcome outcome = record_script(R"(
import torch, shardscope_torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with shardscope_torch.attach():
    for number in (7, 8):
        with torch.autograd.profiler.record_function("ProfilerStep#%d" % number):
            model(torch.randn(1, 2)).sum().backward()
            optimizer.step()
)");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(texts("SELECT name FROM ranges WHERE name LIKE 'ProfilerStep%' ORDER BY start_ns"),
              (std::vector<std::string>{"ProfilerStep#7", "ProfilerStep#8"}));
}

TEST_F(PytorchSample, RecomputationIsPartOfTheBackward) {
    const Outcome outcome = record_script(R"(
import torch, shardscope_torch
from torch.utils.checkpoint import checkpoint
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)
net = Net()
with shardscope_torch.attach(net):
    for _ in range(2):
        net(torch.randn(2, 4)).sum().backward()
)");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json roots = answer({"modules", trace_}).at("ranks").at(0).at("modules");
    ASSERT_EQ(roots.size(), 1u);
    const Json& inner = roots[0].at("children").at(0);
    EXPECT_EQ(inner.at("name"), "Sequential_0");
    EXPECT_EQ(inner.at("occurrences"), 2);  // of 4 calls, 2 were repeated in the backward
    EXPECT_EQ(inner.at("children").size(), 2u);
    for (const Json& layer : inner.at("children")) EXPECT_EQ(layer.at("occurrences"), 2);
}

TEST_F(PytorchSample, ACompiledModelIsOneModule) {
    if (run_command(python({"-c", "import torch; torch.compiler.is_compiling"})).status != 0) {
        GTEST_SKIP() << "this PyTorch has no torch.compile that tells when it compiles (2.1)";
    }
    const Outcome outcome = record_script(R"(
import torch, shardscope_torch
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), backend="eager")
with shardscope_torch.attach(model):
    for _ in range(3):
        model(torch.randn(2, 4)).sum().backward()
)");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json roots = answer({"modules", trace_}).at("ranks").at(0).at("modules");
    ASSERT_EQ(roots.size(), 1u);
    EXPECT_EQ(roots[0].at("name"), "OptimizedModule_0");
    EXPECT_EQ(roots[0].at("occurrences"), 3);
    EXPECT_TRUE(roots[0].at("children").empty());
}

TEST_F(PytorchSample, DoesNothingWhenNothingIsRecorded) {
    const Outcome outcome =
        run_command(python({"-c",
                            "import torch, shardscope_torch as s\n"
                            "before = torch.autograd.profiler.record_function.__enter__\n"
                            "model = torch.nn.Linear(2, 2)\n"
                            "with s.attach(model):\n"
                            "    assert not model._forward_hooks\n"
                            "    now = torch.autograd.profiler.record_function.__enter__\n"
                            "    assert now is before\n"}));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// The sharded samples, two ranks over gloo, if this PyTorch has what a script needs.
class ShardedSample : public PytorchSample, public ::testing::WithParamInterface<const char*> {};

TEST_P(ShardedSample, ShowsEveryRanksModulesAndSteps) {
    const std::string script = std::string(SHARDSCOPE_PYTORCH_SAMPLE "/") + GetParam() + ".py";
    const Outcome outcome = record_ranks({"-m", "shardscope_torch", script}, "STEPS=3");
    if (outcome.err.find(std::string(GetParam()) + ".py needs") != std::string::npos) {
        GTEST_SKIP() << outcome.err;
    }
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("step 2 loss "));

    for (const char* rank : {"0", "1"}) {
        EXPECT_EQ(answer({"summary", trace_, "--rank", rank}).at("ranks").at(0).at("steps"), 3) << rank;
        const std::string count = "SELECT count(*) FROM ranges WHERE rank = " + std::string(rank) +
                                  " AND name LIKE 'nn.Module: %Block_3'";  // FSDP2 names the class FSDPBlock
        EXPECT_THAT(texts(count), ElementsAre("3")) << rank;
    }
}
INSTANTIATE_TEST_SUITE_P(Of, ShardedSample, ::testing::Values("ddp", "fsdp1", "fsdp2"),
                         [](const auto& script) { return std::string(script.param); });

}  // namespace TEST_FILE
}  // namespace shardscope::tools
