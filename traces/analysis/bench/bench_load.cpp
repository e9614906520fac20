// Measures how fast a finished database becomes results, in the process's own CPU time, so that other load on
// the machine does not matter. Also measures the bare scan in the same run: sqlite3_step and the reading of
// every value, in the same order, of the columns that loading and the analyses read; the whole should cost at
// most twice that. Not a test.
//   build/<preset>/bin/bench_load --rows 10000000 --folder /dev/shm     makes a run of 8 ranks, then measures
//   build/<preset>/bin/bench_load --file TRACE.sqlite                   measures that file
//   build/<preset>/bin/bench_load --rows N --make TRACE.sqlite           makes a run and keeps it
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <malloc.h>
#include <sqlite3.h>
#include <time.h>

#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/summary.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace {

using namespace shardscope::traces;
using namespace shardscope::traces::schema;
namespace fs = std::filesystem;

constexpr int kRanks = 8, kLayers = 100;
constexpr std::int64_t kRowsPerCall = 33;  // approximate, in a layer's forward or backward

double cpu_seconds() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::int64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::int64_t pages = 0, resident = 0;
    statm >> pages >> resident;
    return resident * 4096;
}

// --- the run -------------------------------------------------------------------------------------------

// A training job: each layer's forward and backward is a module range with two linear modules, whose
// operators launch kernels; each gathers its unit on a separate stream.
class Job {
  public:
    explicit Job(store::DatabaseWriter& to) : to_(to) {
        for (int r = 0; r < kRanks; ++r) {
            to.add(RankRow{.rank = r,
                           .device = r,
                           .global_pid = pid(r),
                           .global_tid = tid(r),
                           .host = "host",
                           .device_name = "GPU"});
            to.add(ThreadRow{.global_tid = tid(r), .name = "rank", .rank = r});
            to.add(ThreadRow{.global_tid = tid(r) + 1, .name = "autograd", .rank = r});
        }
        to.add(module_row(0, -1, "Model_0"));
        for (int l = 0; l < kLayers; ++l) {
            to.add(module_row(1 + 3 * l, 0, fmt::format("Block_{}", l)));
            to.add(module_row(2 + 3 * l, 1 + 3 * l, fmt::format("Linear_{}", 2 * l)));
            to.add(module_row(3 + 3 * l, 1 + 3 * l, fmt::format("Linear_{}", 2 * l + 1)));
            UnitRow unit{.id = l, .module = 1 + 3 * l, .name = fmt::format("layers.{}", l)};
            unit.bytes = 1 << 24;
            to.add(unit);
        }
        for (int k = 0; k < 60; ++k) kernels_.push_back(to.intern(fmt::format("sm90_gemm_kernel_{}", k)));
        for (int o = 0; o < 12; ++o) operators_.push_back(to.intern(fmt::format("aten::operator_{}", o)));
        for (int m = 0; m < 1 + 3 * kLayers; ++m) {
            modules_.push_back(to.intern(fmt::format("nn.Module: {}", names_[static_cast<std::size_t>(m)])));
        }
        launch_ = to.intern("cudaLaunchKernel_v7000");
        wait_ = to.intern("cudaStreamWaitEvent_v3020");
        nccl_ = to.intern("ncclDevKernel_AllGather_RING_LL");
        nccl_call_ = to.intern("ncclAllGather");
        nccl_domain_ = to.intern("NCCL");
        buffer_ = to.intern("flat_param");
    }

    void run(std::int64_t rows) {
        const std::int64_t steps = std::max<std::int64_t>(2, rows / (kRowsPerCall * 2 * kLayers * kRanks));
        for (std::int64_t s = 0; s < steps; ++s) {
            for (int r = 0; r < kRanks; ++r) step(s, r);
            to_.commit();
        }
        to_.finish(steps * kStepNs + kStepNs, 0);
    }

  private:
    static constexpr std::int64_t kCallNs = 100'000, kStepNs = (2 * kLayers + 2) * kCallNs;
    static std::int64_t pid(int rank) { return global_pid(1000 + rank); }
    static std::int64_t tid(int rank) { return global_tid(1000 + rank, 1000 + rank); }

    ModuleRow module_row(int id, int parent, const std::string& name) {
        names_.push_back(name);
        return {
            .id = id, .parent = parent, .name = name, .class_name = name, .path = name, .parameters = 1000};
    }

    void range(std::int64_t start, std::int64_t end, StringId name, std::int64_t thread, int module = -1,
               StringId domain = StringId::empty) {
        range_.start = start;
        range_.end = end;
        range_.text = name;
        range_.domain = domain;
        range_.global_tid = thread;
        range_.module = module;
        to_.add(range_);
    }

