// The search: every candidate through the memory account and, where that fits, through the simulator.
//
// Nothing is guessed or omitted: the account is exact and cheap, so that a configuration whose allocated peak
// is beyond the limit is known to be too large without a simulation. The allocated bytes may fit while the
// reserved ones do not; the simulation shows that.
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
    bool time_all = false;                    // simulate also what is too large, as if the devices had more
    const std::atomic<bool>* stop = nullptr;  // set: candidates that have not begun are not run
    // Called after each candidate, from the thread that evaluated it, one at a time.
    std::function<void(std::size_t done, std::size_t all)> progress;
};

// `make_job` and `cluster_of` are called from all threads. Rows in the candidates' order, with the Pareto
// front marked.
std::vector<Row> search(const std::vector<Candidate>& all, const JobMaker& make_job,
                        const ClusterMaker& cluster_of, const SearchOptions& options = {});

// One candidate alone; `number` is its place, from 1.
Row evaluate(const Candidate& candidate, int number, const JobMaker& make_job, const ClusterMaker& cluster_of,
             bool time_all = false);

// Two rows whose times per sample differ by less are considered equal. A choice, and a cautious one: for how
// much faster one configuration is than another, a calibrated model is off by 3 % or more in three of four
// pairs and by 7.1 % in the median (docs/benchmarks.md, "Simulated steps beside measured ones").
inline constexpr double kTie = 0.03;

// Marks, among the rows that fit, those on the Pareto front of allocated and of reserved memory against time
// per sample, which row beats each of the others, which rows have the same figures, and which tie with the
// fastest.
void mark_front(std::vector<Row>& rows);

// The row that fits and takes the least time per sample, the smaller of equals; null: none fits.
const Row* fastest(const std::vector<Row>& rows);
// The simplest of the rows that tie with it: fewest keys that differ from row 1, then the fewest reserved
// bytes, then the fastest; null: none fits.
const Row* best(const std::vector<Row>& rows);
// The rows that tie, the simplest first; each set of figures once.
std::vector<const Row*> ties(const std::vector<Row>& rows);
// The row with the smallest peak of those that are possible; null: none is.
const Row* smallest(const std::vector<Row>& rows);
// The row whose memory by formula is shown: the best, or the smallest where nothing fits.
const Row* best_or_smallest(const std::vector<Row>& rows);

// The order of tables: the fastest first; rows that do not fit come after, the smallest first.
bool before(const Row* a, const Row* b);
std::int64_t count(const std::vector<Row>& rows, Outcome outcome);

// The row with that number in rows that are sorted by it; null if there is none.
const Row* numbered(const std::vector<Row>& rows, int number);

// Why a row is not on the Pareto front, or what its place there costs; "" where nothing is known of it.
std::string why(const Row& row, const std::vector<Row>& rows);

}  // namespace shardscope::trainer::planner
