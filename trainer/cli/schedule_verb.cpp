#include "trainer/cli/schedule_verb.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/export/text_output.h"
#include "traces/store/write/writer.h"
#include "trainer/cli/plan_files.h"
#include "trainer/cli/schedule_report.h"
#include "trainer/job/job.h"
#include "trainer/job/nearest.h"
#include "trainer/pipeline/csv.h"
#include "trainer/pipeline/lower.h"
#include "trainer/pipeline/rows.h"

namespace shardscope::trainer::cli {

namespace {

using pipeline::Schedule;
using pipeline::ScheduleKind;
using pipeline::Shape;

constexpr int kUsualChunks = 2;  // of schedules that can have several numbers of them

bool is_file(const std::string& what) {
    return what.ends_with(".csv") || what.find('/') != std::string::npos;
}

job::JobError wrong(const std::string& what) {
    return job::JobError("command line: " + what);
}

const ScheduleKind& named(const std::string& name) {
    if (const ScheduleKind* kind = pipeline::find_schedule(name)) return *kind;
    std::vector<std::string_view> names = {"all"};
    for (const ScheduleKind& kind : pipeline::schedule_kinds()) names.push_back(kind.name);
    const std::string_view guess = job::nearest(name, names);
    throw wrong(fmt::format("{} is not a schedule; {}give one of {}, all, or a .csv file", name,
                            guess.empty() ? "" : fmt::format("did you mean {}? Otherwise ", guess),
                            pipeline::schedule_names()));
}

int given(const std::optional<int>& value, const char* option, const char* what) {
    if (value) return *value;
    throw wrong(fmt::format("{0} is missing; give the number of {1}, such as {0} 4", option, what));
}

Shape shape_of(const ScheduleOptions& options, int usual_chunks) {
    return {given(options.pipeline, "--pipeline", "ranks"),
            given(options.micro_batches, "--micro-batches", "micro-batches per step"),
            options.chunks.value_or(usual_chunks)};
}

// The table's schedule that a file contains; null if it is another one.
const ScheduleKind* recognized(const Schedule& computes) {
    const Shape shape{computes.ranks(), computes.micro_batches, computes.stages() / computes.ranks()};
    for (const ScheduleKind& kind : pipeline::schedule_kinds()) {
        if (pipeline::refusal(kind, shape).empty() && pipeline::make_schedule(kind, shape) == computes)
            return &kind;
    }
    return nullptr;
}

// A schedule is compared with others if each rank has as many stages, and so does the same work.
bool comparable(const Schedule& schedule) {
    if (schedule.stages() > schedule.ranks() * pipeline::kMostChunks) return false;
    std::vector<int> stages(static_cast<std::size_t>(schedule.ranks()));
    for (const int rank : schedule.rank_of_stage) ++stages[static_cast<std::size_t>(rank)];
    return std::all_of(stages.begin(), stages.end(), [&](int own) { return own == stages.front(); });
}

ScheduleView view_of(const ScheduleOptions& options) {
    ScheduleView view;
    view.costs = pipeline::parse_costs(options.costs, options.transfer);
    if (is_file(options.what)) {
        if (options.pipeline || options.micro_batches || options.chunks)
            throw pipeline::ScheduleError(
                fmt::format("{} says how many ranks, micro-batches and chunks it has; omit --pipeline, "
                            "--micro-batches and --chunks",
                            options.what));
        view.file = options.what;
        view.schedule = pipeline::read_csv(options.what);
        view.kind = recognized(pipeline::computes_of(view.schedule));
        view.shape = {view.schedule.ranks(), view.schedule.micro_batches,
                      view.schedule.stages() / view.schedule.ranks()};
    } else {
        view.kind = &named(options.what);
        view.shape = shape_of(options, view.kind->fewest_chunks);
        view.schedule = pipeline::make_schedule(*view.kind, view.shape);
    }
    if (comparable(view.schedule))
        view.compared =
            pipeline::compare_schedules(view.shape, view.costs, std::max(view.shape.chunks, kUsualChunks));
    if (options.transfers && !view.schedule.has_transfers()) view.schedule = pipeline::lower(view.schedule);
    view.replay = pipeline::replay(view.schedule, view.costs);
    view.shows_actions = options.transfers;
    return view;
}

void write_actions(const ScheduleOptions& options, const Schedule& schedule) {
    traces::exports::TextOutput output(options.output, options.overwrite, false);
    output.buffer() += pipeline::csv_text(schedule);
    output.finish();
}

void write_trace(const ScheduleOptions& options, const ScheduleView& view) {
    traces::store::DatabaseWriter writer(writer_options(options.trace, options.overwrite));
    pipeline::write_replay(view.schedule, view.replay, writer);
    writer.finish(pipeline::replayed_ns(view.costs, view.replay.makespan), 0);
}

// The costs are those of all stages of a rank: of one chunk if there is one per rank.
std::string compare_all(const ScheduleOptions& options) {
    if (!options.output.empty() || !options.trace.empty() || options.transfers)
        throw pipeline::ScheduleError(fmt::format("{} is for the actions of one schedule; name one of {}",
                                                  options.transfers         ? "--comms"
                                                  : !options.output.empty() ? "-o"
                                                                            : "--trace",
                                                  pipeline::schedule_names()));
    const int chunks = options.chunks.value_or(kUsualChunks);
    Shape shape = shape_of(options, 1);
    shape.chunks = 1;
    if (chunks < 2 || chunks > pipeline::kMostChunks)
        throw pipeline::ScheduleError(
            fmt::format("--chunks {}: the schedules that divide a rank's layers take 2 to {}", chunks,
                        pipeline::kMostChunks));
    const ScheduleComparison compared{
        shape, pipeline::parse_costs(options.costs, options.transfer),
        pipeline::compare_schedules(shape, pipeline::parse_costs(options.costs, options.transfer), chunks)};
    return options.format == "json"  ? comparison_json(compared)
           : options.format == "csv" ? comparison_csv(compared)
                                     : comparison_table(compared);
}

}  // namespace

int show_schedule(const ScheduleOptions& options) {
    try {
        if (options.what == "all") {
            fmt::print("{}", compare_all(options));
            return 0;
        }
        if (!options.output.empty()) traces::exports::TextOutput::check(options.output, options.overwrite);
        if (!options.trace.empty())
            traces::store::DatabaseWriter::check_output(options.trace, options.overwrite);
        const ScheduleView view = view_of(options);
        if (!options.trace.empty()) write_trace(options, view);
        if (!options.output.empty()) write_actions(options, view.schedule);
        fmt::print("{}", options.format == "json"  ? schedule_json(view)
                         : options.format == "csv" ? pipeline::csv_text(view.schedule)
                                                   : schedule_table(view));
    } catch (const pipeline::ScheduleError& error) {
        // Errors in a file begin with its name.
        const std::string what = error.what();
        throw what.starts_with(options.what + ":") ? job::JobError(what) : wrong(what);
    }
    return 0;
}

}  // namespace shardscope::trainer::cli
