#include "trainer/cli/mesh_reasons.h"

#include <algorithm>

#include <fmt/core.h>

#include "trainer/cli/configuration_table.h"
#include "trainer/planner/meshes.h"
#include "trainer/planner/reason.h"
#include "trainer/planner/search.h"

namespace shardscope::trainer::cli {

namespace {

using planner::Row;
using traces::report::Align;

// The rows of a job, and the best of them.
struct OfJob {
    std::string job;
    const Row* best = nullptr;
    const Row* one_place = nullptr;  // the fastest without a pipeline, and with one; null: none fits
    const Row* with_pipeline = nullptr;
};

void keep_faster(const Row*& fastest, const Row& row) {
    if (!fastest || planner::before(&row, fastest)) fastest = &row;
}

std::vector<OfJob> jobs_of(const std::vector<Row>& rows) {
    std::vector<OfJob> jobs;
    for (const Row& row : rows) {
        if (!row.fits()) continue;
        auto own = std::find_if(jobs.begin(), jobs.end(),
                                [&](const OfJob& known) { return known.job == row.of_job; });
        if (own == jobs.end()) own = jobs.insert(jobs.end(), {.job = row.of_job});
        keep_faster(own->best, row);
        keep_faster(row.job.parallel.pipeline > 1 ? own->with_pipeline : own->one_place, row);
    }
    // Of one job, the simplest of those that cannot be told from the fastest.
    if (jobs.size() == 1) jobs.front().best = planner::best(rows);
    return jobs;
}

// The settings of a job that the others do not have.
std::string own_settings(const std::string& job, const std::vector<OfJob>& jobs) {
    std::string words;
    for (std::size_t begin = 0; begin < job.size();) {
        const std::size_t end = job.find('\n', begin);
        const std::string setting = job.substr(begin, end - begin);
        const bool all = std::all_of(jobs.begin(), jobs.end(), [&](const OfJob& other) {
            return ("\n" + other.job).find("\n" + setting + "\n") != std::string::npos;
        });
        if (!all) words += (words.empty() ? "" : " ") + setting.substr(setting.find('.') + 1);
        begin = end + 1;
    }
    return words;
}

std::string jobs_table(const std::vector<OfJob>& jobs) {
    traces::report::TextTable table({Align::left, Align::right, Align::right, Align::right, Align::left});
    table.header({"job", "no pipeline, ms", "pipeline, ms", "row", "the fastest mesh"});
    const auto step = [](const Row* row) { return row ? ms(row->times.step) : std::string("-"); };
    for (const OfJob& own : jobs) {
        table.row({own_settings(own.job, jobs), step(own.one_place), step(own.with_pipeline),
                   std::to_string(own.best->number), placement_text(own.best->axes)});
    }
    return "\nThe fastest mesh of each job\n" + table.text();
}

std::string reason_text(const Row& best, const std::vector<Row>& rows, const std::string& job) {
    const std::vector<planner::Rival> rivals = planner::rivals_of(best, rows);
    if (rivals.empty()) return "";
    std::string out = fmt::format(
        "\nWhy row {}{}{}: {}\n  its last step takes {} ms on average over the ranks: {}\n", best.number,
        job.empty() ? "" : " with ", job, placement_text(best.axes), ms(best.mean_step_s), parts_text(best));
    for (const planner::Rival& rival : rivals)
        out += fmt::format("  {}, row {}{}{}: {}\n", rival.mesh, rival.row->number,
                           rival.row->axes.empty() ? "" : ": ", placement_text(rival.row->axes), rival.loses);
    return out;
}

}  // namespace

std::string mesh_reasons(const std::vector<Row>& rows) {
    const std::vector<OfJob> jobs = jobs_of(rows);
    std::string reasons;
    for (const OfJob& own : jobs) reasons += reason_text(*own.best, rows, own_settings(own.job, jobs));
    return reasons.empty() || jobs.size() < 2 ? reasons : jobs_table(jobs) + reasons;
}

}  // namespace shardscope::trainer::cli
