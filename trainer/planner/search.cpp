#include "trainer/planner/search.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "trainer/executor/run.h"
#include "trainer/planner/figures.h"

namespace shardscope::trainer::planner {

namespace {

void carry_out(Row& row, const JobMaker& make_job, const ClusterMaker& cluster_of, bool time_all) {
    try {
        row.job = make_job(row.settings);
        const sim::Cluster& cluster = cluster_of(row.job);
        const Program program(sim::placed_on(row.job, cluster));
        add_memory(program, row);
        sim::SimOptions options = sim::options_of(program.job(), cluster);
        row.limit = options.memory_limit;
        row.limit_of = options.memory_place;
        row.outcome = row.peak.bytes > row.limit ? Outcome::too_large : Outcome::fits;
        if (row.fits()) {
            try {
                add_times(program, cluster, sim::simulate(program, cluster, options), row);
                return;
            } catch (const OutOfMemory& error) {
                row.outcome = Outcome::too_large;
                row.reason = error.what();
            }
        }
        if (!time_all) return;
        options.memory_limit = 0;
        add_times(program, cluster, sim::simulate(program, cluster, options), row);
    } catch (const JobError& error) {
        row.outcome = Outcome::impossible;
        row.reason = error.what();
    } catch (const sim::ClusterError& error) {
        row.outcome = Outcome::impossible;
        row.reason = error.what();
    }
}

class Search {
  public:
    Search(const std::vector<Candidate>& all, const JobMaker& make_job, const ClusterMaker& cluster_of,
           const SearchOptions& options)
        : make_job_(make_job), cluster_of_(cluster_of), options_(options), rows_(all.size()) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            rows_[i].number = static_cast<int>(i) + 1;
            rows_[i].settings = all[i].settings;
        }
    }

    std::vector<Row> run() {
        {
            std::vector<std::jthread> helpers;
            for (int t = 1; t < options_.threads; ++t) helpers.emplace_back([this] { work(); });
            work();
        }
        if (problem_) std::rethrow_exception(problem_);
        return std::move(rows_);
    }

  private:
    void work() {
        while (!failed_ && !(options_.stop && options_.stop->load())) {
            const std::size_t i = next_++;
            if (i >= rows_.size()) return;
            try {
                carry_out(rows_[i], make_job_, cluster_of_, options_.time_all);
            } catch (...) {
                const std::lock_guard lock(mutex_);
                if (!problem_) problem_ = std::current_exception();
                failed_ = true;
                return;
            }
            const std::lock_guard lock(mutex_);
            ++done_;
            if (options_.progress) options_.progress(done_, rows_.size());
        }
    }

    const JobMaker& make_job_;
    const ClusterMaker& cluster_of_;
    const SearchOptions& options_;
    std::vector<Row> rows_;
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> failed_{false};
    std::mutex mutex_;
    std::size_t done_ = 0;
    std::exception_ptr problem_;
};

}  // namespace

Row evaluate(const Candidate& candidate, int number, const JobMaker& make_job, const ClusterMaker& cluster_of,
             bool time_all) {
    Row row;
    row.number = number;
    row.settings = candidate.settings;
    carry_out(row, make_job, cluster_of, time_all);
    return row;
}

std::vector<Row> search(const std::vector<Candidate>& all, const JobMaker& make_job,
                        const ClusterMaker& cluster_of, const SearchOptions& options) {
    std::vector<Row> rows = Search(all, make_job, cluster_of, options).run();
    mark_front(rows);
    return rows;
}

}  // namespace shardscope::trainer::planner
