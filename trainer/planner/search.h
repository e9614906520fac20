// The search: runs every candidate through the memory account and, if it fits there, through the simulator.
//
// Nothing is guessed or skipped: the account is exact and cheap, so that a configuration whose allocated peak
// exceeds the limit is known to be too large without a simulation. Allocated bytes may fit while reserved
// bytes do not; the simulation shows that.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include "trainer/planner/row.h"
#include "trainer/planner/space.h"

namespace shardscope::trainer::planner {

struct SearchOptions {
    int threads = 1;
    bool time_all = false;                    // also simulate rows that do not fit, as if they did
    const std::atomic<bool>* stop = nullptr;  // if set, candidates that have not begun are skipped
    // Called after each candidate, from the thread that evaluated it, one at a time.
    std::function<void(std::size_t done, std::size_t all)> progress;
};

// `make_job` and `cluster_of` are called from all threads. Returns rows in the candidates' order, with the
// Pareto front marked.
std::vector<Row> search(const std::vector<Candidate>& all, const JobMaker& make_job,
                        const ClusterMaker& cluster_of, const SearchOptions& options = {});

// The rows of the candidates, numbered from 1 and not yet run.
std::vector<Row> rows_of(const std::vector<Candidate>& all);

// Evaluates one candidate alone; `number` is its row number, from 1.
Row evaluate(const Candidate& candidate, int number, const JobMaker& make_job, const ClusterMaker& cluster_of,
             bool time_all = false);

// Two rows whose times per sample differ by less are considered equal. This is a cautious choice: a
// calibrated model's error in how much faster one configuration is than another is 3 % or more for three of
// four pairs, and 7.1 % in the median (docs/benchmarks.md, "Simulated steps beside measured ones").
inline constexpr double kTie = 0.03;

// Marks, among the rows that fit, those on the Pareto front of allocated and of reserved memory against time
// per sample, which row beats each of the others, which rows have the same figures, and which tie with the
// fastest.
void mark_front(std::vector<Row>& rows);

// The row that fits with the least time per sample, the smallest among equals; null: none fits.
const Row* fastest(const std::vector<Row>& rows);
// The simplest of the rows that tie with the fastest: fewest keys that differ from row 1, then the fewest
// reserved bytes, then the fastest; null: none fits.
const Row* best(const std::vector<Row>& rows);
// The rows that tie with the fastest, the simplest first; one row for each set of figures.
std::vector<const Row*> ties(const std::vector<Row>& rows);
// The possible row with the smallest peak; null: none is possible.
const Row* smallest(const std::vector<Row>& rows);
// The row whose memory by formula is shown: the best, or the smallest if nothing fits.
const Row* best_or_smallest(const std::vector<Row>& rows);

// The order of tables: the fastest first; rows that do not fit come after, the smallest first.
bool before(const Row* a, const Row* b);
std::int64_t count(const std::vector<Row>& rows, Outcome outcome);

// The row with that number, in rows sorted by number; null if there is none.
const Row* numbered(const std::vector<Row>& rows, int number);

// Why a row is not on the Pareto front, or what makes its peak and limits its step; "" if it was not run.
std::string why(const Row& row, const std::vector<Row>& rows);

}  // namespace shardscope::trainer::planner
