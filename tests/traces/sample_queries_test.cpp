// samples/queries: every query states the question that it answers, runs unchanged on a file, and is right.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/outcome.h"
#include "tests/traces/sample_run.h"
#include "tests/traces/temporary_folder.h"
#include "traces/store/sqlite/query.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::query {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::StartsWith;

using Row = std::vector<store::QueryValue>;

class SampleQueries : public ::testing::Test {
  protected:
    SampleQueries() : path_(folder_ / "run.sqlite") {
        store::DatabaseWriter writer({.path = path_});
        write_sample_run(writer);
        writer.finish(3 * kSampleMs, 0);
    }
    std::vector<Row> rows_of(const std::string& name) const {
        const auto results =
            store::run_query(path_, bytes_of(std::string(SHARDSCOPE_SAMPLE_QUERIES) + "/" + name));
        return results.size() == 1 ? results[0].rows : std::vector<Row>();
    }
    static store::QueryValue whole(std::int64_t value) { return value; }
    static store::QueryValue real(double value) { return value; }
    static store::QueryValue chars(const char* value) { return std::string(value); }
    static store::QueryValue null() { return std::monostate{}; }

    TemporaryFolder folder_;
    std::string path_;
};

TEST_F(SampleQueries, AllRunAndDocumentTheirQuestion) {
    int queries = 0;
    for (const auto& entry : std::filesystem::directory_iterator(SHARDSCOPE_SAMPLE_QUERIES)) {
        if (entry.path().extension() != ".sql") continue;
        ++queries;
        const std::string sql = bytes_of(entry.path().string());
        EXPECT_THAT(sql, StartsWith("-- ")) << entry.path();
        EXPECT_NE(sql.find('?'), std::string::npos) << entry.path() << " asks no question";
        const auto results = store::run_query(path_, sql);
        ASSERT_EQ(results.size(), 1u) << entry.path();
        if (entry.path().stem() == "staleness") continue;  // the run has no server
        EXPECT_FALSE(results[0].rows.empty()) << entry.path();
    }
    EXPECT_GE(queries, 8);
}

// The numbers follow from sample_run.h.

TEST_F(SampleQueries, KernelsByTime) {
    // 2 steps: sgemm 2 * 300 us, the gather 2 * 50 us: 600 of 700 us are 85.71 %.
    EXPECT_THAT(rows_of("kernels_by_time.sql"),
                Contains(ElementsAre(whole(0), chars("sgemm(float*, int)"), whole(2), real(0.6), real(300),
                                     real(85.71))));
}

TEST_F(SampleQueries, KernelSpread) {
    // sgemm takes 300 us in both steps.
    EXPECT_THAT(rows_of("kernel_spread.sql"),
                Contains(ElementsAre(whole(1), chars("sgemm(float*, int)"), whole(2), chars("600.000 µs"),
                                     chars("300.000 µs"), chars("300.000 µs"), chars("300.000 µs"))));
}

// Two workers: the first one's second update comes after one of the other, of which it has not heard.
TEST_F(SampleQueries, Staleness) {
    path_ = folder_ / "served.sqlite";
    store::DatabaseWriter writer({.path = path_});
    writer.add(schema::RankRow{.rank = 0, .global_pid = sample_pid()});
    for (const int stream : {10, 11})
        writer.add(
            schema::StreamRow{.rank = 0, .stream = stream, .name = "serve " + std::to_string(stream - 10)});
    std::int64_t id = 0;
    const auto answer = [&](int stream, std::int64_t at) {
        writer.add(schema::MemcpyRow{.start = at,
                                     .end = at + 1,
                                     .stream = stream,
                                     .correlation = ++id,
                                     .global_pid = sample_pid(),
                                     .bytes = 64,
                                     .copy_kind = schema::kCopyDeviceToDevice});
    };
    const auto update = [&](int stream, std::int64_t at) {
        writer.add(schema::KernelRow{.start = at,
                                     .end = at + 1,
                                     .stream = stream,
                                     .correlation = ++id,
                                     .global_pid = sample_pid(),
                                     .short_name = writer.intern("sgd_step")});
    };
    answer(10, 0), answer(11, 1);
    update(10, 10), answer(10, 11);
    update(11, 12), answer(11, 13);
    update(10, 20), update(11, 21);
    writer.finish(30, 0);
    EXPECT_THAT(rows_of("staleness.sql"),
                ElementsAre(ElementsAre(whole(0), whole(0), whole(1), real(25), chars("#############")),
                            ElementsAre(whole(0), whole(1), whole(3), real(75),
                                        chars("########################################"))));
}

TEST_F(SampleQueries, Compression) {
    // A rank of two sends half of the 4096 bytes of a gather, and would send all of an all-reduce.
    EXPECT_THAT(rows_of("compression.sql"), Contains(ElementsAre(whole(0), chars("root"), whole(1), whole(1),
                                                                 real(2048), real(4096), real(2))));
}

TEST_F(SampleQueries, HiddenCollectives) {
    // The gather runs from 100 to 150 us, sgemm from 200 us on: nothing hides the gather.
    EXPECT_THAT(rows_of("hidden_collectives.sql"),
                Contains(ElementsAre(whole(0), chars("all_gather"), chars("root"), chars("forward"),
                                     chars("100.000 µs"), chars("50.000 µs"), chars("50.000 µs"))));
}

TEST_F(SampleQueries, Losses) {
    EXPECT_THAT(rows_of("losses.sql"), ElementsAre(ElementsAre(whole(0), null(), real(2.5), null(), null()),
                                                   ElementsAre(whole(1), null(), real(1.5), null(), null())));
}

