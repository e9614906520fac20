// Converts records of NCCL's operations to rows, in the orders in which the logs of several threads can
// deliver them.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "profiler/inject/nccl_records.h"
#include "profiler/record/handlers.h"
#include "tests/profiler/memory_sink.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using testing::MemorySink;
using testing::Received;

class NcclHandler : public ::testing::Test {
  protected:
    NcclHandler() {
        converter_.add_handler(RecordKind::nccl_first, RecordKind::nccl_last, make_nccl_handler());
    }

    template <typename Record>
    void feed(std::uint32_t tid, const Record& record) {
        converter_.convert(tid, tid, {reinterpret_cast<const std::byte*>(&record), sizeof record});
    }
    void start(std::uint32_t tid, std::uint64_t ticks, std::uint64_t id, std::uint64_t parent,
               NcclEvent event) {
        NcclStartRecord r{};
        r.header = {sizeof r, kNcclStart, 0, 0};
        r.ticks = Ticks(ticks);
        r.id = id;
        r.parent = parent;
        r.event = event;
        r.sequence = event == NcclEvent::call ? -1 : 5;
        std::strcpy(r.function, "AllReduce");
        feed(tid, r);
    }
    void stop(std::uint32_t tid, std::uint64_t ticks, std::uint64_t id) {
        feed(tid, NcclStopRecord{{sizeof(NcclStopRecord), kNcclStop, 0, 0}, Ticks(ticks), id});
    }
    // Rows as "thread sequence", in the order in which the sink received them.
    std::vector<std::string> rows() const {
        std::vector<std::string> rows;
        for (const auto& row : got_.nccl_operations) {
            rows.push_back(std::to_string(row.global_tid & 0xFFFFFF) + " " + std::to_string(row.sequence) +
                           (row.end ? "" : " open"));
        }
        return rows;
    }
    std::vector<std::string> closed() {
        converter_.close_open_ranges(1'000'000);
        return rows();
    }

    Received got_;
    MemorySink sink_{got_};
    Calibration clock_{ClockSource::monotonic};
    RecordConverter converter_{sink_, clock_, MonotonicTime(0), 77};
};

constexpr std::uint32_t kCaller = 1, kLauncher = 2;
using Rows = std::vector<std::string>;

TEST_F(NcclHandler, an_operation_began_with_its_call_on_the_callers_thread) {
    start(kCaller, 100, 10, 0, NcclEvent::call);
    stop(kCaller, 110, 10);
    start(kLauncher, 200, 20, 10, NcclEvent::operation);
    stop(kLauncher, 210, 20);
    ASSERT_EQ(rows(), Rows{"1 5"});
    EXPECT_EQ(got_.nccl_operations[0].start, converter_.to_trace_ns(Ticks(100)));
    EXPECT_EQ(got_.nccl_operations[0].end, converter_.to_trace_ns(Ticks(210)));
    EXPECT_EQ(closed().size(), 1u);
}

TEST_F(NcclHandler, the_launching_threads_log_may_come_first) {
    start(kLauncher, 200, 20, 10, NcclEvent::operation);
    stop(kLauncher, 210, 20);
    EXPECT_EQ(rows(), Rows{});
    start(kCaller, 100, 10, 0, NcclEvent::call);
    stop(kCaller, 110, 10);
    ASSERT_EQ(rows(), Rows{"1 5"});
    EXPECT_EQ(got_.nccl_operations[0].start, converter_.to_trace_ns(Ticks(100)));
    EXPECT_EQ(closed().size(), 1u);
}

TEST_F(NcclHandler, an_end_may_come_before_its_start) {
    stop(kCaller, 210, 20);
    start(kLauncher, 200, 20, 0, NcclEvent::operation);
    ASSERT_EQ(rows(), Rows{"2 5"});
    EXPECT_EQ(got_.nccl_operations[0].end, converter_.to_trace_ns(Ticks(210)));
}

TEST_F(NcclHandler, an_event_without_its_other_half_is_handed_on_when_the_process_ends) {
    start(kLauncher, 200, 20, 99, NcclEvent::operation);  // its call precedes the recording
    stop(kLauncher, 210, 20);
    start(kLauncher, 300, 21, 0, NcclEvent::operation);  // never ended
    start(kCaller, 400, 11, 0, NcclEvent::call);         // never enqueued
    EXPECT_EQ(rows(), Rows{});
    const Rows wanted = {"2 5 open", "2 5", "1 -1 open"};
    EXPECT_EQ(closed(), wanted);
}

TEST_F(NcclHandler, calls_that_nothing_follows_do_not_pile_up) {
    constexpr std::uint64_t kMany = 50'000;
    for (std::uint64_t i = 1; i <= kMany; ++i) {
        start(kCaller, 100 + i, i, 0, NcclEvent::call);
        stop(kCaller, 100 + i, i);
    }
    EXPECT_GT(got_.nccl_operations.size(), kMany / 2);  // reported while it runs
    EXPECT_EQ(closed().size(), kMany);                  // none is lost
}

TEST_F(NcclHandler, a_record_that_is_cut_short_is_damage) {
    NcclStartRecord r{};
    r.header = {sizeof(NcclStopRecord), kNcclStart, 0, 0};
    converter_.convert(1, 1, {reinterpret_cast<const std::byte*>(&r), sizeof(NcclStopRecord)});
    EXPECT_EQ(converter_.damaged(), 1);
    EXPECT_TRUE(closed().empty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
