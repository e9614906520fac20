#include "trainer/planner/search.h"

#include <atomic>
#include <cstddef>
#include <utility>

#include "trainer/executor/run.h"
#include "trainer/planner/figures.h"
#include "trainer/planner/meshes.h"
#include "trainer/planner/parallel.h"

namespace shardscope::trainer::planner {

namespace {

void carry_out(Row& row, const JobMaker& make_job, const ClusterMaker& cluster_of, bool time_all) {
    try {
        row.job = make_job(row.settings);
        const sim::Cluster& cluster = cluster_of(row.job);
        const sharding::Program program(sim::placed_on(row.job, cluster));
        row.axes = mesh_axes(program.mesh(), cluster, row.job.sim.slow_links);
        add_memory(program, row);
        sim::SimOptions options = sim::options_of(program.job(), cluster);
        row.limit = options.memory_limit;
        row.limit_of = options.memory_place;
        row.outcome = row.peak.bytes > row.limit ? Outcome::too_large : Outcome::fits;
        if (row.fits()) {
            try {
                add_times(program, cluster, sim::simulate(program, cluster, options), row);
                return;
            } catch (const executor::OutOfMemory& error) {
                row.outcome = Outcome::too_large;
                row.reason = error.what();
            }
        }
        if (!time_all) return;
        options.memory_limit = 0;
        add_times(program, cluster, sim::simulate(program, cluster, options), row);
    } catch (const job::JobError& error) {
        row.outcome = Outcome::impossible;
        row.reason = error.what();
    } catch (const sim::ClusterError& error) {
        row.outcome = Outcome::impossible;
        row.reason = error.what();
    }
}

}  // namespace

std::vector<Row> rows_of(const std::vector<Candidate>& all) {
    std::vector<Row> rows(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        rows[i].number = static_cast<int>(i) + 1;
        rows[i].settings = all[i].settings;
        rows[i].of_job = all[i].of_job;
    }
    return rows;
}

Row evaluate(const Candidate& candidate, int number, const JobMaker& make_job, const ClusterMaker& cluster_of,
             bool time_all) {
    Row row = std::move(rows_of({candidate}).front());
    row.number = number;
    carry_out(row, make_job, cluster_of, time_all);
    return row;
}

std::vector<Row> search(const std::vector<Candidate>& all, const JobMaker& make_job,
                        const ClusterMaker& cluster_of, const SearchOptions& options) {
    std::vector<Row> rows = rows_of(all);
    const std::atomic<bool> never{false};
    for_each_in_parallel(rows.size(), options.threads, options.stop ? *options.stop : never, options.progress,
                         [&](std::size_t i) { carry_out(rows[i], make_job, cluster_of, options.time_all); });
    mark_front(rows);
    return rows;
}

}  // namespace shardscope::trainer::planner
