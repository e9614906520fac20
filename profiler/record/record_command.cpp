// The loop of shardscope-record, on its one thread: wait a little, drain, commit; then finish the trace.
#include "profiler/record/record_command.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "profiler/calibration.h"
#include "profiler/record/collector.h"
#include "profiler/record/launch.h"
#include "profiler/record/session.h"
#include "shardscope/version.h"
#include "traces/store/writer.h"

namespace shardscope::profiler {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr int kOwnFailure = 125;
constexpr std::chrono::milliseconds kDrainPeriod{20};
constexpr std::int64_t kCommitPeriodNs = 500'000'000;
constexpr std::int64_t kRowsPerCommit = 100'000;

void tell(const std::string& sentence) {
    fmt::print(stderr, "shardscope-record: {}\n", sentence);
}

std::int64_t utc_ns() {
    timespec t;
    ::clock_gettime(CLOCK_REALTIME, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::string base_name(const std::string& path) {
    return fs::path(path).filename().string();
}

// As one would type it: arguments with anything unusual in them are quoted.
std::string shell_line(const std::vector<std::string>& arguments) {
    constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
    std::string line;
    for (const std::string& argument : arguments) {
        if (!line.empty()) line += ' ';
        if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
            line += argument;
            continue;
        }
        line += '\'';
        for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
        line += '\'';
    }
    return line;
}

// The library to inject stands beside the tool: in the build folder, or installed. Empty when it is missing.
std::string find_injection_library() {
    std::error_code error;
    const fs::path tool = fs::read_symlink("/proc/self/exe", error);
    if (error) return {};
    const fs::path prefix = tool.parent_path().parent_path();
    for (const char* folder :
         {SHARDSCOPE_LIBDIR "/shardscope", "lib/shardscope", "lib64/shardscope", "lib"}) {
        const fs::path candidate = prefix / folder / "libshardscope_inject.so";
        if (fs::exists(candidate, error)) return candidate.string();
    }
    return {};
}

// One run of a command. The order of members is the order in which things are undone.
class Recording {
  public:
    Recording(const RecordOptions& options, bool announce)
        : options_(options), announce_(announce), clock_(clock_source()) {}

    int run() {
        traces::DatabaseWriter::check_output(options_.output, options_.overwrite);
        Command::Variables variables;
        if (options_.nvtx) {
            const std::string library = find_injection_library();
            if (library.empty()) {
                tell("libshardscope_inject.so is missing beside the tool; install again, or use --no-nvtx");
                return kOwnFailure;
            }
            variables = {{"NVTX_INJECTION64_PATH", library}, {kSessionVariable, session_.directory()}};
        }
        if (options_.delay_s <= 0) session_.set_state(SessionState::recording);
        origin_ns_ = monotonic_ns();
        start_utc_ns_ = utc_ns();
        Command command(options_.command, variables);
        if (announce_) tell(fmt::format("the trace will be {}", options_.output));
        open_output(command);
        std::optional<int> status;
        while (!(status = command.wait(kDrainPeriod))) guarded([&] { tick(); });
        exited_ns_ = now_ns();
        guarded([&] { finish(command, *status); });
        return failed_ ? kOwnFailure : *status;
    }

  private:
    std::int64_t now_ns() const { return monotonic_ns() - origin_ns_; }

    // The command goes on whatever happens to the trace; the first failure is told, once.
    template <typename Work>
    void guarded(Work work) {
        if (failed_) return;
        try {
            work();
        } catch (const std::exception& failure) {
            failed_ = true;
            session_.set_state(SessionState::stopped);
            tell(fmt::format("recording has stopped, the command goes on: {}", failure.what()));
        }
    }

    void open_output(const Command& command) {
        guarded([&] {
            traces::WriterOptions writer;
            writer.path = options_.output;
            writer.overwrite = options_.overwrite;
            writer.start_utc_ns = start_utc_ns_;
            writer.start_system_ns = origin_ns_;
            writer_ = std::make_unique<traces::DatabaseWriter>(writer);
            collector_ = std::make_unique<Collector>(session_.directory(), *writer_, clock_, origin_ns_);
            writer_->add(traces::RunInfoRow{"tool", fmt::format("shardscope-record {}", kVersion)});
            writer_->add(traces::RunInfoRow{"command", shell_line(options_.command)});
            writer_->add(traces::RunInfoRow{"pid", fmt::format("{}", command.pid())});
            writer_->commit();
        });
    }

    void tick() {
        const std::int64_t now = now_ns();
        const auto delay = static_cast<std::int64_t>(options_.delay_s * 1e9);
        if (!started_ && now >= delay) {
            started_ = true;
            session_.set_state(SessionState::recording);
        }
        if (stopped_ns_ >= 0) return;
        if (options_.duration_s && now >= delay + static_cast<std::int64_t>(*options_.duration_s * 1e9)) {
            stopped_ns_ = now;
            session_.set_state(SessionState::stopped);
            collector_->finish(now);
            writer_->commit();
            return;
        }
        collector_->drain();
        if (now - committed_ns_ < kCommitPeriodNs && collector_->rows() - committed_rows_ < kRowsPerCommit)
            return;
        writer_->commit();
        committed_ns_ = now;
        committed_rows_ = collector_->rows();
    }

    void finish(const Command& command, int status) {
        session_.set_state(SessionState::stopped);
        if (stopped_ns_ < 0) collector_->finish(exited_ns_);
        if (!collector_->knows(command.pid())) {
            writer_->add(traces::ProcessRow{traces::global_pid(command.pid()), command.pid(),
                                            base_name(options_.command[0])});
        }
        writer_->add(traces::RunInfoRow{"exit_status", fmt::format("{}", status)});
        const std::int64_t duration = stopped_ns_ >= 0 ? stopped_ns_ : exited_ns_;
        if (collector_->damaged() != 0) {
            const std::string text = fmt::format(
                "{} stretches of records were damaged and left out; did the command write over its own "
                "memory?",
                collector_->damaged());
            writer_->add(traces::DiagnosticRow{duration, traces::Severity::warning, text});
            tell(text);
        }
        writer_->finish(duration, collector_->dropped());
        report();
    }

    void report() const {
        std::string line =
            fmt::format("wrote {}: {} events of {} process{}", options_.output, collector_->rows(),
                        collector_->processes(), collector_->processes() == 1 ? "" : "es");
        if (collector_->rows() == 0) {
            line = fmt::format("wrote {}: no events; ", options_.output);
            line += options_.nvtx ? "the command made no NVTX call" : "nothing was asked for (--no-nvtx)";
        }
        if (collector_->dropped() != 0) line += fmt::format(", {} more were lost", collector_->dropped());
        tell(line);
    }

    const RecordOptions& options_;
    const bool announce_;  // the name of the output, which the user did not choose
    Session session_;
    Calibration clock_;
    std::unique_ptr<traces::DatabaseWriter> writer_;
    std::unique_ptr<Collector> collector_;
    std::int64_t origin_ns_ = 0, start_utc_ns_ = 0, exited_ns_ = 0;
    std::int64_t stopped_ns_ = -1;  // when --duration ended the recording
    std::int64_t committed_ns_ = 0, committed_rows_ = 0;
    bool started_ = false, failed_ = false;
};

}  // namespace

int record(const RecordOptions& given) {
    RecordOptions options = given;
    if (options.output.empty()) {
        options.output = fmt::format("shardscope-{}-{}.sqlite", base_name(options.command[0]), ::getpid());
    }
    try {
        return Recording(options, given.output.empty()).run();
    } catch (const LaunchError& error) {
        tell(error.what());
        return error.status;
    } catch (const std::exception& error) {
        tell(error.what());
        return kOwnFailure;
    }
}

}  // namespace shardscope::profiler
