// A planner's results for one configuration of a job. Plain data. Sizes are bytes, times seconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/plan/account.h"

namespace shardscope::trainer::planner {

enum class Outcome : std::uint8_t {
    not_run,     // the search was stopped before this row
    impossible,  // the job is impossible; `reason` says why
    too_large,   // it needs more than the limit
    fits,
    excluded,  // it cannot win, by a lower bound (mesh_search.h); `reason` says why
};
inline constexpr std::array<std::string_view, 5> kOutcomeNames = {"not_run", "impossible", "too_large",
                                                                  "fits", "excluded"};
constexpr std::string_view name(Outcome outcome) {
    return kOutcomeNames[static_cast<std::size_t>(outcome)];
}

// The collectives of one operation in one phase that have the most exposed time.
struct MostExposed {
    std::string operation, phase;  // "all_gather", "forward"; empty: nothing is exposed
    double seconds = 0;            // all units, in the last step of rank 0
    std::string unit;              // unit with the most of it
    double unit_s = 0;
};

struct Times {
    double step = 0;       // mean of the run's steps, as shardscope-train prints it
    double exposed = 0;    // communication outside kernels, per step, mean over ranks
    double last_step = 0;  // of rank 0; parts of it follow
    double kernel = 0, copy = 0, last_exposed = 0;
    // The rest of the last step, without kernels and exposed communication: host, copies, waiting.
    double rest() const { return last_step - kernel - last_exposed; }
};

// One axis of a mesh: the ranks of a group, and where they are.
struct MeshAxis {
    std::string_view name;  // "tensor"
    int size = 1;
    int nodes = 1;         // the most that a group has ranks on
    double bandwidth = 0;  // bytes per second of the link that a group depends on; 0: unknown
    double exposed_s = 0;  // communication outside kernels in the last step, mean over the ranks
};

struct Row {
    int number = 0;  // number of the candidate, from 1: the same in every search of a space
    std::vector<job::Override> settings;  // all differences from the job file
    std::string of_job;                   // Candidate::of_job
    job::Job job;                         // as loaded; not set if the configuration is impossible
    Outcome outcome = Outcome::not_run;
    std::string reason;  // a sentence, if it is impossible, too large or excluded

    // No rank needs less, no step takes less (lower_bound.h); 0: unknown.
    std::int64_t least_bytes = 0;
    double least_step = 0;

    std::int64_t limit = 0;              // device memory that a rank may reserve
    std::string limit_of;                // "into the 100 bytes of run.memory_limit"
    plan::MemoryPeak peak;               // allocated bytes of every rank, by the memory account
    std::string peak_unit, peak_module;  // those that hold most of the peak; empty: none
    std::int64_t peak_unit_bytes = 0, peak_module_bytes = 0;

    bool timed = false;         // the figures below are set
    std::int64_t reserved = 0;  // the most that a rank's allocator reserved
    int nodes = 1;
    std::vector<MeshAxis> axes;  // those with several ranks, the innermost first (meshes.h)
    Times times;
    double mean_step_s = 0, mean_kernel_s = 0;  // of the last step, mean over the ranks
    double samples_per_s = 0;
    double tokens_per_s = 0;  // 0: the model does not count tokens
    double mfu = 0;           // model FLOPs utilisation (figures.h)
    double cost = 0;          // USD per million tokens (or samples); 0: the cluster has no price
    MostExposed exposed;

    bool front = false;  // on the Pareto front of allocated memory, reserved memory and time per sample
    bool tied = false;   // as fast as the fastest row that fits, within the model's error (kTie)
    int beaten_by = 0;   // number of the fastest front row that is no larger in either memory; 0: none
    int changes = 0;     // number of keys that differ from row 1
    int same_as = 0;     // number of a row with the same figures and at most as many changes; 0: none

    bool fits() const { return outcome == Outcome::fits; }
    bool can_be() const { return fits() || outcome == Outcome::too_large; }  // its memory is known
    double seconds_per_sample() const { return samples_per_s > 0 ? 1 / samples_per_s : 0; }
};

}  // namespace shardscope::trainer::planner
