// NCCL's profiler plugin: nccl_program calls it as NCCL does (see its first lines), and the result is
// collected, for each version of the interface.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/record/collector.h"
#include "profiler/record/launch.h"
#include "profiler/record/session.h"
#include "tests/profiler/memory_sink.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::MemorySink;
using testing::Received;
using traces::schema::NcclCommunicatorRow;
using traces::schema::NcclOperationRow;
using traces::schema::Operation;

constexpr std::uint64_t kFirst = 0xFEDCBA9876543210, kSecond = 0x22;

class NcclPlugin : public ::testing::TestWithParam<std::string> {
  protected:
    bool has_calls() const { return GetParam() >= "v5"; }
    bool told_at_init() const { return GetParam() >= "v4"; }

    int run(std::uint32_t sources, SessionState state, Command::Variables variables = {}) {
        SessionOptions options;
        options.sources = sources;
        Session session(options);
        session.set_state(state);
        MemorySink sink(got_);
        Calibration clock(clock_source());
        const auto origin = MonotonicTime::now();
        Collector collector(session.directory(), sink, clock, origin);
        variables.emplace_back("NCCL_PROFILER_PLUGIN", INJECT_LIBRARY);
        variables.emplace_back(kSessionVariable, session.directory());
        Command command({NCCL_PROGRAM, GetParam()}, variables);
        pid_ = command.pid();
        std::optional<int> status;
        while (!(status = command.wait(5ms))) collector.drain();
        end_ns_ = MonotonicTime::now() - origin;
        collector.finish(end_ns_);
        EXPECT_EQ(collector.damaged(), 0);
        EXPECT_EQ(collector.dropped(), 0);
        return *status;
    }

    std::vector<NcclOperationRow> operations(Operation operation) const {
        std::vector<NcclOperationRow> found;
        for (const auto& row : got_.nccl_operations) {
            if (row.operation == operation) found.push_back(row);
        }
        std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
        return found;
    }
    NcclOperationRow only(Operation operation) const {
        const auto found = operations(operation);
        EXPECT_EQ(found.size(), 1u) << traces::schema::name(operation);
        return found.empty() ? NcclOperationRow() : found.front();
    }

    Received got_;
    std::int64_t pid_ = 0, end_ns_ = 0;
};

TEST_P(NcclPlugin, reports_every_operation) {
    ASSERT_EQ(run(kSourceNccl, SessionState::recording), 0);

    const auto gathers = operations(Operation::all_gather);
    ASSERT_FALSE(gathers.empty());
    const NcclOperationRow& gather = gathers.front();
    EXPECT_EQ(gather.communicator, kFirst);
    EXPECT_EQ(gather.global_pid, traces::schema::global_pid(pid_));
    EXPECT_EQ(gather.global_tid, traces::schema::global_tid(pid_, pid_));
    EXPECT_EQ(gather.rank, 1);
    EXPECT_EQ(gather.sequence, 7);
    EXPECT_EQ(gather.count, 1000);
    EXPECT_EQ(gather.data_type, "ncclFloat32");
    EXPECT_EQ(gather.algorithm, "RING");
    EXPECT_EQ(gather.protocol, "LL128");
    EXPECT_EQ(gather.root, 0);
    EXPECT_EQ(gather.channels, 4);
    EXPECT_EQ(gather.warps, 16);
    ASSERT_TRUE(gather.end.has_value());
    EXPECT_LT(0, gather.start);
    EXPECT_LT(gather.start, *gather.end);
    EXPECT_LT(*gather.end, end_ns_);

    const auto send = only(Operation::send);
    EXPECT_EQ(send.communicator, kFirst);
    EXPECT_EQ(send.sequence, -1);
    EXPECT_EQ(send.count, 12);
    EXPECT_EQ(send.data_type, "ncclFloat16");
    EXPECT_EQ(send.root, 3);  // the peer
    EXPECT_EQ(send.algorithm, "");
    EXPECT_EQ(send.channels, told_at_init() ? 2 : -1);
    EXPECT_LE(*gather.end, send.start);
}

