// The simulated device compared with the CPU's: for every pair of options of the grid the same peaks, by
// category, unit and module, and the same collectives in the same order, although the simulation only counts
// what the CPU executes.
#include <gtest/gtest.h>

#include "parity_grid.h"
#include "trace_testing.h"
#include "trainer/sim/sim_trace.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::sim {
namespace TEST_FILE {

using testing::Point;

struct Simulated {
    SimResult result;
    std::unique_ptr<traces::store::Trace> trace;
};

Simulated simulate(const job::Job& job) {
    const sharding::Program program(job);
    const Cluster cluster = load_cluster("laptop");
    traces::store::ColumnSink sink;
    SimTrace trace(sink, program, cluster, job.run.ranks);
    SimOptions options;
    options.every_step = true;
    SimResult result = simulate(program, cluster, options, &trace);
    return {std::move(result), sink.take()};
}

// "all_gather 4096 (16 padding) unit 2 forward of 0", … for each rank and communicator, by sequence number.
std::map<std::pair<int, std::int64_t>, std::vector<std::string>> collectives(
    const traces::store::Trace& trace) {
    const traces::store::Collectives& c = trace.collectives;
    std::map<std::tuple<int, std::int64_t, std::int64_t>, std::string> found;
    for (std::size_t i = 0; i < c.size(); ++i) {
        found[{c.rank[i], c.group[i], c.sequence[i]}] =
            std::string(traces::schema::name(c.operation[i])) + " " + std::to_string(c.bytes[i]) + " (" +
            std::to_string(c.padding[i]) + " padding) unit " + std::to_string(c.unit[i]) + " " +
            std::string(traces::schema::name(c.phase[i])) + " of " + std::to_string(c.group_size[i]);
    }
    EXPECT_EQ(found.size(), c.size()) << "a sequence number stands twice";
    std::map<std::pair<int, std::int64_t>, std::vector<std::string>> lists;
    for (const auto& [key, text] : found) lists[{std::get<0>(key), std::get<1>(key)}].push_back(text);
    return lists;
}

// Bytes of each allocation and free in host order, with what they are: a rank's complete account.
std::vector<std::string> memory(const traces::store::Trace& trace, int rank) {
    const traces::store::MemoryEvents& m = trace.memory;
    std::vector<std::string> events;
    for (std::size_t i = 0; i < m.size(); ++i) {
        if (m.rank[i] != rank) continue;
        events.push_back(std::to_string(m.bytes[i]) + " " + std::string(traces::schema::name(m.category[i])) +
                         " " + std::string(traces::schema::name(m.space[i])) + " unit " +
                         std::to_string(m.unit[i]) + " module " + std::to_string(m.module[i]));
    }
    return events;
}

void expect_equal(const plan::MemoryPeak& simulated, const plan::MemoryPeak& real, const std::string& what) {
    EXPECT_EQ(simulated.bytes, real.bytes) << what;
    EXPECT_EQ(simulated.at_peak, real.at_peak) << what;
    EXPECT_EQ(simulated.units, real.units) << what;
    EXPECT_EQ(simulated.modules, real.modules) << what;
    EXPECT_EQ(simulated.where, real.where) << what;
}

// Returns the number of collectives that were compared.
std::size_t compare(const job::Job& job, const std::string& what) {
    const sharding::Program program(job);
    const data::DataSource data = data::open_data(job);
    const executor::RunResult real = executor::run_training(program, *data.train);
    const Simulated simulated = simulate(job);
    EXPECT_EQ(real.peaks.size(), static_cast<std::size_t>(job.run.ranks));
    for (std::size_t rank = 0; rank < real.peaks.size(); ++rank)
        expect_equal(simulated.result.of(static_cast<int>(rank)).peak, real.peaks[rank], what);
    const auto trace = testing::record(job);
    const auto expected = collectives(*trace);
    EXPECT_EQ(collectives(*simulated.trace), expected) << what;
    EXPECT_EQ(memory(*simulated.trace, 0), memory(*trace, 0)) << what;
    return job.run.ranks > 1 ? expected.at({0, 0}).size() : 0;
}

TEST(SimMemory, PeaksAndCollectivesAreThoseThatTheCpuMeasures) {
    const testing::SampleText text;
    std::size_t compared = 0;
    for (const Point& p : testing::every_pair()) {
        job::Job job = testing::job_at(p, text);
        job.run.steps = 3;
        compared += compare(job, testing::describe(p));
        if (::testing::Test::HasFailure()) break;  // one failure is enough to read
    }
    EXPECT_GT(compared, 500u);
}

// Four ranks share two heads of keys and values.
TEST(SimMemory, OfATensorGroupThatSharesHeadsIsWhatTheCpuMeasures) {
    const testing::SampleText text;
    job::Job job = testing::with_wrap(testing::gpt_job(text, 2, 8), "module:LlamaBlock");
    job.run.steps = 3;
    job.model.type = job::ModelType::llama;
    job.model.heads = 4;
    job.model.kv_heads = 2;
    job.parallel.tensor = 4;
    job.parallel.sequence = true;
    EXPECT_GT(compare(job, "shared heads"), 0u);
}

// Each step's own peak, as the memory account predicts it: the first steps differ from the later ones.
TEST(SimMemory, EachStepsPeakIsThatOfTheAccount) {
    const testing::SampleText text;
    for (const job::FsdpLayout layout :
         {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
        job::Job job = testing::with_wrap(testing::gpt_job(text, 1, 4), "module:Block");
        job.fsdp.layout = layout;
        const sharding::Program program(job);
        const std::vector<std::int64_t> foretold = program.predict().steps;
        const Simulated simulated = simulate(job);  // it owns the steps
        const auto& steps = simulated.result.of(0).steps;
        ASSERT_EQ(steps.size(), 5u);
        for (std::size_t s = 0; s < steps.size(); ++s)
            EXPECT_EQ(steps[s].peak_bytes, foretold[std::min(s, foretold.size() - 1)]) << s;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sim
