// The recording loop.
#include "profiler/record/recording.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include "profiler/record/command_line.h"
#include "profiler/record/injection.h"
#include "profiler/record/stack_source.h"
#include "profiler/record/wording.h"
#include "profiler/sampler/process_tree.h"
#include "shardscope/version.h"
#include "traces/store/machine.h"

namespace shardscope::profiler {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kDrainPeriod{20};
constexpr std::int64_t kCommitPeriodNs = 500'000'000;
constexpr std::int64_t kRowsPerCommit = 100'000;
// How long to wait for device work launched before a stop: programs report ended work each second.
constexpr std::int64_t kLateNs = 2'000'000'000;
constexpr std::int64_t kLookPeriodNs = 500'000'000;  // for new processes, of which counters are sampled
constexpr std::int64_t kLateShare = 16;              // 1/16 of --max-size is reserved for that work

std::int64_t utc_ns() {
    timespec t;
    ::clock_gettime(CLOCK_REALTIME, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::int64_t to_ns(double seconds) {
    return static_cast<std::int64_t>(seconds * 1e9);
}

std::uint32_t sources(const RecordOptions& options) {
    return (options.nvtx ? kSourceNvtx : 0) | (options.cuda ? kSourceCuda : 0) |
           (options.cuda && options.whole_graphs ? kSourceWholeGraphs : 0) | (options.nccl ? kSourceNccl : 0);
}

SessionOptions session_options(const RecordOptions& options) {
    SessionOptions session;
    session.sources = sources(options);
    session.window = options.window;
    session.first_step = options.first_step;
    session.last_step = options.last_step;
    session.range_name = options.range_name;
    session.ranks = options.ranks;
    return session;
}

}  // namespace

Recording::Recording(const RecordOptions& options, const OutputName& output)
    : options_(options),
      output_(output),
      launched_(launched_rank(environment_variable)),
      session_(session_options(options)),
      clock_(clock_source()) {}

// The first failure ends recording, and is reported.
template <typename Work>
void Recording::guarded(Work work) {
    if (failed_) return;
    try {
        work();
    } catch (const std::exception& failure) {
        failed_ = true;
        session_.set_state(SessionState::stopped);
        std::string line = fmt::format(
            "{}: {}", ended_ ? "the trace is not complete" : "recording has stopped, the command continues",
            failure.what());
        if (writer_ != nullptr && fs::exists(output_.path)) {
            line += fmt::format(
                "; what was recorded before is in {}, shardscope-trace check --finalize completes it",
                output_.path);
        }
        tell(line);
    }
}

int Recording::run() {
    traces::store::DatabaseWriter::check_output(output_.path, options_.overwrite);
    const bool window_needs_nvtx =
        options_.window == WindowKind::steps || options_.window == WindowKind::range;
    Injection injection;
    if (cannot_load_recorder(options_.command[0])) {
        injection.notices.push_back(fmt::format(
            "{} is linked statically and calls NVTX: glibc would crash it with the recorder loaded, so "
            "only counters are recorded for it and the programs it starts; link it dynamically",
            options_.command[0]));
    } else if (sources(options_) != 0 || window_needs_nvtx) {
        const std::string library = find_injection_library();
        if (library.empty()) {
            tell(
                "libshardscope_inject.so is missing next to the tool; install again, or use --no-nvtx "
                "--no-cuda --no-nccl");
            return kOwnFailure;
        }
        injection = make_injection(library, session_.directory(), sources(options_), window_needs_nvtx);
    }
    started_ = options_.delay_s <= 0 && (options_.toggle_signal == 0 || options_.keep_last_s);
    recording_ = started_;
    if (recording_) session_.set_state(SessionState::recording);
    origin_ = MonotonicTime::now();
    start_utc_ns_ = utc_ns();
    if (options_.sample_hertz > 0) prepare_sampling(injection);
    open_status();
    start_nccl_files();
    Command::Variables variables = injection.variables;
    if (nccl_files_) {
        const auto& more = nccl_files_->variables();
        variables.insert(variables.end(), more.begin(), more.end());
    }
    command_.emplace(options_.command, variables, options_.toggle_signal);
    if (announces()) {
        for (const std::string& notice : injection.notices) tell(notice);
        if (!output_.all_ranks.empty()) {
            tell(fmt::format("each rank writes a trace of its own, {}", output_.all_ranks));
        } else if (output_.made_up) {
            tell(fmt::format("the trace will be {}", output_.path));
        }
    }
    guarded([&] { open_output(); });
    std::optional<int> status;
    const auto at_end = [&] {
        if (counters_ != nullptr && recording_) counters_->sample_now();
    };
    while (!(status = command_->wait(kDrainPeriod, at_end))) guarded([&] { tick(); });
    ended_ = true;
    close_status(*status);
    guarded([&] { finish(*status); });
    return *status;
}

void Recording::prepare_sampling(Injection& injection) {
    StackSource stacks = make_stack_source(options_, session_.directory());
    if (!stacks.library.empty()) preload(injection, stacks.library, session_.directory());
    if (!stacks.notice.empty()) injection.notices.push_back(stacks.notice);
    sampling_notice_ = std::move(stacks.notice);
    if (stacks.source != nullptr) stacks_ = std::make_unique<StackSampler>(std::move(stacks.source));
}

// Before the command starts, so that an address that cannot be used is an error of this tool.
void Recording::open_status() {
    if (!options_.status) return;
    LiveRecording::Facts facts;
    facts.command = shell_line(options_.command);
    facts.trace = output_.path;
    facts.host = traces::store::host_name();
    facts.pid = ::getpid();
    facts.step_name = options_.window == WindowKind::steps ? options_.range_name : "ProfilerStep#";
    live_ = std::make_unique<LiveRecording>(*options_.status, std::move(facts));
    if (announces())
        tell(fmt::format("status at {0}; shardscope-trace watch {0} shows it", live_->address()));
}

void Recording::close_status(int status) {
    if (live_ == nullptr) return;
    live_->end(now_ns(), status, collector_.get());
    if (sink_ != nullptr) sink_->show(nullptr);
    live_.reset();
}

traces::store::WriterOptions Recording::writer_options(const std::string& path) const {
    traces::store::WriterOptions writer;
    writer.path = path;
    writer.overwrite = options_.overwrite;
    writer.start_utc_ns = start_utc_ns_;
    writer.start_system_ns = origin_.ns;
    return writer;
}

void Recording::open_output() {
    if (options_.keep_last_s) {
        const auto bytes = static_cast<std::size_t>(options_.max_bytes.value_or(RecentRows::kMaxBytes));
        recent_ = std::make_unique<RecentRows>(to_ns(*options_.keep_last_s), bytes);
        recent_->set_other_users(
            [this](const RecentRows::Visit& visit) { collector_->visit_strings(visit); });
        sink_ = std::make_unique<CountingSink>(*recent_);
    } else {
        writer_ = std::make_unique<traces::store::DatabaseWriter>(writer_options(output_.path));
        // The last part is for what is open when the limit is reached, and for device work that ends late.
        if (options_.max_bytes) writer_->limit_size(*options_.max_bytes - *options_.max_bytes / kLateShare);
        sink_ = std::make_unique<CountingSink>(*writer_);
    }
    if (live_ != nullptr) sink_->show(&live_->rows());
    collector_ = std::make_unique<Collector>(session_.directory(), *sink_, clock_, origin_);
    if (options_.counters) start_counters();
    describe_run(*sink_);
    if (!sampling_notice_.empty()) {
        const auto severity =
            stacks_ != nullptr ? traces::schema::Severity::information : traces::schema::Severity::warning;
        sink_->add(traces::schema::DiagnosticRow{0, severity, sampling_notice_});
    }
    sink_->commit();
}

void Recording::describe_run(traces::store::EventSink& sink) const {
    sink.add(traces::schema::RunInfoRow{"tool", fmt::format("shardscope-record {}", kVersion)});
    sink.add(traces::schema::RunInfoRow{"command", shell_line(options_.command)});
    sink.add(traces::schema::RunInfoRow{"pid", fmt::format("{}", command_->pid())});
    if (stacks_ != nullptr) sink.add(traces::schema::RunInfoRow{"sampled_by", std::string(stacks_->means())});
    if (live_ != nullptr) sink.add(traces::schema::RunInfoRow{"status_address", live_->address()});
    if (options_.window == WindowKind::steps) {
        const bool open = options_.last_step == INT64_MAX;
        sink.add(traces::schema::RunInfoRow{
            "window", fmt::format("steps {} to {}", options_.first_step,
                                  open ? std::string("the last") : fmt::format("{}", options_.last_step))});
    } else if (options_.window == WindowKind::range) {
        sink.add(traces::schema::RunInfoRow{"window", fmt::format("range {}", options_.range_name)});
    } else if (options_.window == WindowKind::cuda_profiler) {
        sink.add(traces::schema::RunInfoRow{"window", "cudaProfilerStart to cudaProfilerStop"});
    } else if (options_.keep_last_s) {
        sink.add(traces::schema::RunInfoRow{"window", fmt::format("the last {} s", *options_.keep_last_s)});
    }
}

void Recording::tick() {
    const std::int64_t now = now_ns();
    if (const int signals = command_->take_own_signals(); signals != 0) {
        // Two signals since the last tick cancel each other out, except with --keep-last.
        if (recent_ != nullptr || signals % 2 == 1) on_signal(now);
    }
    if (live_ != nullptr) live_->tick(now, *collector_);
    if (stopped_ns_ >= 0) {
        take_late(now);
        return;
    }
    if (!started_ && options_.toggle_signal == 0 && now >= to_ns(options_.delay_s)) {
        set_recording(true, now);
    }
    if (options_.duration_s && now >= to_ns(options_.delay_s) + to_ns(*options_.duration_s)) {
        stop(now);
        return;
    }
    if (recent_ != nullptr) recent_->advance(now);
    collector_->drain();
    take_counters();
    if (stacks_ != nullptr) stacks_->tick(place_of_stacks());
    look_for_hang(now);
    commit_when_due(now);
    look_at_size(now);
}

void Recording::on_signal(std::int64_t now) {
    if (recent_ != nullptr) {
        collector_->drain();
        write_kept({"the signal that requests a trace arrived", now, true});
    } else if (stopped_ns_ < 0) {
        set_recording(!recording_, now);
    }
}

void Recording::set_recording(bool on, std::int64_t now) {
    const bool by_signal = options_.toggle_signal != 0;
    started_ = true;
    take_stacks();  // of the time until now, in which it was as it was
    recording_ = on;
    if (on) counted_from_ns_ = now;
    session_.set_state(on ? SessionState::recording : SessionState::waiting);
    if (!on) collector_->pause(now);
    if (!by_signal) return;
    sink_->add(traces::schema::DiagnosticRow{
        now, traces::schema::Severity::information,
        fmt::format("recording {} by signal {:.3f} s after the start", on ? "was started" : "was stopped",
                    static_cast<double>(now) * 1e-9)});
    sink_->commit();
}

void Recording::stop(std::int64_t now) {
    take_stacks();
    if (stacks_ != nullptr) stacks_->stop();
    take_counters();
    counters_.reset();
    stopped_ns_ = now;
    recording_ = false;
    session_.set_state(SessionState::stopped);
    collector_->pause(now);
    sink_->commit();
}

void Recording::take_late(std::int64_t now) {
    if (took_late_) return;
    collector_->drain();
    if (now - stopped_ns_ < kLateNs) return;
    took_late_ = true;
    collector_->finish(stopped_ns_);
    sink_->commit();
}

void Recording::start_counters() {
    SamplerOptions options;
    options.origin = origin_;
    options.host = traces::store::host_name("");
    options.from_the_start = true;
    options.alone = !launched_;
    options.whole_host = !launched_ || launched_->local_rank.value_or(0) == 0;
    options.visible_gpus = environment_variable("CUDA_VISIBLE_DEVICES");
    options.rank_of = rank_of_process;
    look_for_children(now_ns());
    try {
        counters_ = std::make_unique<Counters>(std::move(options), watched());
    } catch (const std::system_error& error) {
        sink_->add(traces::schema::DiagnosticRow{
            now_ns(), traces::schema::Severity::warning,
            fmt::format("counters are not recorded: their thread cannot be started: {}", error.what())});
    }
}

// Finds the processes of the command, also those that write no records.
void Recording::look_for_children(std::int64_t now) {
    if (now < next_look_ns_) return;
    next_look_ns_ = now + kLookPeriodNs;
    children_.clear();
    for (const pid_t pid : process_tree(SystemFiles(), command_->pid())) {
        // A rank that no process has recorded has no row that says where it ran.
        const int rank = launched_ ? launched_->rank : rank_of_process(pid);
        children_.push_back({pid, launched_ || collector_->has_rank(rank) ? rank : -1});
    }
}

// The command's processes: those that write records, with their ranks, and the others.
std::vector<WatchedProcess> Recording::watched() const {
    std::vector<WatchedProcess> processes = collector_->living();
    const auto recorded = static_cast<std::ptrdiff_t>(processes.size());
    for (const WatchedProcess& child : children_) {
        const auto end = processes.begin() + recorded;
        const bool known = std::any_of(processes.begin(), end,
                                       [&](const auto& process) { return process.pid == child.pid; });
        if (!known) processes.push_back(child);
    }
    return processes;
}

void Recording::take_counters() {
    if (counters_ == nullptr) return;
    look_for_children(now_ns());
    counters_->watch(watched());
    if (!recording_ || (writer_ != nullptr && writer_->is_full())) return counters_->discard();
    const Samples samples = counters_->write(*sink_, MonotonicTime(origin_.ns + counted_from_ns_));
    if (nccl_files_) nccl_files_->know(samples);
}

// As for counters, the first process of a host is the one that has its files written.
void Recording::start_nccl_files() {
    if (!options_.nccl) return;
    nccl_files_.emplace(NcclFilesOptions{.host = traces::store::host_name(""),
                                         .rank = launched_ ? launched_->rank : -1,
                                         .writes = !launched_ || launched_->local_rank.value_or(0) == 0,
                                         .environment = environment_variable});
}

StackSampler::Place Recording::place_of_stacks() {
    const bool full = writer_ != nullptr && writer_->is_full();
    return {.sink = *sink_,
            .origin = origin_,
            .recording = recording_ && !full,
            .last = ended_,
            .rank_of = [this](std::int32_t pid) { return rank_of(pid); }};
}

// All that has arrived: the last samples of a drain wait for the next.
void Recording::take_stacks() {
    if (stacks_ == nullptr) return;
    for (int drains = 0; drains < 2; ++drains) stacks_->drain(place_of_stacks());
}

int Recording::rank_of(std::int32_t pid) const {
    for (const WatchedProcess& process : watched())
        if (process.pid == pid) return process.rank;
    return launched_ ? launched_->rank : -1;
}

void Recording::look_for_hang(std::int64_t now) {
    if (!options_.hang_s) return;
    if (collector_->activity() != activity_) {
        activity_ = collector_->activity();
        active_ns_ = now;
        hung_ = false;
        return;
    }
    // A program that has not begun to record is still starting, and a hang is reported only once.
    if (activity_ == 0 || hung_ || now - active_ns_ < to_ns(*options_.hang_s)) return;
    hung_ = true;
    write_kept(
        {fmt::format("nothing was recorded for {} s: the command hangs", *options_.hang_s), now, true});
}

void Recording::commit_when_due(std::int64_t now) {
    if (now - committed_ns_ < kCommitPeriodNs && collector_->rows() - committed_rows_ < kRowsPerCommit)
        return;
    sink_->commit();
    committed_ns_ = now;
    committed_rows_ = collector_->rows();
}

void Recording::look_at_size(std::int64_t now) {
    if (writer_ == nullptr || !writer_->is_full()) return;
    session_.set_state(SessionState::stopped);
    collector_->drain();  // there is no room for what is not drained yet: it is refused
    writer_->limit_size(*options_.max_bytes);
    stop(now);
    const std::string text =
        fmt::format("recording stopped {} after the start, when the trace had {} (--max-size)", seconds(now),
                    human_bytes(static_cast<std::uint64_t>(writer_->finished_bytes())));
    sink_->add(traces::schema::DiagnosticRow{now, traces::schema::Severity::warning, text});
    sink_->commit();
    tell(text + "; the command continues");
}

}  // namespace shardscope::profiler
