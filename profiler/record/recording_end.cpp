// The end of a recording: finishes the trace, or writes the last seconds, and prints the last lines.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include "profiler/record/recording.h"
#include "profiler/record/wording.h"
#include "traces/store/sqlite/no_space.h"
#include "traces/store/sqlite/temporary_file.h"

namespace shardscope::profiler {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPlacesTold = 8;
constexpr int kHalvings = 24;  // from 60 s down to 4 us

// "rank 3, main thread: in ncclAllReduce since 9.82 s, for 0.31 s"
std::string sentence(const Collector::Place& place) {
    std::string who =
        place.rank >= 0 ? fmt::format("rank {}", place.rank) : fmt::format("process {}", place.pid);
    if (place.tid == place.pid) {
        who += ", main thread";
    } else {
        who += fmt::format(", thread {}", place.tid);
        if (!place.thread.empty()) who += fmt::format(" ({})", place.thread);
    }
    return fmt::format("{}: in {} since {}, for {}", who,
                       place.text.empty() ? "a range without a name" : place.text, seconds(place.since_ns),
                       seconds(place.until_ns - place.since_ns));
}

// Adds the place of each thread that still had open ranges.
void add_places(traces::store::EventSink& sink, const std::vector<Collector::Place>& places,
                std::int64_t now) {
    for (const Collector::Place& place : places) {
        sink.add(traces::schema::DiagnosticRow{std::min(place.until_ns, now),
                                               traces::schema::Severity::information, sentence(place)});
    }
}

void tell_places(const std::vector<Collector::Place>& places) {
    for (std::size_t i = 0; i < std::min(places.size(), kPlacesTold); ++i) tell(sentence(places[i]));
    if (places.size() > kPlacesTold)
        tell(fmt::format("and {} more, in the trace", places.size() - kPlacesTold));
}

}  // namespace

void Recording::finish(int status) {
    const std::int64_t exited = now_ns();
    session_.set_state(SessionState::stopped);
    if (stacks_ != nullptr) {
        take_stacks();
        const auto warn = [&](const std::string& text) {
            sink_->add(traces::schema::DiagnosticRow{exited, traces::schema::Severity::warning, text});
            tell(text);
        };
        if (stacks_->lost() > 0)
            warn(fmt::format("{} lost: their buffers were full",
                             plural(stacks_->lost(), "sample of threads was", "samples of threads were")));
        if (const std::string incomplete = stacks_->incomplete(); !incomplete.empty()) warn(incomplete);
    }
    if (stopped_ns_ < 0) {
        if (recent_ != nullptr) recent_->advance(exited);
        collector_->finish(exited);
    } else if (!took_late_) {
        collector_->finish(stopped_ns_);
    }
    take_counters();
    counters_.reset();
    if (nccl_files_) nccl_files_->add_rows(*sink_, stopped_ns_ >= 0 ? stopped_ns_ : exited, true);
    if (!collector_->knows(command_->pid())) {
        sink_->add(traces::schema::ProcessRow{traces::schema::global_pid(command_->pid()), command_->pid(),
                                              fs::path(options_.command[0]).filename().string()});
    }
    sink_->add(traces::schema::RunInfoRow{"exit_status", fmt::format("{}", status)});
    const std::int64_t end = stopped_ns_ >= 0 ? stopped_ns_ : exited;
    if (collector_->damaged() != 0) {
        const std::string text =
            fmt::format("{} damaged and omitted; did the command write over its own memory?",
                        plural(static_cast<std::int64_t>(collector_->damaged()), "stretch of records was",
                               "stretches of records were"));
        sink_->add(traces::schema::DiagnosticRow{end, traces::schema::Severity::warning, text});
        tell(text);
    }
    if (writer_ != nullptr && writer_->refused_events() > 0) {
        const std::string text = fmt::format(
            "{} omitted: the trace was full (--max-size)",
            plural(writer_->refused_events(), "event that came later was", "events that came later were"));
        sink_->add(traces::schema::DiagnosticRow{end, traces::schema::Severity::warning, text});
        tell(text);
    }
    command_->told_to_end();  // discards the signal that ended the command, too
    if (recent_ != nullptr) {
        if (status != 0) {
            write_kept({ending(status), exited, false});
        } else if (announces()) {
            tell("the command succeeded, so its last seconds were not written (--keep-last)");
        }
        return;
    }
    if (status != 0) add_places(*sink_, collector_->places_at_end(0), end);
    std::atomic<bool> cancel{false};
    traces::store::FinalizeOptions finalize;
    finalize.cancel = &cancel;
    finalize.progress = [&](double) {
        if (command_->told_to_end()) cancel = true;
    };
    const auto result = writer_->finish(end, collector_->dropped(), finalize);
    if (!fs::exists(output_.path)) {
        tell(fmt::format("{} is lost: its folder was removed while the command ran", output_.path));
        return;
    }
    if (result.outcome == traces::store::FinalizeResult::Outcome::cancelled) {
        tell(
            fmt::format("{} contains everything, but was not sorted and indexed; shardscope-trace check "
                        "--finalize {} does that",
                        output_.path, output_.path));
        return;
    }
    report(end);
}