    void launch(int rank, std::int64_t thread, std::int64_t time, StringId name, std::int64_t& free_at,
                std::int64_t took, int stream) {
        const std::int64_t correlation = ++correlation_;
        RuntimeRow call{.start = time, .end = time + 3000};
        call.global_tid = thread;
        call.correlation = correlation;
        call.name = launch_;
        to_.add(call);
        kernel_.start = std::max(free_at, time + 6000);
        kernel_.end = kernel_.start + took;
        free_at = kernel_.end;
        kernel_.device = rank;
        kernel_.stream = stream;
        kernel_.correlation = correlation;
        kernel_.global_pid = pid(rank);
        kernel_.short_name = name;
        kernel_.demangled_name = name;
        to_.add(kernel_);
    }

    void call(int rank, std::int64_t start, int layer, bool backward) {
        const std::int64_t thread = backward ? tid(rank) + 1 : tid(rank);
        const int block = 1 + 3 * layer;
        std::int64_t& compute = compute_free_[rank];
        std::int64_t& gather = gather_free_[rank];
        range(start, start + 95'000, modules_[static_cast<std::size_t>(block)], thread, block);
        range(start + 500, start + 5000, nccl_call_, thread, -1, nccl_domain_);
        launch(rank, thread, start + 1000, nccl_, gather, 40'000, 13);
        to_.add(CollectiveRow{.rank = rank,
                              .correlation = correlation_,
                              .operation = Operation::all_gather,
                              .bytes = 1 << 24,
                              .group = 1,
                              .group_size = kRanks,
                              .sequence = ++sequence_[rank],
                              .unit = layer,
                              .phase = backward ? Phase::backward : Phase::forward});
        for (int l = 0; l < 2; ++l) {
            const int module = block + 1 + l;
            const std::int64_t from = start + 6000 + l * 40'000;
            range(from, from + 38'000, modules_[static_cast<std::size_t>(module)], thread, module);
            for (int o = 0; o < 2; ++o) {
                const std::int64_t at = from + 1000 + o * 18'000;
                range(at, at + 17'000, operators_[static_cast<std::size_t>((layer + 2 * l + o) % 12)],
                      thread);
                for (int k = 0; k < 2; ++k) {
                    launch(rank, thread, at + 1000 + k * 7000,
                           kernels_[static_cast<std::size_t>((layer * 4 + o * 2 + k) % 60)], compute,
                           9000 + layer * 10, 7);
                }
            }
            memory(rank, from + 500, std::uint64_t(0x1000 + layer * 64 + l), 1 << 20, layer, module);
            memory(rank, from + 37'000, std::uint64_t(0x1000 + layer * 64 + l), -(1 << 20), layer, module);
        }
        RuntimeRow wait{.start = start + 90'000, .end = start + 91'000};
        wait.global_tid = thread;
        wait.correlation = ++correlation_;
        wait.name = wait_;
        to_.add(wait);
    }

    void memory(int rank, std::int64_t time, std::uint64_t address, std::int64_t bytes, int unit,
                int module) {
        MemoryRow row{.time = time, .rank = rank, .address = address, .bytes = bytes};
        row.category = MemoryCategory::activations;
        row.unit = unit;
        row.module = module;
        row.name = buffer_;
        to_.add(row);
    }

    void step(std::int64_t number, int rank) {
        const std::int64_t start = number * kStepNs + 1000, end = start + kStepNs - 1000;
        to_.add(StepRow{.rank = rank, .step = number, .start = start, .end = end, .global_tid = tid(rank)});
        range(start, end, to_.intern(fmt::format("ProfilerStep#{}", number)), tid(rank));
        range(start + 100, start + kLayers * kCallNs, modules_[0], tid(rank), 0);
        for (int c = 0; c < 2 * kLayers; ++c) {
            const bool backward = c >= kLayers;
            call(rank, start + 200 + c * kCallNs, backward ? 2 * kLayers - 1 - c : c, backward);
        }
        MemcpyRow copy{.start = start + 50, .end = start + 5000};
        copy.device = rank;
        copy.stream = 9;
        copy.global_pid = pid(rank);
        copy.correlation = ++correlation_;
        copy.bytes = 4096;
        to_.add(copy);
    }

    store::DatabaseWriter& to_;
    std::vector<std::string> names_;
    std::vector<StringId> kernels_, operators_, modules_;
    StringId launch_{}, wait_{}, nccl_{}, nccl_call_{}, nccl_domain_{}, buffer_{};
    KernelRow kernel_;
    RangeRow range_;
    std::int64_t correlation_ = 0;
    std::int64_t compute_free_[kRanks] = {}, gather_free_[kRanks] = {}, sequence_[kRanks] = {};
};

// --- measuring -----------------------------------------------------------------------------------------

struct Scan {
    const char *table, *columns;
};
constexpr Scan kScans[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL", "start, \"end\", deviceId, streamId, correlationId, globalPid, shortName"},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     "start, \"end\", deviceId, streamId, correlationId, globalPid, bytes, copyKind"},
    {"CUPTI_ACTIVITY_KIND_MEMSET", "start, \"end\", deviceId, streamId, correlationId, globalPid, bytes"},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", "start, \"end\", globalTid, correlationId, nameId"},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
     "start, \"end\", deviceId, streamId, correlationId, globalPid, syncType"},
    {"NVTX_EVENTS",
     "start, \"end\", eventType, globalTid, domainId, textId, int64Value, uint64Value, jsonTextId"},
    {"SHARD_COLLECTIVES",
     "rank, correlationId, operation, bytes, padding, groupId, groupSize, sequence, unit, phase"},
    {"SHARD_MEMORY",
     "time, rank, address, bytes, category, space, phase, unit, module, nameId, globalTid, total, reserved, "
     "annotationId, stackId"},
    {"SHARD_COUNTERS", "time, rank, nameId, value"},
};

