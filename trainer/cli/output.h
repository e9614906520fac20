// A run's output for people: the progress line, the tables at its end, the JSON result.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "trainer/executor/run.h"
#include "trainer/plan/account.h"
#include "trainer/sharding/program.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::trainer::cli {

// Prints on standard error: step, epoch, loss, throughput (now and the mean), device memory (now and at the
// peak, of the rank that has most) and time left, rewritten in place on a terminal, otherwise a new line
// every few seconds; and a line for each event. Called from the ranks' threads, possibly concurrently.
class Progress {
  public:
    // `first_step`: steps done before this run.
    Progress(const job::Job& job, std::int64_t first_step);
    void report(const executor::StepReport& step);
    // `what`: "validation" or "test".
    void report(const executor::ValidationReport& report, const char* what = "validation");
    void say(const std::string& line);
    void end();

  private:
    void finish_line();
    std::string epoch_words(const std::optional<double>& epoch) const;

    std::mutex mutex_;
    std::int64_t steps_, first_step_, epochs_;
    executor::StepItems items_;
    bool terminal_;
    double last_shown_ = -1;
    double first_done_ = 0;
    bool open_ = false;  // the terminal shows a line that will be rewritten
};

// "8 ranks, FSDP FULL_SHARD, wrap module:Linear, CPU offload; mlp, 8 layers, width 1024: 8,396,800 parameters
// in 8 units": the strategy, the layout if it is not fsdp1, and every option that is not at its default.
std::string describe_run(const sharding::Program& program);

std::int64_t parameter_count(const sharding::Program& program);

// ", accuracy 71.20 %", or nothing where there are no classes to find.
std::string accuracy_words(const executor::ValidationReport& report);

// Peak by category, for runs without a trace.
std::string peak_table(const plan::MemoryPeak& peak);

// For rank 0: allocated, active and reserved, which mean different things (docs/definitions.md, "Memory").
std::string peaks_line(const executor::RunResult& run);
// For how long the rank that waited most did so, with memory.nvme; else nothing.
std::string files_line(const job::Job& job, const executor::RunResult& run);

// The tables of rank 0; the others do the same work, and shardscope-trace prints all of them.
std::string rank_zero_tables(const traces::store::Trace& trace);

struct TrainResult {
    double average_step_us = 0;
    std::string trace;
    std::string checkpoint;  // the last one saved; "": none
};
// "test" is as a "validation"'s; "epochs" of the data, by the end of the run; "losses" by step, from the
// first of this run, and "seconds", when each was known since the start; "step", "steps_done" and
// "stopped_at" count steps done, and "diverged_at" is the number of a step, from 0.
std::string train_json(const executor::RunResult& run, const TrainResult& result);

}  // namespace shardscope::trainer::cli
