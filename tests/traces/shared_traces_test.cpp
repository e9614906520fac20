// Traces that others recorded of real jobs, and their expected numbers (computed by other programs than
// ours). The files are not part of the project: they are in SHARDSCOPE_SHARED, or in ../shared next to the
// project; without them these tests are skipped.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/fixtures/name_of_file.h"
#include "tests/traces/shared_folder.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/advice/advice.h"
#include "traces/analysis/answers/answers.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/time/device_time.h"
#include "traces/analysis/time/kernels.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/time/temporal.h"
#include "traces/import/importer_table.h"
#include "traces/import/input/input.h"
#include "traces/import/open.h"
#include "traces/import/pytorch_memory/memory_snapshot.h"
#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/trace.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

namespace fs = std::filesystem;
using nlohmann::json;

class SharedTraces : public ::testing::Test {
  protected:
    void SetUp() override {
        std::ifstream file(shared_folder() / "expected" / "expected.json");
        if (!file)
            GTEST_SKIP() << "there is no " << shared_folder() << "; SHARDSCOPE_SHARED names its parent";
        all_ = json::parse(file);
    }
    const json& expected(const std::string& name) const { return all_.at(name); }
    std::unique_ptr<store::Trace> open(const std::string& name) const {
        return importer::open_any({(shared_folder() / name).string()});
    }

  private:
    json all_;
};

// Converts nanoseconds, because the other programs print microseconds.
double us(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-3;
}

std::int64_t union_of(const store::Trace& trace, const std::function<bool(std::size_t)>& wanted) {
    std::vector<Interval> intervals;
    for (std::size_t e = 0; e < trace.device.size(); ++e) {
        if (wanted(e)) intervals.push_back({trace.device.start[e], trace.device.end[e]});
    }
    return length(make_union(std::move(intervals)));
}