// Steps through every row and reads every value; the sum keeps the reads from being optimized away.
std::int64_t bare_scan(store::Database& database, std::int64_t& rows) {
    std::int64_t sum = 0;
    for (const Scan& scan : kScans) {
        if (!database.has_table(scan.table)) continue;
        store::Statement statement(database, fmt::format("SELECT {} FROM {}", scan.columns, scan.table));
        const int columns = statement.column_count();
        sqlite3_stmt* bare = statement.handle();
        while (sqlite3_step(bare) == SQLITE_ROW) {
            ++rows;
            for (int c = 0; c < columns; ++c) sum += sqlite3_column_int64(bare, c) & 1;
        }
    }
    return sum;
}

void print(std::string_view what, double seconds, double scan) {
    const std::string ratio = scan > 0 ? fmt::format("  {:>6.2f} x the scan", seconds / scan) : std::string();
    fmt::print("{:<22}{:>9.2f} s{}\n", what, seconds, ratio);
    std::fflush(stdout);
}

double timed(const std::function<void()>& work) {
    const double start = cpu_seconds();
    work();
    return cpu_seconds() - start;
}

void measure(const std::string& path) {
    std::int64_t rows = 0, sum = 0;
    const auto scan_once = [&] {
        rows = 0;
        store::Database database = store::open_trace(path);
        sum += bare_scan(database, rows);
    };
    scan_once();  // puts the file into the system's cache
    double scan = timed(scan_once);
    fmt::print("{} rows, {:.1f} MiB ({} checked)\n", rows,
               static_cast<double>(fs::file_size(path)) / (1 << 20), sum);
    print("bare scan", scan, scan);

    ::malloc_trim(0);
    const std::int64_t before = resident_bytes();
    std::unique_ptr<store::Trace> trace;
    double all = timed([&] { trace = store::load_trace(path); });
    print("load", all, scan);
    ::malloc_trim(0);
    const std::int64_t resident = resident_bytes() - before;
    const auto analysis = [&](std::string_view what, const std::function<void()>& work) {
        const double seconds = timed(work);
        print(what, seconds, scan);
        all += seconds;
    };
    analysis("summary", [&] { (void)analysis::summarize(*trace); });
    analysis("modules", [&] { (void)analysis::module_view(*trace); });
    analysis("memory", [&] { (void)analysis::memory_report(*trace); });
    analysis("overlap", [&] { (void)analysis::overlap_report(*trace); });
    analysis("idle", [&] { (void)analysis::idle_report(*trace); });
    analysis("units", [&] { (void)analysis::units_report(*trace); });
    scan = (scan + timed(scan_once)) / 2;  // measured before and after, under the same conditions
    print("bare scan, mean of two", scan, scan);
    print("all", all, scan);
    fmt::print("{:.0f} bytes of memory for each row\n",
               static_cast<double>(resident) / static_cast<double>(std::max<std::int64_t>(rows, 1)));
}

int usage() {
    fmt::print(
        stderr,
        "usage: bench_load [--rows N] [--folder FOLDER] [--file TRACE.sqlite] [--make TRACE.sqlite]\n");
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    std::int64_t rows = 10'000'000;
    std::string folder = fs::temp_directory_path().string(), file, made;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view option = argv[i];
        if (i + 1 == argc) return usage();
        if (option == "--rows") {
            rows = std::strtoll(argv[i + 1], nullptr, 10);
        } else if (option == "--folder") {
            folder = argv[i + 1];
        } else if (option == "--file") {
            file = argv[i + 1];
        } else if (option == "--make") {
            made = argv[i + 1];
        } else {
            return usage();
        }
    }
    try {
        const bool make = file.empty();
        if (make) {
            file = made.empty() ? folder + "/bench_load.sqlite" : made;
            store::DatabaseWriter writer({.path = file, .overwrite = true});
            print("writing the run", timed([&] { Job(writer).run(rows); }), 0);
        }
        if (!made.empty()) return 0;
        measure(file);
        if (make) fs::remove(file);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_load: {}\n", error.what());
        return 1;
    }
}
