// The invariants of the analyses of time: on random traces with everything that real ones have, including
// ranges that overlap without nesting, and on the real traces next to the project, if present.
#include "tests/traces/time_invariants.h"

#include <filesystem>
#include <random>

#include "tests/traces/run_builder.h"
#include "tests/traces/shared_folder.h"
#include "traces/import/open.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

namespace fs = std::filesystem;

class RandomTrace {
  public:
    explicit RandomTrace(unsigned seed) : random_(seed), run_(2) {}

    std::unique_ptr<store::Trace> make() {
        for (int rank = 0; rank < 2; ++rank) {
            run_.sink().add(schema::ThreadRow{
                .global_tid = RunBuilder::other_tid(rank), .name = "autograd", .rank = rank});
            const auto steps = below(4);
            for (std::int64_t s = 0; s < steps; ++s) {
                run_.step(rank, s, 400 * s + below(30), 400 * s + 300 + below(100));
            }
            for (int i = 0; i < 60; ++i) add_range(rank);
            for (int i = 0; i < 40; ++i) add_device_work(rank);
            for (int i = 0; i < 10; ++i) {
                const std::int64_t start = below(1500);
                run_.runtime(rank, start, start + below(80), "cudaEventSynchronize");
            }
        }
        return run_.take();
    }

  private:
    std::int64_t below(int n) { return static_cast<std::int64_t>(random_() % static_cast<unsigned>(n)); }

    void add_range(int rank) {
        struct Kind {
            std::string_view name, domain;
        };
        static constexpr Kind kKinds[] = {
            {"aten::mm", store::kOperatorDomain},
            {"aten::add", store::kOperatorDomain},
            {"AddmmBackward0", store::kOperatorDomain},
            {"autograd::engine::evaluate_function: AddmmBackward0", store::kOperatorDomain},
            {"autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", store::kOperatorDomain},
            {"nn.Module: Net_0", store::kFunctionDomain},
            {"nn.Module: Linear_0", store::kFunctionDomain},
            {"nn.Module: Linear_1", store::kFunctionDomain},
            {"model.py(12): forward", store::kFunctionDomain},
            {"Torch-Compiled Region: 0/0", store::kOperatorDomain},
            {"FSDP::all_gather (layers.3)", store::kAnnotationDomain},
            {"enumerate(DataLoader)#x.__next__", store::kAnnotationDomain},
        };
        const Kind& kind = kKinds[below(std::size(kKinds))];
        const std::int64_t thread = below(3) == 0 ? RunBuilder::other_tid(rank) : RunBuilder::tid(rank);
        const std::int64_t start = below(1500), end = start + below(below(3) == 0 ? 500 : 40);
        run_.range_on(thread, start, end, kind.name, -1, kind.domain);
        if (kind.name == "aten::mm") forward_ = {.from_tid = thread, .from_time = start};
        if (kind.name == "AddmmBackward0" && forward_.from_tid != 0) {
            forward_.to_tid = thread;
            forward_.to_time = start;
            run_.sink().add(forward_);
        }
    }

    void add_device_work(int rank) {
        const std::int64_t start = below(1500), end = start + below(60);
        const std::optional<std::int64_t> launched =
            below(4) == 0 ? std::nullopt : std::optional(std::max<std::int64_t>(0, start - below(100)));
        const int stream = 7 + static_cast<int>(below(3));
        switch (below(4)) {
            case 0:
            case 1:
                run_.kernel(rank, start, end, launched, stream, below(2) == 0 ? "gemm" : "relu");
                break;
            case 2:
                run_.collective(rank, start, end, {.launched = launched, .stream = stream});
                break;
            default:
                run_.memcpy(rank, start, end, launched, stream);
        }
    }

    std::mt19937 random_;
    RunBuilder run_;
    schema::LinkRow forward_;
};

TEST(TimeInvariants, HoldOnRandomTraces) {
    for (unsigned seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        const auto trace = RandomTrace(seed).make();
        expect_time_invariants(*trace);
        expect_time_invariants(*trace, {.rank = 1, .from_ns = 200, .to_ns = 700});
        expect_time_invariants(*trace, {.first_step = 1, .last_step = 2});
    }
}

TEST(TimeInvariants, HoldOnAnEmptyTraceAndOnOneOfNoLength) {
    expect_time_invariants(*store::ColumnSink().take());
    RunBuilder run;
    run.kernel(0, 100, 100, 100);
    run.range(0, 100, 100, "aten::mm", -1, store::kOperatorDomain);
    expect_time_invariants(*run.take());
}

TEST(TimeInvariants, HoldOnRealTraces) {
    const fs::path folder = shared_folder();
    if (!fs::is_directory(folder)) {
        GTEST_SKIP() << "there is no " << folder << "; SHARDSCOPE_SHARED names its parent";
    }
    int opened = 0;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file() || entry.path().extension() != ".gz") continue;
        SCOPED_TRACE(entry.path());
        const auto trace = importer::open_any({entry.path().string()});
        ++opened;
        expect_time_invariants(*trace);
        if (!trace->steps.empty()) {
            const std::int64_t step = trace->steps.back().number;
            expect_time_invariants(*trace, {.first_step = step, .last_step = step});
        }
    }
    EXPECT_GT(opened, 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
