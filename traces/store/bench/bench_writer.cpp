// Measures how fast the writer turns rows into a trace, in CPU time of the process, so that other load does
// not matter. For comparison: writing as many bytes with stdio, and plain SQLite inserts (one row per step of
// a statement), which the writer must beat. Not a test.
//   build/<preset>/bin/bench_writer --rows 2000000 --folder /dev/shm
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include "traces/schema/schema.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace {

using namespace shardscope::traces;
using namespace shardscope::traces::schema;
namespace fs = std::filesystem;

constexpr std::int64_t kRowsPerCommit = 100'000;
constexpr int kNames = 300;
constexpr int kRounds = 3;  // the best round counts: disturbances only slow a round down

double cpu_seconds() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The names of three nested levels of ranges, as in a training job.
std::vector<std::string> range_names() {
    std::vector<std::string> names;
    for (int i = 0; i < kNames; ++i) {
        names.push_back(i % 3 == 0   ? fmt::format("nn.Module: TransformerBlock_{}", i)
                        : i % 3 == 1 ? fmt::format("FSDP::pre_forward (layers.{})", i)
                                     : fmt::format("aten::linear_{}", i));
    }
    return names;
}

KernelRow kernel_row(std::int64_t i, StringId name, StringId full) {
    KernelRow row{.start = 1'000'000 + i * 2500, .end = 1'000'000 + i * 2500 + 1800 + i % 700};
    row.device = static_cast<int>(i % 8);
    row.stream = 7 + static_cast<int>(i % 4) * 6;
    row.correlation = (static_cast<std::int64_t>(row.device) << 32) + i;
    row.global_pid = global_pid(4200 + row.device);
    row.short_name = name;
    row.demangled_name = full;
    row.mangled_name = full;
    row.grid[0] = 132 + static_cast<int>(i % 1000);
    row.block[0] = 256;
    row.registers = 64 + static_cast<int>(i % 128);
    row.dynamic_shared_memory = 49152;
    row.local_memory_total = 37748736;
    row.grid_id = i;
    row.cache_config = 0;
    row.shared_memory_executed = 102400;
    row.shared_memory_limit_config = 0;
    return row;
}

// Ranges in order of their ends: two threads alternate, each with inner ranges before the enclosing one.
RangeRow range_row(std::int64_t i, StringId name, StringId domain) {
    RangeRow row{.start = 1'000'000 + i * 900, .end = {}};
    const bool is_outer = i % 4 == 3;
    if (is_outer) row.start -= 3000;
    row.end = row.start + (is_outer ? 3600 : 700);
    row.text = name;
    row.domain = i % 5 == 0 ? domain : StringId::empty;
    row.global_tid = global_tid(4200, 4200 + (i / 64) % 2);
    return row;
}

struct Result {
    double seconds = 1e9;           // of writing, committed
    double finalize_seconds = 1e9;  // of the rest
    double bytes = 0;               // per row in the table's pages, before indexes
    double bytes_28 = 0;            // the same with the table's first 28 columns alone
};

// Bytes of the table's pages.
double table_bytes(store::Database& database, std::string_view table) {
    return static_cast<double>(database.integer(
        fmt::format("SELECT sum(pgsize) FROM dbstat WHERE name = '{}' AND aggregate = 1", table)));
}

// Up to sharedMemoryLimitConfig: the columns that exports have had for years. Newer ones (graphs, clusters)
// take a byte each if they are NULL.
double bytes_of_28_columns(store::Database& database, const SchemaTable& table) {
    std::string names;
    for (std::size_t i = 0; i < 28 && i < table.columns.size(); ++i) {
        names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", table.columns[i].name);
    }
    database.execute(fmt::format("CREATE TABLE narrow AS SELECT {} FROM {}", names, table.name));
    return table_bytes(database, "narrow");
}

Result measure(const std::string& path, std::int64_t rows, const char* table,
               const std::function<void(store::DatabaseWriter&, std::int64_t)>& feed) {
    Result best;
    for (int round = 0; round < kRounds; ++round) {
        store::DatabaseWriter writer({.path = path, .overwrite = true});
        const double start = cpu_seconds();
        for (std::int64_t i = 0; i < rows; i += kRowsPerCommit) {
            feed(writer, i);
            writer.commit();
        }
        const double written = cpu_seconds();
        writer.finish(rows * 3000, 0);
        best.seconds = std::min(best.seconds, written - start);
        best.finalize_seconds = std::min(best.finalize_seconds, cpu_seconds() - written);
    }
    store::Database database(path, store::Database::Mode::read_write);
    best.bytes = table_bytes(database, table) / static_cast<double>(rows);
    best.bytes_28 = bytes_of_28_columns(database, *find_table(table)) / static_cast<double>(rows);
    return best;
}

// Writes the bytes of the row structs with stdio: the least cost of storing them.
double plain_write(const std::string& path, std::int64_t rows, std::size_t size) {
    double best = 1e9;
    std::vector<char> row(size, 'x');
    for (int round = 0; round < kRounds; ++round) {
        const double start = cpu_seconds();
        std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
        for (std::int64_t i = 0; file && i < rows; ++i) {
            std::memcpy(row.data(), &i, sizeof i);
            std::fwrite(row.data(), 1, row.size(), file.get());
        }
        file.reset();
        best = std::min(best, cpu_seconds() - start);
        fs::remove(path);
    }
    return best;
}