// A fact that the trace records about its run; "" if it is not recorded.
std::string fact(const store::Trace& trace, const std::string& key) {
    const auto found = std::find_if(trace.config.begin(), trace.config.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    return found == trace.config.end() ? "" : found->second;
}

// Invariants of any trace: the eight categories sum to the window; module self times and memory are
// consistent.
void check_invariants(const store::Trace& trace) {
    for (const RankSummary& rank : summarize(trace).ranks) {
        for (const StepSummary& step : rank.steps) {
            std::int64_t sum = 0;
            for (const std::int64_t ns : step.ns) sum += ns;
            EXPECT_EQ(sum, step.window_end - step.window_start) << "step " << step.number;
        }
    }
    const std::function<void(const ModuleNode&)> check = [&](const ModuleNode& node) {
        EXPECT_GE(node.host_self_us, 0) << node.name;
        EXPECT_GE(node.device_self_us, 0) << node.name;
        for (const ModuleNode& child : node.children) check(child);
    };
    for (const RankModules& rank : module_view(trace).ranks) {
        for (const ModuleNode& node : rank.modules) check(node);
    }
    for (const RankMemory& rank : memory_report(trace).ranks) {
        std::int64_t sum = 0;
        for (const std::int64_t bytes : rank.at_peak) sum += bytes;
        EXPECT_EQ(sum, rank.peak_bytes) << "rank " << rank.rank;
    }
    for (const RankTemporal& rank : temporal_breakdown(trace).ranks) {
        EXPECT_EQ(rank.whole.whole(), rank.whole.time.length()) << "rank " << rank.rank;
    }
}

constexpr const char* kCategories[kTimeCategories] = {"Kernel",  "Memcpy",     "Memset",   "Communication",
                                                      "Runtime", "DataLoader", "CPU Exec", "Other"};

TEST_F(SharedTraces, ExecutionSummaryOfResnet50) {
    const char* name = "kineto/resnet50_v100_2021.pt.trace.json.gz";
    const auto trace = open(name);
    const json& steps = expected(name).at("steps");
    const ExecutionSummary summary = summarize(*trace);
    ASSERT_EQ(summary.ranks.size(), 1u);
    const RankSummary& rank = summary.ranks[0];
    ASSERT_EQ(rank.steps.size(), steps.size());
    for (const StepSummary& step : rank.steps) {
        const json& want = steps.at(std::to_string(step.number));
        for (std::size_t c = 0; c < kTimeCategories; ++c) {
            EXPECT_EQ(us(step.ns[c]), want.at(kCategories[c]).get<double>()) << step.number << kCategories[c];
        }
        EXPECT_EQ(us(step.window_end - step.window_start), want.at("Total").get<double>()) << step.number;
    }
    const json& mean = expected(name).at("execution_summary_average_us");
    for (std::size_t c = 0; c < kTimeCategories; ++c) {
        EXPECT_NEAR(rank.average_us[c], mean.at(kCategories[c]).get<double>(), 1e-3) << kCategories[c];
    }
    EXPECT_NEAR(rank.average_step_us, mean.at("Total").get<double>(), 1e-3);
    check_invariants(*trace);
}

TEST_F(SharedTraces, KernelsAndOperatorsOfResnet50) {
    const char* name = "kineto/resnet50_v100_2021.pt.trace.json.gz";
    const auto trace = open(name);
    const json& want_kernels = expected(name).at("kernels_by_name");
    const KernelsReport kernels = kernels_report(*trace);
    ASSERT_EQ(kernels.ranks.size(), 1u);
    EXPECT_EQ(kernels.ranks[0].distinct, want_kernels.at("distinct").get<std::int64_t>());
    for (std::size_t i = 0; i < want_kernels.at("top").size(); ++i) {
        const json& want = want_kernels.at("top")[i];
        const auto& rows = kernels.ranks[0].kernels;
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const KernelStats& k) {
            return k.name == want.at("name").get<std::string>();
        });
        ASSERT_NE(row, rows.end()) << want;
        EXPECT_EQ(row->count, want.at("count").get<std::int64_t>()) << want;
        EXPECT_EQ(us(row->total), want.at("sum").get<double>()) << want;
        EXPECT_EQ(us(row->longest), want.at("max").get<double>()) << want;
        EXPECT_EQ(us(row->shortest), want.at("min").get<double>()) << want;
    }
    const json& want_operators = expected(name).at("operators");
    const OperatorsReport operators = operators_report(*trace);
    EXPECT_EQ(operators.ranks.at(0).distinct, want_operators.at("distinct").get<std::int64_t>());
    for (const json& want : want_operators.at("top")) {
        const auto& rows = operators.ranks[0].operators;
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const OperatorStats& o) {
            return o.name == want.at("name").get<std::string>();
        });
        ASSERT_NE(row, rows.end()) << want;
        EXPECT_EQ(row->calls, want.at("calls").get<std::int64_t>()) << want;
        EXPECT_EQ(us(row->host_total), want.at("host_total").get<double>()) << want;
        EXPECT_EQ(us(row->host_self), want.at("host_self").get<double>()) << want;
        EXPECT_EQ(us(row->device_total), want.at("device_total").get<double>()) << want;
        EXPECT_EQ(us(row->device_self), want.at("device_self").get<double>()) << want;
    }
}

TEST_F(SharedTraces, PeakAndModuleTreeOfQwen) {
    const char* name = "kineto/qwen1.5_h100_2025.json.gz";
    const auto trace = open(name);
    const MemoryReport memory = memory_report(*trace);
    ASSERT_EQ(memory.ranks.size(), 1u);
    EXPECT_EQ(memory.ranks[0].peak_bytes,
              expected(name).at("peak_allocated_bytes").at("GPU 0").get<std::int64_t>());
    const std::int64_t host_peak = expected(name).at("peak_allocated_bytes").at("CPU").get<std::int64_t>();
    ASSERT_EQ(memory.ranks[0].other_spaces.size(), 1u);
    EXPECT_EQ(memory.ranks[0].other_spaces[0].space, schema::MemorySpace::host);
    EXPECT_EQ(memory.ranks[0].other_spaces[0].peak_bytes, host_peak);
    EXPECT_EQ(memory_report(*trace, {}, schema::MemorySpace::host).ranks.at(0).peak_bytes, host_peak);

    const json& want = expected(name).at("module_tree");
    const ModuleView view = module_view(*trace);
    ASSERT_EQ(view.ranks.size(), 1u);
    std::map<std::string, const ModuleNode*> by_path;
    std::size_t nodes = 0;
    const std::function<void(const std::string&, const ModuleNode&)> walk = [&](const std::string& above,
                                                                                const ModuleNode& node) {
        ++nodes;
        by_path[above + "/" + node.name] = &node;
        for (const ModuleNode& child : node.children) walk(above + "/" + node.name, child);
    };
    for (const ModuleNode& root : view.ranks[0].modules) walk("", root);
    EXPECT_EQ(view.ranks[0].modules.size(), want.at("roots").get<std::size_t>());
    EXPECT_EQ(nodes, want.at("nodes").get<std::size_t>());
    for (const json& row : want.at("first_rows_path_occurrences_host_us")) {
        const auto found = by_path.find(row[0].get<std::string>());
        ASSERT_NE(found, by_path.end()) << row;
        EXPECT_EQ(found->second->occurrences, row[1].get<std::int64_t>()) << row;
        EXPECT_NEAR(found->second->host_us, row[2].get<double>(), 1e-3) << row;
    }
    check_invariants(*trace);
}