// Writes everything that was kept or, if the disk is too full for that, the newer half, a quarter, ... and
// finally only the places of threads. A recording that is to go on does so whatever happens here.
void Recording::write_kept(const Keep& keep) {
    if (nccl_files_ && keep.goes_on) nccl_files_->add_rows(*sink_, keep.end_ns, false);
    std::string path;
    do path = numbered(output_.path, ++kept_files_);
    while (kept_files_ > 1 && !options_.overwrite && fs::exists(path));
    const std::int64_t newest = recent_->newest_ns();
    std::int64_t since = std::max<std::int64_t>(recent_->oldest_ns(), 0);
    std::string failure;
    for (int tries = 0; tries <= kHalvings; ++tries) {
        try {
            return write_kept_since(keep, since, path);
        } catch (const traces::store::NoSpaceError& error) {
            failure = error.what();
        } catch (const traces::store::StoreError& error) {
            failure = error.what();
            break;
        }
        since = tries + 1 < kHalvings ? newest - (newest - since) / 2 : newest + 1;
    }
    --kept_files_;
    tell(fmt::format("{}, and nothing of its last {} s could be written: {}", keep.reason,
                     *options_.keep_last_s, failure));
}

// Throws NoSpaceError if the disk is too full; the file is then removed.
void Recording::write_kept_since(const Keep& keep, std::int64_t since_ns, const std::string& path) {
    traces::store::WriterOptions into = writer_options(path);
    into.first_ns = since_ns;
    std::optional<traces::store::DatabaseWriter> writer(std::in_place, into);
    CountingSink counted(*writer);
    std::vector<Collector::Place> places = collector_->places_at_end(since_ns);
    std::string missing;
    if (const std::int64_t oldest = recent_->oldest_ns(); since_ns > oldest) {
        missing = since_ns > recent_->newest_ns()
                      ? std::string("the disk was too full for events")
                      : fmt::format("the disk was too full for what was before {}", seconds(since_ns));
    }
    try {
        recent_->write_to(counted, since_ns);
        const auto translated = recent_->translator(counted);
        writer->add(traces::schema::RunInfoRow{"kept_because", keep.reason});
        writer->add(traces::schema::RunInfoRow{"kept_from_s",
                                               fmt::format("{:.3f}", static_cast<double>(since_ns) * 1e-9)});
        const auto warn = [&](const std::string& text) {
            writer->add(traces::schema::DiagnosticRow{keep.end_ns, traces::schema::Severity::warning, text});
        };
        warn(keep.reason);
        if (!missing.empty()) {
            warn(missing);
            writer->add(
                traces::schema::RunInfoRow{traces::store::kStoppedBecause, traces::store::kDiskWasFull});
        }
        if (keep.goes_on) {
            collector_->write_open(*translated, keep.end_ns);
            places = collector_->places_now(keep.end_ns);
        }
        add_places(*writer, places, keep.end_ns);
        if (recent_->dropped() != 0) {
            warn(
                fmt::format("memory for what is kept was full: {} missing of the last {} s; a larger "
                            "--max-size keeps more",
                            plural(static_cast<std::int64_t>(recent_->dropped()), "event is", "events are"),
                            *options_.keep_last_s));
        }
        writer->commit();
    } catch (const traces::store::NoSpaceError&) {
        writer.reset();
        std::error_code ignored;
        fs::remove(path, ignored);
        traces::store::remove_side_files(path);
        throw;
    }
    try {
        writer->finish(keep.end_ns, collector_->dropped());
    } catch (const traces::store::StoreError& error) {  // all rows are there
        tell(fmt::format(
            "{0} could not be sorted and indexed ({1}); shardscope-trace check --finalize {0} does that",
            path, error.what()));
    }
    const RowCounts& counts = counted.counts();
    tell(fmt::format("{}; wrote {} ({}): {} of {}, from {} to {}{}{}", keep.reason, path,
                     human_bytes(file_bytes(path)), listed(counts).empty() ? "no events" : listed(counts),
                     plural(collector_->processes(), "process", "processes"), seconds(since_ns),
                     seconds(keep.end_ns), missing.empty() ? "" : "; ", missing));
    tell_places(places);
    if (announces()) report_next_steps(path);
}

void Recording::report(std::int64_t duration_ns) {
    if (!announces() && collector_->dropped() == 0) return;
    const RowCounts& counts = sink_->counts();
    std::string line = fmt::format("wrote {} ({}): ", output_.path, human_bytes(file_bytes(output_.path)));
    const std::int64_t samples = stacks_ != nullptr ? stacks_->samples() : 0;
    const std::int64_t rows = collector_->rows() + samples - writer_->refused_events();
    if (rows == 0) {
        line += !options_.nvtx && !options_.cuda && !options_.nccl
                    ? "no events; nothing was requested (--no-nvtx --no-cuda --no-nccl)"
                : options_.window != WindowKind::always || !options_.ranks.empty()
                    ? "no events; the command did not reach what was to be recorded"
                    : "no events; the command made no NVTX, CUDA or NCCL call (a PyTorch program makes some "
                      "under "
                      "samples/pytorch/shardscope_torch.py, see docs/recording.md)";
    } else {
        line += plural(rows, "event", "events");
        if (collector_->processes() > 0)
            line += fmt::format(" of {}", plural(collector_->processes(), "process", "processes"));
        line += fmt::format(" in {}", seconds(duration_ns));
        if (const std::string list = listed(counts); !list.empty()) line += fmt::format(" ({})", list);
    }
    if (collector_->dropped() != 0)
        line += fmt::format(
            ", {} lost", plural(static_cast<std::int64_t>(collector_->dropped()), "more was", "more were"));
    tell(line);
    for (const std::string& notice : collector_->findings().notices) tell(notice);
    if (samples > 0 && announces())
        tell(fmt::format("sampled by {}; functions: shardscope-trace samples {}", stacks_->means(),
                         output_.path));
    if (announces()) report_next_steps(output_.path);
}

void Recording::report_next_steps(const std::string& path) const {
    if (!output_.all_ranks.empty()) {
        tell(fmt::format("next: shardscope-trace merge {} -o {}", output_.all_ranks, output_.merged));
    } else {
        tell(fmt::format("next: shardscope-trace info {}, or shardscope-view {}", path, path));
    }
}

}  // namespace shardscope::profiler
