// The end of a recording: the trace is finished, or the last seconds are written, and the last lines are
// told.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "profiler/record/recording.h"
#include "profiler/record/wording.h"

namespace shardscope::profiler {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPlacesTold = 8;

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

// Says where each thread was that had not come out of its ranges.
void add_places(traces::EventSink& sink, const std::vector<Collector::Place>& places, std::int64_t now) {
    for (const Collector::Place& place : places) {
        sink.add(traces::DiagnosticRow{std::min(place.until_ns, now), traces::Severity::information,
                                       sentence(place)});
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
    if (stopped_ns_ < 0) {
        if (recent_ != nullptr) recent_->advance(exited);
        collector_->finish(exited);
    } else if (!took_late_) {
        collector_->finish(stopped_ns_);
    }
    counters_.reset();
    if (!collector_->knows(command_->pid())) {
        sink_->add(traces::ProcessRow{traces::global_pid(command_->pid()), command_->pid(),
                                      fs::path(options_.command[0]).filename().string()});
    }
    sink_->add(traces::RunInfoRow{"exit_status", fmt::format("{}", status)});
    const std::int64_t end = stopped_ns_ >= 0 ? stopped_ns_ : exited;
    if (collector_->damaged() != 0) {
        const std::string text = fmt::format(
            "{} stretches of records were damaged and left out; did the command write over its own memory?",
            collector_->damaged());
        sink_->add(traces::DiagnosticRow{end, traces::Severity::warning, text});
        tell(text);
    }
    command_->told_to_end();  // the signal that ended the command, too
    if (recent_ != nullptr) {
        if (status != 0) {
            write_kept(ending(status), exited, false);
        } else if (announces()) {
            tell("the command ended well, so its last seconds were not written (--keep-last)");
        }
        return;
    }
    if (status != 0) add_places(*sink_, collector_->places_at_end(0), end);
    std::atomic<bool> cancel{false};
    traces::FinalizeOptions finalize;
    finalize.cancel = &cancel;
    finalize.progress = [&](double) {
        if (command_->told_to_end()) cancel = true;
    };
    const auto result = writer_->finish(end, collector_->dropped(), finalize);
    if (!fs::exists(output_.path)) {
        tell(fmt::format("{} is lost: its folder was removed while the command ran", output_.path));
        return;
    }
    if (result.outcome == traces::FinalizeResult::Outcome::cancelled) {
        tell(
            fmt::format("{} holds everything, but was not sorted and indexed; shardscope-trace check "
                        "--finalize {} does that",
                        output_.path, output_.path));
        return;
    }
    report(end);
}

void Recording::write_kept(const std::string& reason, std::int64_t end_ns, bool goes_on) {
    std::string path;
    do path = numbered(output_.path, ++kept_files_);
    while (kept_files_ > 1 && !options_.overwrite && fs::exists(path));
    const std::int64_t from = std::max<std::int64_t>(recent_->oldest_ns(), 0);
    traces::WriterOptions into = writer_options(path);
    into.first_ns = from;
    traces::DatabaseWriter writer(into);
    CountingSink counted(writer);
    recent_->write_to(counted);
    const auto translated = recent_->translator(counted);
    writer.add(traces::RunInfoRow{"kept_because", reason});
    writer.add(traces::RunInfoRow{"kept_from_s", fmt::format("{:.3f}", static_cast<double>(from) * 1e-9)});
    writer.add(traces::DiagnosticRow{end_ns, traces::Severity::warning, reason});
    std::vector<Collector::Place> places = collector_->places_at_end(from);
    if (goes_on) {
        collector_->write_open(*translated, end_ns);
        places = collector_->places_now(end_ns);
    }
    add_places(writer, places, end_ns);
    if (recent_->dropped() != 0) {
        writer.add(traces::DiagnosticRow{
            end_ns, traces::Severity::warning,
            fmt::format("memory for what is kept was full: {} events of the last {} s are missing; a larger "
                        "--max-size keeps more",
                        recent_->dropped(), *options_.keep_last_s)});
    }
    writer.finish(end_ns, collector_->dropped());
    const RowCounts& counts = counted.counts();
    tell(fmt::format("{}; wrote {} ({}): {} of {}, from {} to {}", reason, path,
                     human_bytes(file_bytes(path)), listed(counts).empty() ? "no events" : listed(counts),
                     plural(collector_->processes(), "process", "processes"), seconds(from),
                     seconds(end_ns)));
    tell_places(places);
    if (announces()) report_next_steps(path);
}

void Recording::report(std::int64_t duration_ns) {
    if (!announces() && collector_->dropped() == 0) return;
    const RowCounts& counts = sink_->counts();
    std::string line = fmt::format("wrote {} ({}): ", output_.path, human_bytes(file_bytes(output_.path)));
    if (collector_->rows() == 0) {
        line += !options_.nvtx && !options_.cuda && !options_.nccl
                    ? "no events; nothing was asked for (--no-nvtx --no-cuda --no-nccl)"
                : options_.window != WindowKind::always || !options_.ranks.empty()
                    ? "no events; the command did not come to what was to be recorded"
                    : "no events; the command made no NVTX, CUDA or NCCL call (a PyTorch program makes some "
                      "under "
                      "samples/pytorch/shardscope_torch.py, see docs/recording.md)";
    } else {
        line += fmt::format("{} events of {} in {}", collector_->rows(),
                            plural(collector_->processes(), "process", "processes"), seconds(duration_ns));
        if (const std::string list = listed(counts); !list.empty()) line += fmt::format(" ({})", list);
    }
    if (collector_->dropped() != 0) line += fmt::format(", {} more were lost", collector_->dropped());
    tell(line);
    for (const std::string& notice : collector_->findings().notices) tell(notice);
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