// Binds and steps one statement for each row, into a file without any crash safety.
double plain_insert(const std::string& path, std::int64_t rows) {
    double best = 1e9;
    std::string marks;
    for (std::size_t i = 0; i < find_table("CUPTI_ACTIVITY_KIND_KERNEL")->columns.size(); ++i) {
        marks += i == 0 ? "?" : ", ?";
    }
    for (int round = 0; round < kRounds; ++round) {
        store::DatabaseWriter({.path = path, .overwrite = true}).finish(0, 0);
        store::Database database(path, store::Database::Mode::read_write);
        database.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;");
        for (const auto& index : indexes()) {
            database.execute(fmt::format("DROP INDEX \"{}.{}\"", index.table, index.column));
        }
        const double start = cpu_seconds();
        database.execute("BEGIN");
        {
            store::Statement insert(database,
                                    fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({})", marks));
            for (std::int64_t i = 0; i < rows; ++i) {
                const KernelRow k = kernel_row(i, StringId{5}, StringId{6});
                const std::int64_t values[] = {k.start,
                                               k.end,
                                               k.device,
                                               k.context,
                                               -1,
                                               k.stream,
                                               k.correlation,
                                               k.global_pid,
                                               6,
                                               5,
                                               6,
                                               k.launch_type,
                                               k.cache_config,
                                               k.registers,
                                               k.grid[0],
                                               k.grid[1],
                                               k.grid[2],
                                               k.block[0],
                                               k.block[1],
                                               k.block[2],
                                               0,
                                               k.dynamic_shared_memory,
                                               0,
                                               k.local_memory_total,
                                               k.grid_id,
                                               k.shared_memory_executed,
                                               -1,
                                               k.shared_memory_limit_config};
                int column = 1;
                for (const std::int64_t value : values) {
                    value < 0 ? insert.bind_null(column++) : insert.bind(column++, value);
                }
                // The columns of graphs and clusters stay NULL.
                insert.bind(static_cast<int>(find_table("CUPTI_ACTIVITY_KIND_KERNEL")->columns.size()),
                            std::string_view("[]"));
                insert.run();
            }
        }
        database.execute("COMMIT");
        best = std::min(best, cpu_seconds() - start);
    }
    return best;
}

}  // namespace

int main(int argc, char** argv) {
    std::int64_t rows = 2'000'000;
    std::string folder = fs::temp_directory_path();
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--rows") == 0) rows = std::atoll(argv[i + 1]);
        if (std::strcmp(argv[i], "--folder") == 0) folder = argv[i + 1];
    }
    if (rows < 1) {
        fmt::print(stderr, "bench_writer: give --rows a number of 1 or more\n");
        return 2;
    }
    const std::string path = fmt::format("{}/bench_writer-{}.sqlite", folder, ::getpid());
    const auto count = static_cast<double>(rows);
    const auto rate = [&](double seconds) { return count / seconds / 1e6; };
    const auto last_of = [&](std::int64_t i) { return std::min(rows, i + kRowsPerCommit); };

    try {
        const Result kernels = measure(
            path, rows, "CUPTI_ACTIVITY_KIND_KERNEL", [&](store::DatabaseWriter& writer, std::int64_t i) {
                const StringId name = writer.intern("ampere_sgemm_128x64_tn");
                const StringId full = writer.intern("ampere_sgemm_128x64_tn(float const*, float*)");
                for (const std::int64_t last = last_of(i); i < last; ++i) {
                    writer.add(kernel_row(i, name, full));
                }
            });
        const Result ranges =
            measure(path, rows, "NVTX_EVENTS", [&](store::DatabaseWriter& writer, std::int64_t i) {
                std::vector<StringId> names;
                for (const auto& name : range_names()) names.push_back(writer.intern(name));
                const StringId domain = writer.intern("NCCL");
                for (const std::int64_t last = last_of(i); i < last; ++i) {
                    writer.add(range_row(i, names[static_cast<std::size_t>(i % kNames)], domain));
                }
            });
        fmt::print("{} rows of each, best of {}, process CPU time, in {}\n", rows, kRounds, folder);
        fmt::print("a kernel row has {} columns, 26 of them with a value; its first 28 take {:.1f} bytes\n\n",
                   find_table("CUPTI_ACTIVITY_KIND_KERNEL")->columns.size(), kernels.bytes_28);
        fmt::print("kernel rows             {:6.2f} M/s  {:5.1f} bytes a row  finalize {:.2f} µs a row\n",
                   rate(kernels.seconds), kernels.bytes, 1e6 * kernels.finalize_seconds / count);
        fmt::print("range rows              {:6.2f} M/s  {:5.1f} bytes a row  finalize {:.2f} µs a row\n",
                   rate(ranges.seconds), ranges.bytes, 1e6 * ranges.finalize_seconds / count);
        const double write = plain_write(path, rows, static_cast<std::size_t>(kernels.bytes));
        fmt::print("\nfor comparison, with kernel rows\n");
        fmt::print("fwrite of as many bytes {:6.2f} M/s  {:.1f} x the writer\n", rate(write),
                   kernels.seconds / write);
        const double insert = plain_insert(path, rows);
        fmt::print("one row a step, unsafe  {:6.2f} M/s  {:.2f} x the writer\n", rate(insert),
                   kernels.seconds / insert);
    } catch (const store::StoreError& error) {
        fmt::print(stderr, "bench_writer: {}\n", error.what());
        return 1;
    }
    fs::remove(path);
    return 0;
}
