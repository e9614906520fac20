// What a recording that is watched takes from its rows.
#include "profiler/record/live_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiler/memory_sink.h"
#include "traces/schema/enums.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using traces::schema::global_pid;
using traces::schema::global_tid;

class LiveRowsTest : public ::testing::Test {
  protected:
    void rank(int number, std::int64_t pid) {
        traces::schema::RankRow row;
        row.rank = number;
        row.global_pid = global_pid(pid);
        row.host = "node1";
        live_.take(row);
    }
    void range(std::int64_t pid, const std::string& text, bool ended = true) {
        traces::schema::RangeRow row;
        row.start = 1;
        if (ended) row.end = 2;
        row.text = sink_.intern(text);
        row.global_tid = global_tid(pid, pid);
        live_.take(row, sink_);
    }
    void counter(int rank, const char* name, double value) {
        traces::schema::CounterRow row;
        row.rank = rank;
        row.name = sink_.intern(name);
        row.value = value;
        live_.take(row, sink_);
    }

    testing::Received received_;
    testing::MemorySink sink_{received_};
    LiveRows live_{"ProfilerStep#"};
};

TEST_F(LiveRowsTest, counts_the_steps_that_have_ended) {
    rank(0, 100);
    rank(1, 101);
    EXPECT_FALSE(live_.steps_done());
    for (const char* other :
         {"ProfilerStep#", "ProfilerStep#x", "ProfilerStep#3 of 7", "step 4", "ProfilerStep#-2"})
        range(100, other);
    range(100, "ProfilerStep#9", false);
    EXPECT_FALSE(live_.steps_done());
    range(100, "ProfilerStep#4");
    range(100, "ProfilerStep#5");
    range(101, "ProfilerStep#4");
    EXPECT_EQ(live_.ranks().at(0).steps_done, 6);
    EXPECT_EQ(live_.ranks().at(1).steps_done, 5);
    EXPECT_EQ(live_.steps_done(), 5);  // that all have done
}

TEST_F(LiveRowsTest, knows_where_each_rank_runs_and_what_it_uses) {
    rank(3, 100);
    counter(3, "process_cpu_cores", 1.5);
    counter(3, "process_resident_bytes", 4096);
    counter(3, "gpu_power_watts", 300);
    counter(-1, "process_resident_bytes", 1024);
    const LiveRows::Rank& own = live_.ranks().at(3);
    EXPECT_EQ(own.host, "node1");
    EXPECT_EQ(own.pid, 100);
    EXPECT_EQ(own.cores, 1.5);
    EXPECT_EQ(own.resident_bytes, 4096);
    EXPECT_EQ(live_.ranks().at(-1).resident_bytes, 1024);
}

TEST_F(LiveRowsTest, numbers_nccls_communicators_as_they_come) {
    traces::schema::NcclOperationRow row;
    row.rank = 1;
    row.communicator = 0xABCD;
    row.operation = traces::schema::Operation::all_reduce;
    row.sequence = 7;
    row.start = 10;
    row.end = 20;
    live_.take(row);
    row.communicator = 0x1234;
    row.end.reset();
    row.rank = 2;
    live_.take(row);
    const LiveRows::Rank& ended = live_.ranks().at(1);
    EXPECT_EQ(ended.collective->operation, "all_reduce");
    EXPECT_EQ(ended.collective->number, 7);
    EXPECT_EQ(ended.collective->group, 0);
    EXPECT_FALSE(ended.collective->open);
    EXPECT_EQ(ended.collective_ns, 20);
    EXPECT_TRUE(live_.ranks().at(2).collective->open);
    EXPECT_EQ(live_.ranks().at(2).collective->group, 1);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
