// The inputs of the advice rules: the other analyses' results, computed once, and helpers that format them.
// Internal to the library. Times are in us where the name says so, else in nanoseconds; sizes are in bytes.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/advice/advice.h"
#include "traces/analysis/advice/advice_links.h"
#include "traces/analysis/base/shown_name.h"
#include "traces/analysis/base/warm_up.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/analysis/fsdp/unit_collectives.h"
#include "traces/analysis/fsdp/unit_ranges.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/job/utilization.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/path/critical_path.h"
#include "traces/analysis/path/replay.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/kernels.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/topology/pair_traffic.h"

namespace shardscope::traces::analysis {

// Communication that no compute kernel of its rank hides, from the moment when all ranks take part (without
// the wait for the last rank), in us per step of one rank.
struct ExposedTransfers {
    double all_us = 0, gathers_us = 0, reductions_us = 0;
};

// Collectives that host threads carry out (host_collectives.h), for ranks whose devices did not communicate.
struct HostCommunication {
    std::string library;     // "Gloo", "MPI"; empty: no such collectives
    double us = 0;           // per step of one rank: the union of their time
    double waiting_us = 0;   // per step of one rank: durations beyond the shortest among the ranks
    double count = 0;        // per step of one rank
    std::int64_t bytes = 0;  // per step of one rank, of those whose bytes are known; 0: none known
    int waited_for = -1;     // the number of the rank that waits least; -1: unknown, or all wait alike
    double least_waiting_us = 0, most_waiting_us = 0;  // per step, of the ranks that wait least and most
};

struct AdviceFacts {
    AdviceFacts(const store::Trace& trace, const Selection& selection);

    const store::Trace& trace;
    std::optional<WarmUp> warm_up;  // the step that is excluded
    Selection selection;            // without that step
    ExecutionSummary summary;
    UnitsReport units;
    IdleReport idle;
    KernelsReport kernels;
    MemoryReport memory;
    CriticalPathReport path;
    StragglersReport stragglers;
    UtilizationReport use;  // of all selected time
    Replay replay;
    UnitRanges unit_ranges;
    std::vector<UnitCollective> collectives;  // the selected gathers and reductions
    LinkReport links;
    TopologyReport topology;  // empty where the trace knows no devices and links
    ExposedTransfers exposed;
    double transfers_us = 0;  // per step, without waiting, on the rank with most: a step takes at least this
    // Mean window of a kept step, over the ranks that have one. 0: there is none, or the trace has no device
    // work (a memory snapshot); rules about the time of a step then find no evidence.
    double step_us = 0;
    bool device_work = false;  // false: a memory snapshot, or a run on the host only
    double host_step_us = 0;   // the same mean if nothing ran on a device; 0: no steps, or step_us is set
    HostCommunication on_host;
    // Per step of one rank: its host waits while files are read or written and no kernel runs.
    double file_waits_us = 0;

    std::string_view config(std::string_view key) const { return trace.config_value(key); }
    // The name of the communication library: "Gloo" if host threads communicate, else the backend that the
    // run recorded, else "NCCL".
    std::string_view backend() const;
    bool ours() const { return !config("parallel.mode").empty(); }  // the run was made from a job file
    // " per step", "each step"; for a trace without steps "in the whole trace", "the whole trace".
    std::string_view a_step() const { return trace.steps.empty() ? " in the whole trace" : " per step"; }
    std::string_view each_step() const { return trace.steps.empty() ? "the whole trace" : "each step"; }

    // The rank with the highest peak; null if no allocation is recorded.
    const RankMemory* highest_peak() const;
    std::int64_t at_peak(const RankMemory& rank, schema::MemoryCategory category) const {
        return rank.at_peak[static_cast<std::size_t>(category)];
    }

    // Converts nanoseconds summed over all kept steps of all ranks to us per step of one rank.
    double per_step_us(std::int64_t ns) const;
    double percent_of_step(double us) const { return step_us > 0 ? 100 * us / step_us : 0; }
    // The same, but a step without device work counts with its host time.
    double percent_of_any_step(double us) const {
        const double step = step_us > 0 ? step_us : host_step_us;
        return step > 0 ? 100 * us / step : 0;
    }
    // Time on the job's critical path or, for a trace of one rank, on that rank's.
    double on_path_us(PathKind kind) const;

    // For each rank: the host's time in the ranges whose index `accept` accepts.
    std::vector<IntervalSet> host_time(const std::function<bool(std::size_t)>& accept) const;
    std::vector<IntervalSet> loader_time() const;

    // Writes into the finding how long a step would take with the change, according to the replay, and the
    // gain. The step never takes less than `least_us`. `were`: "If collectives were twice as fast,".
    void predict(Finding& finding, const PathChange& change, std::string_view were,
                 double least_us = 0) const;

    // The same for collectives of a unit or bucket that are split into `parts`, of which all but one run
    // during compute. `accept` selects those collectives.
    void predict_in_parts(Finding& finding, int parts,
                          const std::function<bool(const UnitCollective&)>& accept,
                          std::string_view were) const;
};

// Settings that the job does not have yet, joined by ", ".
class Settings {
  public:
    explicit Settings(const AdviceFacts& facts) : facts_(facts) {}
    // Skips the setting if the run's key already has the value; `text` replaces "key = value".
    Settings& add(std::string_view key, std::string_view value, std::string_view text = {});
    std::string text;

  private:
    const AdviceFacts& facts_;
};

std::string us_text(double us);              // "1,234.5 us", "12.3 ms"
std::string bytes_text(std::int64_t bytes);  // "1.5 MiB"
std::string percent_text(double percent);    // "12.3 %"

// The rules, by subject.
std::span<const AdviceRule> wrong_rules();
std::span<const AdviceRule> communication_rules();
std::span<const AdviceRule> topology_rules();
std::span<const AdviceRule> time_rules();
std::span<const AdviceRule> sharding_rules();
std::span<const AdviceRule> memory_rules();
std::span<const AdviceRule> use_rules();

// Waiting on the ranks' critical paths.
struct WaitingForOne {
    double mean_us = 0;     // per step of one rank
    int rank = 0;           // the number of the rank that is waited for most
    double share = 0;       // of the waiting
    std::size_t paths = 0;  // number of ranks with a path
};
// None if fewer than two ranks have a path, or no rank waits.
std::optional<WaitingForOne> waiting_of_ranks(const AdviceFacts& facts);
// Only if it is a noticeable part of a step and mostly for one rank.
std::optional<WaitingForOne> waiting_for_one(const AdviceFacts& facts);
// A sentence: the rank that is waited for most is not the one that arrives last.
std::string measures_disagree(const AdviceFacts& facts, const WaitingForOne& waiting);

// What takes longer on one rank than the others' median, as factors that would make it equal to them.
struct Slowness {
    PathFactors factors = kUnscaled;
    std::string words;  // "its compute takes 1.5 times as long"; empty: nothing is longer
};
// `rank`: index into Trace::ranks.
Slowness slowness_of(const AdviceFacts& facts, std::size_t rank);

// What the rules could not decide, one sentence each: "Whether a link is slow is unknown, because ...".
std::vector<std::string> what_cannot_be_said(const AdviceFacts& facts);

// Writes what to change if memory does not suffice: the finding's sentence, settings and line of PyTorch.
void suggest_less_memory(const AdviceFacts& facts, Finding& finding);

}  // namespace shardscope::traces::analysis