TEST_F(SharedTraces, EightRanksOfDlrm) {
    const char* name = "kineto/dlrm_8ranks_v100_2023";
    const auto trace = open(name);
    ASSERT_EQ(trace->ranks.size(), 8u);
    const TemporalReport temporal = temporal_breakdown(*trace);
    for (const json& want : expected(name).at("temporal_us_rank_idle_compute_noncompute_total")) {
        const RankTemporal& rank = temporal.ranks.at(want[0].get<std::size_t>());
        EXPECT_EQ(rank.rank, want[0].get<int>());
        EXPECT_EQ(us(rank.whole.idle), want[1].get<double>()) << want;
        EXPECT_EQ(us(rank.whole.compute), want[2].get<double>()) << want;
        EXPECT_EQ(us(rank.whole.non_compute()), want[3].get<double>()) << want;
        EXPECT_EQ(us(rank.whole.whole()), want[4].get<double>()) << want;
    }
    const OverlapReport overlap = overlap_report(*trace);
    for (const json& want : expected(name).at("overlap_percent_rank")) {
        const RankOverlap& rank = overlap.ranks.at(want[0].get<std::size_t>());
        EXPECT_NEAR(rank.device_time.overlap_percent(), want[1].get<double>(), 0.005) << want;
    }
    // Rank 7 arrives last, then 2, then 6.
    const StragglersReport late = straggler_report(*trace);
    ASSERT_EQ(late.ranks.size(), 8u);
    EXPECT_EQ(late.ranks[0].rank, 7);
    EXPECT_EQ(late.ranks[1].rank, 2);
    EXPECT_EQ(late.ranks[2].rank, 6);
    check_invariants(*trace);
}

// Both measure how long the ranks are in collectives; if one of them names no rank, they do not disagree.
TEST_F(SharedTraces, AdviceCallsTheRankAStragglerThatComesLast) {
    for (const char* name : {"kineto/dlrm_8ranks_v100_2023", "nsight/pytorch_2xh100_2026.2.sqlite.gz",
                             "nsight/ddp_2x3090_2026.3.sqlite.gz"}) {
        const auto trace = open(name);
        const std::optional<int> latest = latest_rank(straggler_report(*trace));
        int cards = 0;
        for (const Finding& finding : advice(*trace).findings) {
            if (finding.id != "straggler") continue;
            ++cards;
            EXPECT_EQ(finding.figures.at(0).value, latest.value_or(-1)) << name;
        }
        if (trace->ranks.size() == 8) {
            EXPECT_EQ(cards, 1) << name;
            EXPECT_EQ(latest, 7) << name;
        }
    }
}

void check_unions(const store::Trace& trace, const json& want) {
    const store::DeviceEvents& d = trace.device;
    const auto is = [&](store::DeviceKind kind) {
        return [&d, kind](std::size_t e) { return d.kind[e] == kind; };
    };
    const std::int64_t compute = union_of(trace, is(store::DeviceKind::kernel));
    const std::int64_t communication = union_of(trace, is(store::DeviceKind::communication));
    const std::int64_t both = union_of(trace, [&](std::size_t e) {
        return d.kind[e] == store::DeviceKind::kernel || d.kind[e] == store::DeviceKind::communication;
    });
    const std::int64_t busy = union_of(trace, [](std::size_t) { return true; });
    EXPECT_NEAR(us(compute), want.at("compute_union_us").get<double>(), 0.01);
    EXPECT_NEAR(us(communication), want.at("communication_union_us").get<double>(), 0.01);
    EXPECT_NEAR(us(compute + communication - both), want.at("overlapped_us").get<double>(), 0.01);
    EXPECT_NEAR(us(busy), want.at("device_busy_us").get<double>(), 0.01);
    const TemporalReport temporal = temporal_breakdown(trace);
    EXPECT_NEAR(us(temporal.ranks.at(0).whole.whole()), want.at("span_us").get<double>(), 0.01);
    const auto count = [&](store::DeviceKind kind) { return std::count(d.kind.begin(), d.kind.end(), kind); };
    EXPECT_EQ(count(store::DeviceKind::kernel), want.at("kernels").get<int>());  // compute kernels only
    EXPECT_EQ(count(store::DeviceKind::communication), want.at("communication_kernels").get<int>());
    EXPECT_EQ(count(store::DeviceKind::memset), want.at("memcpy_memset").at("gpu_memset").get<int>());
    EXPECT_EQ(count(store::DeviceKind::memcpy), want.at("memcpy_memset").at("gpu_memcpy").get<int>());
}

