// What NVTX ranges cost a program that is recorded from outside, compared with two readings of the clock
// (the least that a timed range can cost), with the same program alone and, if nsys is found (on PATH or as
// $NSYS), with Nsight Systems. All run in turn, in several rounds, so that a busy machine affects each
// alike. Not a test.
//
//   bench_injection [--rounds N]
//   bench_injection --soak SECONDS [--rate RANGES_PER_SECOND] [--threads N] [--output FILE] [--strict]
//
// The soak records paced ranges to FILE (default: in /dev/shm), watches the memory of program and tool, and
// compares what was sent with what is in the file: exits with 1 unless sent = stored + lost. With --strict,
// also if something was lost or either used more than 256 MiB.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/bench/injection_worker.h"
#include "traces/store/sqlite/sqlite.h"

namespace {

namespace fs = std::filesystem;
using Figures = std::map<std::string, double>;

fs::path self() {
    return fs::read_symlink("/proc/self/exe");
}

// A folder for this run, removed at its end.
class Folder {
  public:
    explicit Folder(const std::string& parent) : path_(parent + "/bench-injection-XXXXXX") {
        if (::mkdtemp(path_.data()) == nullptr) {
            fmt::print(stderr, "bench_injection: cannot make a folder in {}\n", parent);
            std::exit(1);
        }
    }
    ~Folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

pid_t spawn(const std::vector<std::string>& arguments, bool quiet) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::setpgid(0, 0);
    std::vector<char*> raw;
    for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
    raw.push_back(nullptr);
    if (quiet && (std::freopen("/dev/null", "w", stdout) == nullptr ||
                  std::freopen("/dev/null", "w", stderr) == nullptr)) {
        std::_Exit(126);
    }
    ::execvp(raw[0], raw.data());
    std::_Exit(127);
}

// A program that does not end within a minute is killed, with what it started (nsys has been seen to hang).
int wait_for(pid_t pid) {
    int status = 0;
    for (int tenths = 0; ::waitpid(pid, &status, WNOHANG) == 0; ++tenths) {
        if (tenths == 600) ::kill(-pid, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Figures read_figures(const std::string& path) {
    Figures figures;
    std::ifstream file(path);
    std::string name;
    double value = 0;
    while (file >> name >> value) figures[name] = value;
    return figures;
}

std::string find_nsys() {
    if (const char* chosen = std::getenv("NSYS"); chosen != nullptr && *chosen != '\0') return chosen;
    const char* path = std::getenv("PATH");
    std::string folders = path != nullptr ? path : "";
    for (std::size_t at = 0; at <= folders.size();) {
        const std::size_t end = std::min(folders.find(':', at), folders.size());
        const std::string candidate = folders.substr(at, end - at) + "/nsys";
        if (::access(candidate.c_str(), X_OK) == 0) return candidate;
        at = end + 1;
    }
    return "";
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// --- what a range costs ------------------------------------------------------------------------------------

// The ways of recording: none; recorded; with the library injected but its window closed, which
// cudaProfilerStart() or a named range would open; and by Nsight Systems.
enum Way { kAlone, kRecorded, kClosed, kWaiting, kNsys, kWays };

int compare(int rounds) {
    const Folder folder(fs::exists("/dev/shm") ? "/dev/shm" : "/tmp");
    const std::string tool = (self().parent_path() / "shardscope-record").string();
    const std::string nsys = find_nsys();
    const std::string result = folder / "figures";
    std::map<std::string, std::vector<double>> times[kWays];
    for (int round = 0; round < rounds; ++round) {
        for (int way = 0; way < kWays; ++way) {
            if (way == kNsys && nsys.empty()) continue;
            std::vector<std::string> command;
            if (way == kRecorded) {
                command = {tool, "-o", folder / "trace.sqlite", "--overwrite", "--"};
            }
            if (way == kClosed || way == kWaiting) {
                command = {tool, "-o", folder / "closed.sqlite", "--overwrite"};
                if (way == kClosed) command.push_back("--profiler-api");
                if (way == kWaiting) command.insert(command.end(), {"--range", "a range that never comes"});
                command.push_back("--");
            }
            if (way == kNsys) {
                command = {nsys,
                           "profile",
                           "-t",
                           "nvtx",
                           "--sample=none",
                           "--cpuctxsw=none",
                           "--export=none",
                           "--force-overwrite=true",
                           "-o",
                           folder / "nsys"};
            }
            command.insert(command.end(), {self().string(), "--worker", result});
            std::error_code ignored;
            fs::remove(result, ignored);
            const int status = wait_for(spawn(command, way != kAlone));
            const Figures figures = read_figures(result);
            if (figures.empty()) {
                fmt::print(stderr, "bench_injection: {} ended with {} and no figures\n", command[0], status);
                if (way != kNsys) return 1;
                continue;
            }
            for (const auto& [name, value] : figures) times[way][name].push_back(value);
        }
    }
    fmt::print("push and pop of a range, ns (medians of {} rounds; NVTX's own headers: {})\n", rounds,
               shardscope::bench::has_nvtx_headers() ? "yes" : "no");
    fmt::print("{:<18}{:>10}{:>10}{:>16}{:>9}{:>9}{:>11}{:>9}\n", "", "alone", "recorded", "over two reads",
               "closed", "waiting", "nsys", "ratio");
    for (const char* name : {"two_clock_reads", "short_text", "text_of_38", "registered", "payload_of_16",
                             "two_threads", "sustained"}) {
        const double reads = median(times[kRecorded]["two_clock_reads"]);
        const double recorded = median(times[kRecorded][name]);
        fmt::print("{:<18}{:>10.2f}{:>10.2f}", name, median(times[kAlone][name]), recorded);
        if (std::strcmp(name, "two_clock_reads") == 0) {
            fmt::print("\n");
            continue;
        }
        fmt::print("{:>16.2f}{:>9.2f}{:>9.2f}", recorded - reads, median(times[kClosed][name]),
                   median(times[kWaiting][name]));
        if (times[kNsys][name].empty()) {
            fmt::print("{:>11}\n", "not found");
        } else {
            const double theirs = median(times[kNsys][name]);
            fmt::print("{:>11.1f}{:>8.1f}x\n", theirs, theirs / recorded);
        }
    }
    return 0;
}

// --- the soak ----------------------------------------------------------------------------------------------

// Resident memory in MiB; 0 when the process is gone.
double resident_mib(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/statm", pid));
    double size = 0, resident = 0;
    file >> size >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGE_SIZE)) / (1 << 20);
}

// Processor time that the process has used, in seconds.
double processor_seconds(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(") ");
    if (name_end == std::string::npos) return 0;
    std::istringstream fields(line.substr(name_end + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;  // state … majflt, cmajflt
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

pid_t first_child(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/task/{}/children", pid, pid));
    pid_t child = 0;
    file >> child;
    return child;
}

struct Memory {
    double half = 0, most = 0;  // after half of the time, and the maximum
};

int soak(double seconds, double rate, int threads, std::string output, bool strict) {
    const Folder folder(fs::exists("/dev/shm") ? "/dev/shm" : "/tmp");
    const std::string result = folder / "figures";
    if (output.empty()) output = folder / "soak.sqlite";
    const std::string tool = (self().parent_path() / "shardscope-record").string();
    const pid_t pid =
        spawn({tool, "-o", output, "--overwrite", "--", self().string(), "--worker-soak", result,
               fmt::format("{}", threads), fmt::format("{}", rate), fmt::format("{}", seconds)},
              false);
    Memory tool_memory, program_memory;
    double tool_seconds = 0;
    const auto start = std::chrono::steady_clock::now();
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
        const double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        const auto watch = [&](pid_t process, Memory& memory) {
            const double mib = process > 0 ? resident_mib(process) : 0;
            memory.most = std::max(memory.most, mib);
            if (time < seconds / 2) memory.half = std::max(memory.half, mib);
        };
        watch(pid, tool_memory);
        tool_seconds = std::max(tool_seconds, processor_seconds(pid));
        watch(first_child(pid), program_memory);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    const Figures figures = read_figures(result);
    if (figures.empty()) {
        fmt::print(stderr, "bench_injection: the soak left no figures (status {})\n", status);
        return 1;
    }
    const auto sent = static_cast<std::int64_t>(figures.at("sent"));
    shardscope::traces::store::Database file(output, shardscope::traces::store::Database::Mode::read_only);
    const std::int64_t stored = file.integer("SELECT COUNT(*) FROM NVTX_EVENTS WHERE eventType = 59");
    const std::int64_t lost = file.integer("SELECT dropped FROM SHARD_STATE");
    fmt::print("sent {} in {:.1f} s ({:.2f} M/s), stored {}, lost {}: {}\n", sent, figures.at("seconds"),
               static_cast<double>(sent) / figures.at("seconds") / 1e6, stored, lost,
               sent == stored + lost ? "all accounted for" : "NOT ALL ACCOUNTED FOR");
    fmt::print("resident MiB, half-way and at most: program {:.0f} {:.0f}, shardscope-record {:.0f} {:.0f}\n",
               program_memory.half, program_memory.most, tool_memory.half, tool_memory.most);
    fmt::print("shardscope-record used {:.2f} s of processor time: {:.0f} ns for each stored range\n",
               tool_seconds, tool_seconds * 1e9 / static_cast<double>(std::max<std::int64_t>(stored, 1)));
    if (sent != stored + lost) return 1;
    return strict && (lost != 0 || std::max(program_memory.most, tool_memory.most) > 256) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (argc == 3 && arguments[0] == "--worker") return shardscope::bench::time_calls(argv[2]);
    if (argc == 6 && arguments[0] == "--worker-soak") {
        return shardscope::bench::make_ranges(argv[2], std::atoi(argv[3]), std::atof(argv[4]),
                                              std::atof(argv[5]));
    }
    int rounds = 5, threads = 4;
    double seconds = 0, rate = 1e6;
    std::string output;
    bool strict = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& option = arguments[i];
        if (option == "--strict") {
            strict = true;
            continue;
        }
        if (i + 1 == arguments.size()) {
            fmt::print(stderr, "bench_injection: {} needs a value\n", option);
            return 2;
        }
        const std::string& value = arguments[++i];
        if (option == "--rounds") {
            rounds = std::max(1, std::atoi(value.c_str()));
        } else if (option == "--soak") {
            seconds = std::atof(value.c_str());
        } else if (option == "--rate") {
            rate = std::atof(value.c_str());
        } else if (option == "--threads") {
            threads = std::clamp(std::atoi(value.c_str()), 1, 1024);
        } else if (option == "--output") {
            output = value;
        } else {
            fmt::print(stderr, "bench_injection: unknown option {}\n", option);
            return 2;
        }
    }
    return seconds > 0 ? soak(seconds, rate, threads, output, strict) : compare(rounds);
}
