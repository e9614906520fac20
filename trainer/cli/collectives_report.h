// The figures of shardscope-train --bench-collectives as a table, JSON and CSV. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/executor/collective_bench.h"

namespace shardscope::trainer::cli {

struct BenchedCollectives {
    executor::CollectiveBench bench;
    int ranks = 0;
    std::string group;            // what carries them: "threads of this process (local)"
    std::string trace;            // the file; empty: none
    std::string no_messages_why;  // a sentence if messages could not be measured
    bool pairs = false;           // the messages are of all pairs of ranks
    bool simulated = false;       // a cost model's prediction
};

std::string collectives_text(const BenchedCollectives& result);
std::string collectives_json(const BenchedCollectives& result);
// A row for each collective and each kind of message.
std::string collectives_csv(const BenchedCollectives& result);

// The same over several engines of collectives, from the JSON of each.
struct BenchedEngine {
    std::string engine;
    std::string json;   // empty: it could not be measured
    std::string error;  // then why, in one sentence
};
// Side by side; an engine that could not be measured is a line that says why.
std::string engines_text(const std::vector<BenchedEngine>& engines, int ranks);
std::string engines_json(const std::vector<BenchedEngine>& engines);
std::string engines_csv(const std::vector<BenchedEngine>& engines);

}  // namespace shardscope::trainer::cli