TEST_F(SharedTraces, UnionsAndCollectivesOfDdp) {
    const char* name = "kineto/ddp_resnet_a100_2024.json.gz";
    const auto trace = open(name);
    check_unions(*trace, expected(name));
    std::map<schema::Operation, int> operations;
    for (const schema::Operation o : trace->collectives.operation) ++operations[o];
    EXPECT_EQ(operations[schema::Operation::all_reduce],
              expected(name).at("collectives").at("allreduce").get<int>());
    EXPECT_EQ(operations[schema::Operation::broadcast],
              expected(name).at("collectives").at("broadcast").get<int>());
    EXPECT_EQ(trace->collectives.size(), 15u + 6u);
    for (const std::int32_t size : trace->collectives.group_size) EXPECT_EQ(size, 2);
    ASSERT_EQ(trace->ranks.size(), 1u);
    const json& distributed = expected(name).at("distributedInfo");
    EXPECT_EQ(trace->ranks[0].number, distributed.at("rank").get<int>());
    EXPECT_EQ(fact(*trace, "distributed.backend"), distributed.at("backend").get<std::string>());
    EXPECT_EQ(fact(*trace, "distributed.world_size"), distributed.at("world_size").dump());
    check_invariants(*trace);
}

TEST_F(SharedTraces, UnionsOnMi300) {
    const char* name = "kineto/resnet18_mi300.json.gz";
    const auto trace = open(name);
    check_unions(*trace, expected(name));
    ASSERT_TRUE(expected(name).at("collectives").empty());
    EXPECT_EQ(trace->collectives.size(), 0u);
    // The process does not belong to a job of several, and nothing is reported about a job.
    ASSERT_TRUE(expected(name).at("distributedInfo").at("rank").is_null());
    EXPECT_EQ(fact(*trace, "distributed.backend"), "");
    EXPECT_EQ(fact(*trace, "distributed.world_size"), "");
    EXPECT_EQ(trace->ranks.size(), 1u);
    check_invariants(*trace);
}

class SharedNsight : public SharedTraces, public ::testing::WithParamInterface<const char*> {};

