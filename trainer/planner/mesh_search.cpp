#include "trainer/planner/mesh_search.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"
#include "trainer/planner/figures.h"
#include "trainer/planner/lower_bound.h"
#include "trainer/planner/meshes.h"
#include "trainer/planner/parallel.h"
#include "trainer/planner/reason.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::planner {

namespace {

constexpr double kMB = 1 << 20;

struct Competitor {
    std::size_t index = 0;  // of its row
    double seconds = 0;     // per sample, at least
};
using Competitors = std::vector<Competitor>;  // the lowest bound first

// Rows that are simulated before their times exclude others: a number, so that the rows that are
// left out do not depend on the number of threads.
constexpr std::size_t kTogether = 4;

class MeshSearch {
  public:
    MeshSearch(const std::vector<Candidate>& all, const JobMaker& make_job, const ClusterMaker& cluster_of,
               const SearchOptions& options)
        : all_(all), make_job_(make_job), cluster_of_(cluster_of), options_(options), rows_(rows_of(all)) {}

    std::vector<Row> run() {
        bounds_.resize(rows_.size());
        for_each_in_parallel(rows_.size(), options_.threads, stop(), {}, [this](std::size_t i) { bound(i); });
        Competitors all;
        for (std::size_t i = 0; i < rows_.size(); ++i)
            if (rows_[i].outcome == Outcome::not_run) all.push_back({i, bounds_[i]});
        traces::schema::sort_rows(
            all, [](const Competitor& a, const Competitor& b) { return a.seconds < b.seconds; });
        std::map<std::pair<std::string, bool>, Competitors> of_jobs;  // with and without a pipeline
        for (const Competitor& one : all) {
            const Row& row = rows_[one.index];
            of_jobs[{row.of_job, row.job.parallel.pipeline > 1}].push_back(one);
        }
        for (const auto& [key, own] : of_jobs) find_fastest(own);
        find_ties(all);
        for (const auto& [of_job, kind] : kinds_beside_the_best()) {
            Competitors some;
            for (const Competitor& one : all)
                if (rows_[one.index].of_job == of_job && kind_of(rows_[one.index].job) == kind)
                    some.push_back(one);
            find_fastest(some);
        }
        exclude_others();
        mark_front(rows_);
        return std::move(rows_);
    }

  private:
    const std::atomic<bool>& stop() const { return options_.stop ? *options_.stop : never_; }

    // The lower bound of a row; a row that cannot be has none.
    void bound(std::size_t i) {
        Row& row = rows_[i];
        try {
            row.job = make_job_(row.settings);
            const sim::Cluster& cluster = cluster_of_(row.job);
            const sim::SimOptions options = sim::options_of(row.job, cluster);
            const LowerBound least = lower_bounds_.of(row, cluster);
            row.least_bytes = least.bytes;
            row.least_step = least.seconds;
            bounds_[i] = least.seconds / static_cast<double>(row.job.samples_per_step());
            if (least.bytes <= options.memory_limit) return;
            exclude(row, fmt::format("a rank needs {:.1f} MiB or more, which do not fit {}",
                                     static_cast<double>(least.bytes) / kMB, options.memory_place));
        } catch (const job::JobError& error) {
            row.outcome = Outcome::impossible;
            row.reason = error.what();
        } catch (const sim::ClusterError& error) {
            row.outcome = Outcome::impossible;
            row.reason = error.what();
        }
        count_one();
    }

    double fastest_of(const Competitors& some) const {
        double fastest = 0;
        for (const Competitor& one : some) {
            const Row& row = rows_[one.index];
            if (row.fits() && (fastest == 0 || row.seconds_per_sample() < fastest))
                fastest = row.seconds_per_sample();
        }
        return fastest;
    }

    // Simulates those with the lowest bounds, until no other can be faster.
    void find_fastest(const Competitors& some) {
        double fastest = fastest_of(some);
        Competitors left = not_run(some);
        for (std::size_t next = 0; next < left.size() && !stop(); next += kTogether) {
            if (fastest > 0 && left[next].seconds > fastest) return;  // as are those that follow
            const std::size_t end = std::min(next + kTogether, left.size());
            carry_out({left.begin() + static_cast<std::ptrdiff_t>(next),
                       left.begin() + static_cast<std::ptrdiff_t>(end)});
            fastest = fastest_of(some);
        }
    }

    // Simulates the rows that may tie with the fastest of all.
    void find_ties(const Competitors& all) {
        const double most = fastest_of(all) * (1 + kTie);
        Competitors left = not_run(all);
        std::erase_if(left, [&](const Competitor& one) { return one.seconds > most; });
        if (most > 0) carry_out(left);
    }

    // Those of each job's fastest row and of the rows that tie with it: one of these is the best.
    std::set<std::pair<std::string, KindOfMesh>> kinds_beside_the_best() const {
        std::map<std::string, double> fastest;  // by job
        for (const Row& row : rows_) {
            if (!row.fits()) continue;
            double& own = fastest[row.of_job];
            if (own == 0 || row.seconds_per_sample() < own) own = row.seconds_per_sample();
        }
        std::set<std::pair<std::string, KindOfMesh>> kinds;
        for (const Row& row : rows_) {
            if (!row.fits() || row.seconds_per_sample() > fastest.at(row.of_job) * (1 + kTie)) continue;
            for (const OtherKind& other : kinds_beside(kind_of(row.job)))
                kinds.insert({row.of_job, other.kind});
        }
        return kinds;
    }

    void exclude_others() {
        for (Row& row : rows_) {
            if (row.outcome != Outcome::not_run || stop()) continue;
            exclude(row,
                    fmt::format("its kernels, the collectives and messages that they wait for and the "
                                "schedule's idle time take {:.1f} ms of a step or more; others take less",
                                row.least_step * 1e3));
            count_one();
        }
    }

    Competitors not_run(Competitors some) const {
        std::erase_if(some,
                      [this](const Competitor& one) { return rows_[one.index].outcome != Outcome::not_run; });
        return some;
    }

    void carry_out(const Competitors& some) {
        for_each_in_parallel(some.size(), options_.threads, stop(), {}, [&](std::size_t i) {
            Row& row = rows_[some[i].index];
            Row done = evaluate(all_[some[i].index], row.number, make_job_, cluster_of_, options_.time_all);
            done.least_bytes = row.least_bytes;
            done.least_step = row.least_step;
            row = std::move(done);
            count_one();
        });
    }

    static void exclude(Row& row, std::string reason) {
        row.outcome = Outcome::excluded;
        row.reason = std::move(reason);
    }

    void count_one() {
        const std::lock_guard lock(mutex_);
        ++done_;
        if (options_.progress) options_.progress(done_, rows_.size());
    }

    const std::vector<Candidate>& all_;
    const JobMaker& make_job_;
    const ClusterMaker& cluster_of_;
    const SearchOptions& options_;
    const std::atomic<bool> never_{false};
    std::vector<Row> rows_;
    std::vector<double> bounds_;  // by row
    LowerBounds lower_bounds_;
    std::mutex mutex_;  // guards done_ and the progress
    std::size_t done_ = 0;
};

}  // namespace

std::vector<Row> search_meshes(const std::vector<Candidate>& all, const JobMaker& make_job,
                               const ClusterMaker& cluster_of, const SearchOptions& options) {
    if (options.time_all) return search(all, make_job, cluster_of, options);
    return MeshSearch(all, make_job, cluster_of, options).run();
}

}  // namespace shardscope::trainer::planner
