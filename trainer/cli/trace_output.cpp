#include "trainer/cli/trace_output.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include "traces/merge/merge.h"
#include "traces/store/error.h"
#include "traces/store/machine.h"
#include "traces/store/write/writer.h"
#include "trainer/world/message.h"

namespace shardscope::trainer::cli {

namespace fs = std::filesystem;

namespace {

std::int64_t clock_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::unique_ptr<profiler::Recorder> open_recorder(const std::string& path, bool overwrite,
                                                  std::function<void(const std::exception_ptr&)> on_failure) {
    traces::store::WriterOptions options;
    options.path = path;
    options.overwrite = overwrite;
    options.start_utc_ns = clock_ns(CLOCK_REALTIME);
    options.start_system_ns = clock_ns(CLOCK_MONOTONIC);
    profiler::RecorderOptions recorder;
    recorder.start_system_ns = options.start_system_ns;
    recorder.on_failure = std::move(on_failure);
    return std::make_unique<profiler::Recorder>(
        std::make_unique<traces::store::DatabaseWriter>(options),
        [](traces::store::EventSink& sink, std::int64_t duration_ns, std::int64_t dropped) {
            static_cast<traces::store::DatabaseWriter&>(sink).finish(duration_ns, dropped);
        },
        recorder);
}

// What a process reports to rank 0 about its part.
struct Part {
    std::string path;
    std::int64_t bytes = 0;
    std::string error;  // why it is incomplete; one sentence

    std::string text() const { return world::MessageWriter().add(path).add(bytes).add(error).text(); }
    static Part read(const std::string& text) {
        world::MessageReader message(text);
        Part part;
        part.path = message.text();
        part.bytes = message.number<std::int64_t>();
        part.error = message.text();
        return part;
    }
    // Whether this host has the file: the same path, the same size.
    bool here() const {
        std::error_code missing;
        return static_cast<std::int64_t>(fs::file_size(path, missing)) == bytes && !missing;
    }
};

std::string own_path(const job::Job& job, const world::World* world) {
    if (!world) return job.run.trace;
    return fs::absolute(part_path(job.run.trace, job.run.trace_parts, world->rank())).string();
}

std::int64_t size_of_file(const std::string& path) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    return error ? 0 : static_cast<std::int64_t>(size);
}

std::string merge_command(const std::string& pattern, const std::string& trace) {
    return fmt::format("shardscope-trace merge {} -o {}", pattern, trace);
}

// A shell pattern that matches all parts of the run that `part` belongs to.
std::string pattern_of(const std::string& part) {
    const std::size_t number = part.rfind("rank-");
    return part.substr(0, number) + "rank-*" + fs::path(part).extension().string();
}

}  // namespace

std::string part_path(const std::string& trace, const std::string& folder, int rank) {
    const fs::path path(trace);
    const std::string name =
        fmt::format("{}.rank-{:05}{}", path.stem().string(), rank, path.extension().string());
    return ((folder.empty() ? path.parent_path() : fs::path(folder)) / name).string();
}

void TraceOutput::check(const job::Job& job, const world::World* world) {
    if (job.run.trace.empty()) return;
    if (world && world->rank() == 0)
        traces::store::DatabaseWriter::check_output(job.run.trace, job.run.overwrite);
    traces::store::DatabaseWriter::check_output(own_path(job, world), job.run.overwrite);
}

TraceOutput::TraceOutput(const job::Job& job, world::World* world) : job_(job), world_(world) {
    if (job.run.trace.empty()) return;
    path_ = own_path(job, world);
    start_nccl_files();
    recorder_ =
        open_recorder(path_, job.run.overwrite, [this](const std::exception_ptr& reason) { failed(reason); });
    if (job.run.counters) start_counters();
}

// NCCL reads the variables when its first communicator starts. They are set while no thread of the recorder
// or the device is there yet.
void TraceOutput::start_nccl_files() {
    const bool nccl = job_.run.comm == job::CommKind::nccl || job_.run.comm == job::CommKind::automatic;
    if (job_.run.device != job::DeviceKind::cuda || !nccl) return;
    profiler::NcclFilesOptions options;
    options.host = traces::store::host_name();
    options.environment = [](const std::string& name) {
        const char* value = std::getenv(name.c_str());
        return value ? std::optional<std::string>(value) : std::nullopt;
    };
    if (world_) {
        options.rank = world_->rank();
        options.writes = world_->place().local_rank == 0;
    }
    nccl_files_ = std::make_shared<profiler::NcclFiles>(std::move(options));
    for (const auto& [name, value] : nccl_files_->variables()) ::setenv(name.c_str(), value.c_str(), 1);
}

TraceOutput::~TraceOutput() {
    if (!nccl_files_) return;
    for (const auto& [name, value] : nccl_files_->variables()) ::unsetenv(name.c_str());
}

