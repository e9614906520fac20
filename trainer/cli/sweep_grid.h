// What a sweep runs: every combination of the values that the command line gives for keys of the job. Pure:
// reads no file, runs nothing.
//
// How values are separated in the text of one --section.key=TEXT:
//   1. a key that is given repeatedly has one value each time, as written;
//   2. a ';' in the text separates values, and commas belong to them ("root;module:A,B", "module:A,B;");
//   3. otherwise commas separate values, except inside [ ].
// A piece that is not a value of its key is an error, and so is a list ("30,60") without [ ] or ';' for a key
// that takes lists.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

// A key and the values that it takes in turn, as typed.
struct SweepAxis {
    std::string key;  // "section.key"
    std::vector<std::string> values;
};

struct SweepGrid {
    std::vector<job::Override> fixed;  // keys with a single value
    std::vector<SweepAxis> axes;       // keys with two or more, in the order of the command line
};

// One run of a sweep.
struct SweepPoint {
    std::vector<job::Override> settings;  // one per axis, in its order
    std::string name;  // its trace is "<name>.sqlite": "wrap=module-Linear,cpu_offload=true"
};

inline constexpr std::size_t kMaxSweepRuns = 4096;

// Sorts the overrides of a command line into axes and fixed keys. JobError for an unknown key, a value that
// its key does not take, one given twice, an ambiguous comma, a key that a sweep sets itself (run.trace), or
// more than kMaxSweepRuns combinations.
SweepGrid make_grid(const std::vector<job::Override>& overrides);

// Every combination, the last axis changing fastest; one point without settings if there is no axis.
// `job_name` names that point. Names are unique and valid file names.
std::vector<SweepPoint> combinations(const SweepGrid& grid, const std::string& job_name);

// The axes' keys as table headings: the last word ("wrap"), or the whole key if two end in the same word.
std::vector<std::string> short_names(const std::vector<SweepAxis>& axes);

}  // namespace shardscope::trainer::cli