TEST_P(NcclPlugin, takes_the_end_of_an_event_after_its_communicator_and_the_plugin_are_gone) {
    ASSERT_EQ(run(kSourceNccl, SessionState::recording), 0);
    const auto reduce = only(Operation::all_reduce);
    EXPECT_NE(reduce.global_tid, traces::schema::global_tid(pid_, pid_));  // another thread called it
    EXPECT_EQ(reduce.global_tid & ~std::int64_t{0xFFFFFF}, traces::schema::global_pid(pid_));
    EXPECT_EQ(reduce.sequence, 3);
    EXPECT_EQ(reduce.data_type, "ncclBfloat16");
    EXPECT_EQ(reduce.algorithm, "TREE");
    EXPECT_EQ(reduce.protocol, "SIMPLE");
    // Its end, the main thread's last record, is later than everything in the second communicator.
    const auto broadcasts = operations(Operation::broadcast);
    ASSERT_FALSE(broadcasts.empty());
    ASSERT_TRUE(reduce.end.has_value());
    EXPECT_LT(*broadcasts.back().end, *reduce.end);
}

TEST_P(NcclPlugin, reports_the_communicators) {
    ASSERT_EQ(run(kSourceNccl, SessionState::recording), 0);
    ASSERT_EQ(got_.nccl_communicators.size(), 2u);
    const auto& row = [&](std::uint64_t id) -> const NcclCommunicatorRow& {
        const auto& all = got_.nccl_communicators;
        return *std::find_if(all.begin(), all.end() - 1, [&](const auto& c) { return c.communicator == id; });
    };
    EXPECT_EQ(row(kFirst).communicator, kFirst);
    EXPECT_EQ(row(kFirst).global_pid, traces::schema::global_pid(pid_));
    EXPECT_EQ(row(kFirst).rank, 1);
    EXPECT_EQ(row(kFirst).name, "pipeline");
    EXPECT_EQ(row(kFirst).ranks, told_at_init() ? 8 : 0);
    EXPECT_EQ(row(kFirst).nodes, told_at_init() ? 2 : 0);
    EXPECT_EQ(row(kSecond).communicator, kSecond);
    EXPECT_EQ(row(kSecond).rank, 0);
    EXPECT_EQ(row(kSecond).ranks, told_at_init() ? 2 : 0);
}

TEST_P(NcclPlugin, joins_calls_with_what_they_enqueued) {
    ASSERT_EQ(run(kSourceNccl, SessionState::recording), 0);
    const auto broadcasts = operations(Operation::broadcast);
    const auto barriers = operations(Operation::barrier);
    if (!has_calls()) {
        EXPECT_EQ(broadcasts.size(), 1u);
        EXPECT_TRUE(barriers.empty());
        return;
    }
    ASSERT_EQ(broadcasts.size(), 2u);  // one call, captured into a graph that ran twice
    EXPECT_EQ(broadcasts[0].sequence, 0);
    EXPECT_EQ(broadcasts[1].sequence, 1);
    EXPECT_LT(*broadcasts[0].end, broadcasts[1].start);
    ASSERT_EQ(barriers.size(), 1u);  // a call that enqueued nothing that NCCL reports
    EXPECT_EQ(barriers[0].sequence, -1);
    EXPECT_EQ(barriers[0].communicator, kSecond);
    EXPECT_TRUE(barriers[0].end.has_value());
}

TEST_P(NcclPlugin, reports_the_work_of_copy_engines_if_nccl_does) {
    ASSERT_EQ(run(kSourceNccl, SessionState::recording), 0);
    const auto gathers = operations(Operation::all_gather);
    ASSERT_EQ(gathers.size(), GetParam() == "v6" ? 2u : 1u);
    if (GetParam() != "v6") return;
    EXPECT_EQ(gathers[1].algorithm, "COPY_ENGINE");
    EXPECT_EQ(gathers[1].sequence, 8);
    EXPECT_EQ(gathers[1].count, 1000);
    EXPECT_EQ(gathers[1].data_type, "ncclFloat32");
}

TEST_P(NcclPlugin, keeps_only_communicators_before_the_window_opens) {
    Command::Variables no_handles;
    // The session is waiting: no event is accepted, so none has a handle.
    ASSERT_NE(run(kSourceNccl, SessionState::waiting), 0);  // nccl_program detects the missing handle
    EXPECT_TRUE(got_.nccl_operations.empty());
    EXPECT_EQ(got_.nccl_communicators.size(), told_at_init() ? 2u : 0u);
}

TEST_P(NcclPlugin, requests_nothing_if_nccl_is_not_recorded) {
    ASSERT_EQ(run(kSourceNvtx, SessionState::recording, {{"SHARDSCOPE_EXPECT_OFF", "1"}}), 0);
    EXPECT_TRUE(got_.nccl_operations.empty());
    EXPECT_TRUE(got_.nccl_communicators.empty());
}

INSTANTIATE_TEST_SUITE_P(Versions, NcclPlugin, ::testing::Values("v1", "v2", "v3", "v4", "v5", "v6"),
                         [](const auto& version) { return version.param; });

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
