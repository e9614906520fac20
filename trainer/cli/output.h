// What a person sees of a run: the progress line, the tables at its end, the JSON result.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/executor/cpu_executor.h"
#include "trainer/plan/account.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer {

// One line on standard error with step, loss, throughput and time left: rewritten in place on a terminal,
// otherwise a new line every few seconds.
class Progress {
  public:
    explicit Progress(const Job& job);
    void report(const StepReport& step);
    void end();

  private:
    std::int64_t steps_;
    double items_per_step_;
    const char* items_;
    bool terminal_;
    double last_shown_ = -1;
    double first_done_ = 0;
    bool open_ = false;
};

// "4 ranks, fsdp FULL_SHARD wrap module:Block, gpt 4 x 128: 0.84 M parameters in 5 units".
std::string describe_run(const Program& program);

// Peak by category, for runs without a trace.
std::string peak_table(const MemoryPeak& peak);

std::string dry_run_text(const Program& program);
std::string dry_run_json(const Program& program);

struct TrainResult {
    double average_step_us = 0;
    std::string trace;
};
std::string train_json(const RunResult& run, const TrainResult& result);

}  // namespace shardscope::trainer