TEST_P(SharedNsight, CountsAndSums) {
    const auto trace = open(GetParam());
    const json& want = expected(GetParam());
    const store::DeviceEvents& d = trace->device;
    std::int64_t kernels = 0, kernel_ns = 0, copies = 0, copy_ns = 0, nccl = 0, nccl_ns = 0;
    for (std::size_t e = 0; e < d.size(); ++e) {
        const std::int64_t ns = d.end[e] - d.start[e];
        if (d.kind[e] == store::DeviceKind::memcpy) ++copies, copy_ns += ns;
        if (d.kind[e] == store::DeviceKind::kernel || d.kind[e] == store::DeviceKind::communication)
            ++kernels, kernel_ns += ns;
        if (d.kind[e] == store::DeviceKind::communication) ++nccl, nccl_ns += ns;
    }
    EXPECT_EQ(kernels, want.at("CUPTI_ACTIVITY_KIND_KERNEL")[0].get<std::int64_t>());
    EXPECT_EQ(kernel_ns, want.at("CUPTI_ACTIVITY_KIND_KERNEL")[1].get<std::int64_t>());
    EXPECT_EQ(copies, want.at("CUPTI_ACTIVITY_KIND_MEMCPY")[0].get<std::int64_t>());
    EXPECT_EQ(copy_ns, want.at("CUPTI_ACTIVITY_KIND_MEMCPY")[1].get<std::int64_t>());
    EXPECT_EQ(nccl, want.at("nccl_kernels")[0].get<std::int64_t>());
    if (nccl > 0) {
        EXPECT_EQ(nccl_ns, want.at("nccl_kernels")[1].get<std::int64_t>());
    }
    std::int64_t call_ns = 0;
    for (std::size_t c = 0; c < trace->runtime.size(); ++c)
        call_ns += trace->runtime.end[c] - trace->runtime.start[c];
    EXPECT_EQ(trace->runtime.size(), want.at("CUPTI_ACTIVITY_KIND_RUNTIME")[0].get<std::size_t>());
    EXPECT_EQ(call_ns, want.at("CUPTI_ACTIVITY_KIND_RUNTIME")[1].get<std::int64_t>());

    // Rows of NVTX_EVENTS: ranges, marks, and the names of domains, which a trace does not keep as rows.
    std::int64_t range_ns = 0, names = 0;
    std::map<std::string, std::string> short_names;  // short names of kernels, by the displayed name
    for (std::size_t r = 0; r < trace->ranges.size(); ++r)
        range_ns += trace->ranges.end[r] - trace->ranges.start[r];
    {
        const importer::KnownFile file(importer::Input::open((shared_folder() / GetParam()).string(), {}));
        store::Database database(file.database(), store::Database::Mode::read_only);
        if (database.has_table("NVTX_EVENTS"))
            names = database.integer("SELECT count(*) FROM NVTX_EVENTS WHERE eventType IN (75, 76)");
        store::Statement rows(
            database,
            "SELECT DISTINCT d.value, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k "
            "JOIN StringIds d ON d.id = k.demangledName JOIN StringIds s ON s.id = k.shortName");
        while (rows.step()) short_names[std::string(rows.text(0))] = rows.text(1);
    }
    const json nvtx = want.value("NVTX_EVENTS", json::array({0, 0}));
    EXPECT_EQ(static_cast<std::int64_t>(trace->ranges.size() + trace->marks.size()) + names,
              nvtx[0].get<std::int64_t>());
    EXPECT_EQ(range_ns, nvtx[1].get<std::int64_t>());
    EXPECT_EQ(fact(*trace, "nsight.schema_version"), want.at("schema")[0][0].get<std::string>());

    std::map<std::string, std::pair<std::int64_t, std::int64_t>> by_name;
    std::set<std::string> shown;
    for (const RankKernels& rank : kernels_report(*trace).ranks) {
        for (const KernelStats& k : rank.kernels) {
            shown.insert(std::string(k.name));
            by_name[short_names.at(std::string(k.name))].first += k.count;
            by_name[short_names.at(std::string(k.name))].second += k.total;
        }
    }
    EXPECT_EQ(shown.size(), short_names.size());  // one row per full name
    for (const json& row : want.at("top_kernels_shortname_count_ns")) {
        const auto& found = by_name[row[0].get<std::string>()];
        EXPECT_EQ(found.first, row[1].get<std::int64_t>()) << row;
        EXPECT_EQ(found.second, row[2].get<std::int64_t>()) << row;
    }
    check_invariants(*trace);
}

