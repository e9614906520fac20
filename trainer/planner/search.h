// The search: every candidate through the memory account and, where that fits, through the simulator.
//
// Nothing is guessed and nothing left out: the account is exact and cheap, so that a configuration whose
// allocated peak is beyond the limit needs no simulation to be known as too large. What is allocated may fit
// and what the allocator reserves may not; the simulation tells.
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
    const std::atomic<bool>* stop = nullptr;  // set: what has not begun is not run
    // Told after each candidate, from the thread that did it, one at a time.
    std::function<void(std::size_t done, std::size_t all)> progress;
};

// `make_job` and `cluster_of` are called from all threads. Rows in the candidates' order, the front marked.
std::vector<Row> search(const std::vector<Candidate>& all, const JobMaker& make_job,
                        const ClusterMaker& cluster_of, const SearchOptions& options = {});

// One candidate alone; `number` is its place, from 1.
Row evaluate(const Candidate& candidate, int number, const JobMaker& make_job, const ClusterMaker& cluster_of,
             bool time_all = false);

// Two rows whose times per sample differ by less are taken for equal. A choice, and a cautious one: how much
// faster one configuration is than another a calibrated model misses by 3 % or more in three of four pairs
// and by 7.1 % in the median (docs/benchmarks.md, "Simulated steps beside measured ones").
inline constexpr double kTie = 0.03;

// Marks the rows on the Pareto front of allocated and of reserved memory against time per sample among those
// that fit, who beats the others, who has the same figures, and who ties with the fastest.
void mark_front(std::vector<Row>& rows);

// The row that fits and takes the least time per sample, the smaller of equals; null: none fits.
const Row* fastest(const std::vector<Row>& rows);
// Of the rows that tie with it the simplest: fewest keys that differ from row 1, then the least that the
// allocator reserves, then the fastest; null: none fits.
const Row* best(const std::vector<Row>& rows);
// Those that tie, the simplest first; each set of figures once.
std::vector<const Row*> ties(const std::vector<Row>& rows);
// The row with the smallest peak of those that can be; null: none can.
const Row* smallest(const std::vector<Row>& rows);
// Whose memory by formula is shown: the best, or the smallest where nothing fits.
const Row* best_or_smallest(const std::vector<Row>& rows);

// The order of tables: the fastest first; what does not fit comes after, the smallest first.
bool before(const Row* a, const Row* b);
std::int64_t count(const std::vector<Row>& rows, Outcome outcome);

// The row of that number in rows that are sorted by it; null if it is not there.
const Row* numbered(const std::vector<Row>& rows, int number);

// Why a row is not on the front, or what its place there costs; "" where nothing is known of it.
std::string why(const Row& row, const std::vector<Row>& rows);

}  // namespace shardscope::trainer::planner