TEST_F(SampleQueries, PeakMemory) {
    // The first of the equal peaks, at 90 us in the first step; rank 1 is 10 us later.
    EXPECT_THAT(
        rows_of("peak_memory.sql"),
        ElementsAre(
            ElementsAre(whole(0), real(0.09), whole(5096), chars("unsharded_parameters"), whole(4096)),
            ElementsAre(whole(0), real(0.09), whole(5096), chars("parameters"), whole(1000)),
            ElementsAre(whole(1), real(0.1), whole(5096), chars("unsharded_parameters"), whole(4096)),
            ElementsAre(whole(1), real(0.1), whole(5096), chars("parameters"), whole(1000))));
}

TEST_F(SampleQueries, MemoryOverTime) {
    EXPECT_THAT(rows_of("memory_over_time.sql"),
                Contains(ElementsAre(whole(1), whole(1), chars("unsharded_parameters"), whole(4096))));
}

TEST_F(SampleQueries, MemoryAgainstPrediction) {
    // The shard's 1000 are still allocated when step 1 begins; 1000 + 4096, as predicted for step 0 and all
    // later ones.
    EXPECT_THAT(rows_of("memory_against_prediction.sql"),
                ElementsAre(ElementsAre(whole(0), whole(0), whole(5096), whole(5096), whole(0)),
                            ElementsAre(whole(0), whole(1), whole(5096), whole(5096), whole(0)),
                            ElementsAre(whole(1), whole(0), whole(5096), whole(5096), whole(0)),
                            ElementsAre(whole(1), whole(1), whole(5096), whole(5096), whole(0))));
}

TEST_F(SampleQueries, UnitTraffic) {
    EXPECT_THAT(
        rows_of("unit_traffic.sql"),
        Contains(ElementsAre(whole(1), chars("root"), chars("FullyShardedDataParallel_0"), whole(2048),
                             whole(2), whole(8192), real(0.1), whole(0), whole(0), real(0))));
}

TEST_F(SampleQueries, CollectivesByOperation) {
    // 2 * 4096 bytes in 2 * 50 us: 0.08192 GB/s.
    EXPECT_THAT(rows_of("collectives_by_operation.sql"),
                Contains(ElementsAre(whole(0), chars("all_gather"), chars("forward"), whole(2), whole(8192),
                                     whole(192), real(0.1), real(0.082))));
}

TEST_F(SampleQueries, SlowestSteps) {
    EXPECT_THAT(rows_of("slowest_steps.sql"),
                Contains(ElementsAre(whole(1), whole(0), real(1), real(0.05), whole(1), real(2.5))));
}

TEST_F(SampleQueries, RuntimeCalls) {
    EXPECT_THAT(rows_of("runtime_calls.sql"), Contains(ElementsAre(whole(0), chars("cudaLaunchKernel_v7000"),
                                                                   whole(2), real(0.004), real(2), real(2))));
}

TEST_F(SampleQueries, ProfilerOverhead) {
    EXPECT_THAT(rows_of("profiler_overhead.sql"),
                ElementsAre(ElementsAre(whole(0), null(), whole(0), real(0), real(0)),
                            ElementsAre(whole(1), null(), whole(0), real(0), real(0))));
    // Flushes of rank 0 as Nsight Systems reports them, then CUPTI's own report and CUDA's work, both of rank
    // 1.
    const std::string first = std::to_string(sample_tid(0)), second = std::to_string(sample_tid(1));
    store::Database(path_, store::Database::Mode::read_write)
        .execute(
            "INSERT INTO StringIds VALUES (999999, 'CUPTI Buffer flush');"
            "INSERT INTO PROFILER_OVERHEAD VALUES (1000, 4000, " +
            first + ", 999999, 3), (5000, 6000, " + first +
            ", 999999, 3);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES (1000, 3000, 0, " +
            second + ", 0, NULL, 5), (1000, 9000, 0, " + second + ", 0, NULL, 7);");
    EXPECT_THAT(
        rows_of("profiler_overhead.sql"),
        ElementsAre(ElementsAre(whole(0), chars("CUPTI Buffer flush"), whole(2), real(0.004), real(0.003)),
                    ElementsAre(whole(1), chars("Resource creation/destruction (Profiler)"), whole(1),
                                real(0.002), real(0.002))));
}

TEST_F(SampleQueries, ModuleTimes) {
    EXPECT_THAT(rows_of("module_times.sql"),
                Contains(ElementsAre(whole(0), chars("net.0"), chars("Linear_0"), chars("root"), whole(1000),
                                     whole(2), real(0.4), real(200))));
}

TEST_F(SampleQueries, ExposedWaits) {
    // The compute stream of a rank: in each step 100 us between sgemm (to 500) and the copy (at 600), 80 us
    // between the copy (to 620) and the memset, which does not count as work here; the next step's sgemm
    // starts at 1200: 580 us after the copy. 100 + 580 + 100 = 780 us.
    EXPECT_THAT(rows_of("exposed_waits.sql"),
                Contains(ElementsAre(whole(0), whole(1), chars("compute"), whole(3), real(0.78), real(0.58),
                                     chars("sgemm"))));
}

TEST_F(SampleQueries, Stragglers) {
    // All parts of a gather take 50 us: no rank waits.
    EXPECT_THAT(rows_of("stragglers.sql"), Contains(ElementsAre(chars("all_gather"), whole(7), whole(0),
                                                                chars("root"), whole(0), real(0))));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::query