// Rows and their time, as summed by the sqlite3 program.
TEST_P(SharedNsight, TimeOfTheProfiler) {
    const std::map<std::string, std::pair<std::size_t, std::int64_t>> expected_rows = {
        {"nsight/pytorch_2xh100_2026.2.sqlite.gz", {0, 0}},
        {"nsight/ddp_2x3090_2026.3.sqlite.gz", {111, 682'206'760}},
        {"nsight/cloverleaf_2024.5.sqlite.gz", {47, 102'764'199}}};
    const std::map<std::string, std::int64_t> flushes = {{"nsight/ddp_2x3090_2026.3.sqlite.gz", 577'035},
                                                         {"nsight/cloverleaf_2024.5.sqlite.gz", 12'614}};
    const auto trace = open(GetParam());
    std::int64_t sum = 0, flush = 0;
    for (const schema::ProfilerOverheadRow& row : trace->profiler_overheads) {
        const std::string_view name = trace->strings[row.name];
        sum += row.end - row.start;
        if (name == "CUPTI Buffer flush" || name == "CUPTI: Buffer flush") flush += row.end - row.start;
    }
    EXPECT_EQ(trace->profiler_overheads.size(), expected_rows.at(GetParam()).first);
    EXPECT_EQ(sum, expected_rows.at(GetParam()).second);
    EXPECT_EQ(flush, flushes.contains(GetParam()) ? flushes.at(GetParam()) : 0);
}

INSTANTIATE_TEST_SUITE_P(Files, SharedNsight,
                         ::testing::Values("nsight/pytorch_2xh100_2026.2.sqlite.gz",
                                           "nsight/ddp_2x3090_2026.3.sqlite.gz",
                                           "nsight/cloverleaf_2024.5.sqlite.gz"),
                         name_of_file);

TEST_F(SharedTraces, PeakOfAnFsdp2Snapshot) {
    const char* name = "memory/fsdp2_rank0.pickle.gz";
    const auto trace = open(name);
    const json& want = expected(name);
    const MemoryReport memory = memory_report(*trace);
    ASSERT_EQ(memory.ranks.size(), 1u);
    EXPECT_EQ(memory.ranks[0].peak_bytes, want.at("peak_active_bytes").get<std::int64_t>());
    const std::int64_t utc_ns = trace->start_utc_ns + memory.ranks[0].peak_time_ns;
    EXPECT_EQ(utc_ns / 1000, want.at("peak_time_us").get<std::int64_t>());
    std::int64_t live = 0;
    for (const std::int64_t bytes : trace->memory.bytes) live += bytes;
    EXPECT_EQ(live, want.at("live_at_end_bytes").get<std::int64_t>());

    // Its events: blocks that were allocated before the first event count as allocations of their own (here
    // only the bytes of their rounding). Of the two events that free a block, the completed free counts.
    const store::MemoryEvents& events = trace->memory;
    std::int64_t allocations = 0, frees = 0, before = 0;
    for (std::size_t e = 0; e < events.size(); ++e) {
        if (events.bytes[e] < 0) {
            ++frees;
        } else if (trace->strings[events.annotation[e]] == store::kRoundingOfBlocks) {
            before += events.bytes[e];
        } else {
            ++allocations;
        }
    }
    const json& actions = want.at("actions");
    EXPECT_EQ(allocations, actions.at("alloc").get<std::int64_t>());
    EXPECT_EQ(frees, actions.at("free_completed").get<std::int64_t>());
    EXPECT_EQ(before, want.at("live_at_start_bytes").get<std::int64_t>());
    EXPECT_EQ(actions.at("free_requested"), actions.at("free_completed"));
    const auto segments = static_cast<std::int64_t>(trace->segments.size());
    EXPECT_EQ(segments, want.at("segments").get<std::int64_t>());  // no segment was released
    EXPECT_TRUE(std::all_of(trace->segments.bytes.begin(), trace->segments.bytes.end(),
                            [](std::int64_t bytes) { return bytes > 0; }));
    EXPECT_GE(segments, actions.at("segment_alloc").get<std::int64_t>());
    EXPECT_EQ(trace->ranks.at(0).device, want.at("device").get<int>());
    // An annotation has a start and an end.
    EXPECT_EQ(2 * trace->ranges.size(), want.at("external_annotations").get<std::size_t>());
    check_invariants(*trace);
}

// What jobs of others answer, and what their traces cannot: checked against the other programs' numbers
// above.
TEST_F(SharedTraces, AnswersOfJobsOfOthers) {
    const auto said = [&](const std::string& name, Question question) {
        const RunAnswers run = answers(*open(name));
        return run.answers.at(static_cast<std::size_t>(question));
    };
    const std::string dlrm = "kineto/dlrm_8ranks_v100_2023";
    EXPECT_EQ(said(dlrm, Question::late).rank, latest_rank(straggler_report(*open(dlrm))));
    EXPECT_FALSE(said(dlrm, Question::peak).known);
    const std::string snapshot = "memory/fsdp2_rank0.pickle.gz";
    const Answer peak = said(snapshot, Question::peak);
    EXPECT_EQ(peak.figures.at(0).value,
              static_cast<double>(memory_report(*open(snapshot)).ranks.at(0).peak_bytes));
    EXPECT_EQ(said(snapshot, Question::exposed).says,
              "Which communication is exposed is unknown, because the trace has no work of a device.");
    EXPECT_EQ(said("kineto/ddp_resnet_a100_2024.json.gz", Question::late).says,
              "Which rank is late is unknown, because the trace has one of 2 ranks.");
    EXPECT_EQ(said("kineto/resnet50_v100_2021.pt.trace.json.gz", Question::change).rule, "data-loader");
    const std::string nsight = "nsight/ddp_2x3090_2026.3.sqlite.gz";
    EXPECT_TRUE(said(nsight, Question::time).says.starts_with("The whole trace, which has no steps, takes "));
    EXPECT_TRUE(
        said(nsight, Question::late).says.starts_with("No rank is late: on average, a rank waits only "));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
