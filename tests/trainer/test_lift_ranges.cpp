// Ranges of modules nested as in no real program: they touch, end together, overlap, or are missing. A Plan
// lifted from them can always be executed, or is refused with an error.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pytorch_models.h"

namespace shardscope::trainer::lift {
namespace TEST_FILE {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

bool is_module(const Json& event) {
    return event.value("cat", "") == "python_function" && event.value("name", "").starts_with("nn.Module: ");
}
double start_of(const Json& event) {
    return event.at("ts").get<double>();
}
double end_of(const Json& event) {
    return start_of(event) + event.at("dur").get<double>();
}

// Each module begins with its first child and ends with its last, and ends where its sibling begins.
void close_gaps(Json& events) {
    std::vector<Json*> modules;
    for (Json& event : events)
        if (is_module(event)) modules.push_back(&event);
    const auto parent_of = [](const Json& event) { return event.at("args").at("Python parent id"); };
    for (Json* own : modules) {
        double next = -1;
        for (const Json* other : modules) {
            const bool sibling = parent_of(*other) == parent_of(*own) && !parent_of(*own).is_null();
            if (sibling && start_of(*other) > start_of(*own) && (next < 0 || start_of(*other) < next))
                next = start_of(*other);
        }
        if (next >= 0) (*own)["dur"] = next - start_of(*own);
    }
    // Children come after their parents.
    for (auto own = modules.rbegin(); own != modules.rend(); ++own) {
        double first = -1, last = -1;
        for (const Json* other : modules) {
            if (parent_of(*other) != (**own).at("args").at("Python id")) continue;
            first = first < 0 ? start_of(*other) : std::min(first, start_of(*other));
            last = std::max(last, end_of(*other));
        }
        if (first < 0) continue;
        (**own)["ts"] = first;
        (**own)["dur"] = last - first;
    }
}

std::vector<std::vector<std::string>> calls_of(const LiftedStep& step) {
    std::vector<std::vector<std::string>> all;
    for (const Node& node : step.nodes) {
        for (const Call& call : node.calls) {
            all.push_back({node.name});
            for (const int child : call.children)
                all.back().push_back(step.nodes[static_cast<std::size_t>(child)].name);
        }
    }
    return all;
}

TEST(LiftedRanges, AModuleThatEndsWithItsLastChildIsNotAroundTheNextOne) {
    const std::string apart = fully_shard_json({});
    Json touching = Json::parse(apart);
    close_gaps(touching["traceEvents"]);
    const Lifted own = lifted(touching.dump()), of_apart = lifted(apart);
    EXPECT_EQ(fault_of(own.step), "");
    EXPECT_EQ(calls_of(own.step), calls_of(of_apart.step));
    EXPECT_EQ(own.step.elements(), of_apart.step.elements());
}

class Shaken {
  public:
    explicit Shaken(unsigned seed) : random_(seed) {}

    std::string of(Json trace) {
        Json& events = trace["traceEvents"];
        Json out = Json::array();
        for (Json& event : events) {
            if (!can_move(event)) {
                out.push_back(event);
                continue;
            }
            if (one_of(40)) continue;  // lost
            if (one_of(40)) out.push_back(event);
            change(event);
            out.push_back(event);
        }
        if (one_of(2)) std::shuffle(out.begin(), out.end(), random_);
        events = std::move(out);
        return trace.dump();
    }

  private:
    bool one_of(int n) { return std::uniform_int_distribution<int>(1, n)(random_) == 1; }
    static bool can_move(const Json& event) {
        return event.value("ph", "") == "X" && event.contains("dur") && event.value("cat", "") != "kernel" &&
               !event.value("name", "").starts_with("ProfilerStep#");
    }
    void change(Json& event) {
        double start = start_of(event), end = end_of(event);
        if (one_of(2)) {  // touching, as with a coarse clock
            constexpr double kTick = 16;
            start = std::floor(start / kTick) * kTick;
            end = std::floor(end / kTick) * kTick;
        }
        if (one_of(20)) end = start + (end - start) / 3;  // truncated
        if (one_of(20)) end = start + (end - start) * 3;  // merged with what follows
        if (one_of(40)) end = start;
        event["ts"] = start;
        event["dur"] = std::max(0.0, end - start);
    }
    std::mt19937 random_;
};

TEST(LiftedRanges, DistortedRangesAreLiftedCompletelyOrRefusedWithAnError) {
    const Json plain = Json::parse(fully_shard_json({.steps = 3, .norms = true})),
               own_ranges = Json::parse(fully_shard_json({.steps = 3, .own_ranges = true}));
    int whole = 0;
    constexpr unsigned kSeeds = 300;
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
        SCOPED_TRACE(seed);
        try {
            const Lifted own = lifted(Shaken(seed).of(seed % 3 == 0 ? own_ranges : plain));
            EXPECT_EQ(fault_of(own.step), "");
            for (const std::vector<job::Override>& changes :
                 {std::vector<job::Override>{}, {{"fsdp.wrap", "root"}}, {{"parallel.mode", "ddp"}}})
                whole += replay(own, own.cluster, changes, 1).can_be();
        } catch (const LiftError& error) {
            EXPECT_THAT(error.what(), HasSubstr("record"));
        }
    }
    EXPECT_GT(whole, static_cast<int>(kSeeds));
}

TEST(LiftedRanges, AWrapperWithNothingInsideIsOneModule) {
    PytorchTrace trace;
    for (int step = 0; step < 3; ++step) {
        trace.range("ProfilerStep#" + std::to_string(step), "user_annotation", [&] {
            trace.module("DistributedDataParallel_0", [&] { trace.kernel("compiled", 300); });
            trace.backward([&] {
                trace.range("autograd::engine::evaluate_function: CompiledFunctionBackward", "cpu_op", [&] {
                    trace.kernel("compiled_backward", 500);
                    trace.collective("AllReduce", "allreduce", 500000, 500000, 250);
                });
            });
        });
    }
    const Lifted own = lifted(trace.json());
    EXPECT_EQ(own.step.nodes.size(), 1U);
    EXPECT_EQ(own.step.elements(), 500000);
    EXPECT_TRUE(replay_unmodified(own).can_be());
}

TEST(LiftedStepFault, NamesACallOfAMissingModule) {
    LiftedStep step;
    EXPECT_NE(fault_of(step), "");
    Node root, child;
    root.name = "Net_0";
    root.children = {1};
    root.calls.push_back({{Segment{}, Segment{}}, {1}});
    child.parent = 0;
    child.name = "Linear_0";
    child.calls.push_back({{Segment{}}, {}});
    step.nodes = {root, child};
    EXPECT_EQ(fault_of(step), "");
    step.nodes[1].calls.push_back({{Segment{}, Segment{}}, {0}});
    EXPECT_THAT(fault_of(step), HasSubstr("Linear_0 calls Net_0"));
    step.nodes[1].calls = {{{}, {}}};
    EXPECT_THAT(fault_of(step), HasSubstr("Linear_0"));
    step.nodes[1].calls.clear();
    EXPECT_THAT(fault_of(step), HasSubstr("never called"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::lift