// Samples this process and, in the first one of a host, the host with its devices.
void TraceOutput::start_counters() {
    profiler::SamplerOptions options;
    options.origin = recorder_->origin();
    options.host = traces::store::host_name();
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) options.visible_gpus = visible;
    int rank = job_.run.ranks == 1 ? 0 : -1;  // threads share what the process uses
    if (world_) {
        rank = world_->rank();
        options.whole_host = world_->place().local_rank == 0;
        options.alone = false;
        std::map<pid_t, int> ranks;
        for (std::size_t other = 0; other < world_->members().size(); ++other) {
            const world::Member& member = world_->members()[other];
            if (member.host == world_->members()[static_cast<std::size_t>(rank)].host)
                ranks.emplace(static_cast<pid_t>(member.pid), static_cast<int>(other));
        }
        options.rank_of = [ranks = std::move(ranks)](pid_t pid) {
            const auto found = ranks.find(pid);
            return found == ranks.end() ? -1 : found->second;
        };
    }
    try {
        counters_ = std::make_unique<profiler::CounterThread>(
            options, std::vector<profiler::WatchedProcess>{{::getpid(), rank}},
            [this, host = options.host](const profiler::Samples& samples) {
                recorder_->describe_with([samples, host, origin = recorder_->origin(),
                                          nccl = nccl_files_](traces::store::EventSink& sink) {
                    profiler::add_rows(samples, host, origin, origin, sink);
                    if (nccl) nccl->know(samples);
                });
            });
    } catch (const std::system_error& error) {
        recorder_->describe(traces::schema::DiagnosticRow{
            recorder_->now_ns(), traces::schema::Severity::warning,
            fmt::format("counters are not recorded: their thread cannot be started: {}", error.what())});
    }
}

// Reports the failure immediately: the run may continue for days.
void TraceOutput::failed(const std::exception_ptr& reason) {
    if (run_ended_) return;
    try {
        std::rethrow_exception(reason);
    } catch (const std::exception& error) {
        fmt::print(stderr,
                   "shardscope-train: warning: the trace is incomplete: {}; training continues without it\n",
                   error.what());
    }
    reported_ = true;
}

void TraceOutput::measure_clock() {
    if (!world_ || !recorder_) return;  // the condition is the same on all ranks
    const world::ClockOffset clock = world_->measure_clock();
    recorder_->describe(traces::schema::ClockRow{world_->rank(), clock.at - recorder_->origin(),
                                                 clock.offset_ns, clock.uncertainty_ns});
}

// What is described from now on comes after all samples.
void TraceOutput::end_sources() {
    counters_.reset();
    if (!nccl_files_) return;
    recorder_->describe_with([nccl = nccl_files_, now = recorder_->now_ns()](traces::store::EventSink& sink) {
        nccl->add_rows(sink, now, true);
    });
}

TraceOutput::End TraceOutput::finish_own(std::string& own_error) {
    run_ended_ = true;
    end_sources();
    End end;
    try {
        recorder_->finish();
        end.trace = path_;
        if (recorder_->dropped() > 0) {
            end.warnings.push_back(
                fmt::format("{} events did not fit into the recorder and are missing in {}",
                            recorder_->dropped(), path_));
        }
    } catch (const traces::store::StoreError& error) {
        end.failed = true;
        own_error = fmt::format("the trace is incomplete: {}", error.what());
        if (!reported_) end.warnings.push_back(own_error);
    }
    return end;
}

TraceOutput::End TraceOutput::finish() {
    if (!recorder_) return {};
    std::optional<LastWords> last_words;
    if (!world_ || world_->rank() == 0) last_words.emplace(where_unfinished());
    std::string own_error;
    End end = finish_own(own_error);
    if (!world_) return end;
    const Part own{path_, size_of_file(path_), own_error};
    end.trace.clear();
    std::vector<std::string> parts;
    bool all_here = true;
    for (const std::string& text : world_->gather(own.text())) {
        const Part part = Part::read(text);
        if (!part.error.empty() && part.path != path_) end.warnings.push_back(part.error);
        end.failed = end.failed || !part.error.empty();
        all_here = all_here && part.here();
        parts.push_back(part.path);
    }
    if (world_->rank() == 0) {
        if (all_here) {
            merge(parts, last_words, end);
        } else {
            end.note =
                fmt::format("each host has the parts of its own ranks ({}); copy them to one place, then: {}",
                            pattern_of(path_),
                            merge_command(pattern_of(fs::path(path_).filename().string()), job_.run.trace));
        }
    }
    world_->barrier();  // no rank reports success before the trace is complete
    return end;
}

void TraceOutput::merge(const std::vector<std::string>& parts, std::optional<LastWords>& last_words,
                        End& end) const {
    try {
        traces::merge::MergeOptions options;
        options.inputs = parts;
        options.output = job_.run.trace;
        options.overwrite = job_.run.overwrite;
        traces::merge::merge_traces(options);
        end.trace = job_.run.trace;
    } catch (const traces::store::StoreError& error) {
        end.warnings.push_back(fmt::format("the ranks' parts could not be merged: {}; they are {}",
                                           error.what(), pattern_of(path_)));
        end.failed = true;
        return;
    }
    last_words.reset();
    for (const std::string& part : parts) {
        std::error_code ignored;
        fs::remove(part, ignored);
    }
}

void TraceOutput::give_up() {
    if (!recorder_) return;
    end_sources();
    try {
        recorder_->finish();
    } catch (const traces::store::StoreError&) {  // the run's own failure is reported instead
    }
}

std::string TraceOutput::where_unfinished() const {
    if (world_) {
        return fmt::format("ended before the ranks' parts of the trace were merged; they are kept: {}",
                           merge_command(pattern_of(path_), job_.run.trace));
    }
    return fmt::format(
        "ended before the trace was sorted and indexed; it is kept: shardscope-trace check --finalize {}",
        path_);
}

std::string TraceOutput::parts_kept() const {
    if (!recorder_ || !world_ || world_->rank() > 0) return "";
    return fmt::format("each rank's part of the trace is complete until then: {}",
                       merge_command(pattern_of(path_), job_.run.trace));
}

}  // namespace shardscope::trainer::cli
