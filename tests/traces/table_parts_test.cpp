// Large tables that are read in parts, on several threads, give the columns that they give as a whole.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/traces/temporary_folder.h"
#include "traces/lanes/tracks.h"
#include "traces/store/beside/each_column.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/error.h"
#include "traces/store/load/load_tables.h"
#include "traces/store/load/loader.h"
#include "traces/store/on_cores.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

std::unique_ptr<Trace> load(const std::string& path, const TableParts& parts,
                            LoadProgress* progress = nullptr) {
    Database database = open_trace(path);
    ColumnSink sink;
    load_tables(database, sink, progress, parts);
    return sink.take();
}

// Names, threads, streams and domains that first occur anywhere in the tables; rare columns with and without
// values; in some rounds out of order.
void write_random_run(const std::string& path, unsigned seed) {
    std::mt19937 random(seed);
    const auto upto = [&](std::int64_t most) {
        return static_cast<std::int64_t>(random() % static_cast<unsigned long>(most + 1));
    };
    DatabaseWriter to({.path = path});
    const bool details = seed % 3 != 0, shuffled = seed % 2 == 0;
    for (int r = 0; r < 3; ++r)
        to.add(schema::RankRow{.rank = r, .device = r, .global_pid = schema::global_pid(10 + r)});
    constexpr int kRows = 700;
    for (int i = 0; i < kRows; ++i) {
        const std::int64_t t = shuffled ? upto(kRows * 100) : i * 100;
        const int rank = static_cast<int>(upto(2));
        const std::int64_t tid = schema::global_tid(10 + rank, 100 + static_cast<int>(upto(1 + i / 100)));
        schema::RangeRow range{.start = t, .end = t + upto(300)};
        if (upto(5) == 0) range.end.reset();  // a mark
        range.text = to.intern(fmt::format("range {}", upto(i / 10)));
        range.domain = to.intern(upto(1) == 0 ? "" : fmt::format("domain {}", upto(1 + i / 200)));
        if (details && upto(3) == 0) range.detail = to.intern(fmt::format("detail {}", upto(9)));
        range.global_tid = tid;
        range.module = -1;
        to.add(range);
        schema::RuntimeRow call{.start = t + 1, .end = t + 2, .global_tid = tid};
        call.correlation = i + 1;
        call.name = to.intern(fmt::format("cudaCall{}_v7000", upto(i / 50)));
        to.add(call);
        schema::KernelRow kernel{.start = t + 10, .end = t + 20 + upto(50)};
        kernel.device = rank;
        kernel.stream = static_cast<int>(upto(1 + i / 150));
        kernel.correlation = i + 1;
        kernel.global_pid = schema::global_pid(10 + rank);
        kernel.short_name = to.intern(fmt::format("kernel_{}", upto(i / 20)));
        if (details && i > kRows / 2) kernel.occupancy = 50;
        to.add(kernel);
        schema::MemcpyRow copy{.start = t + 30, .end = t + 40};
        copy.device = rank;
        copy.stream = 1;
        copy.global_pid = schema::global_pid(10 + rank);
        copy.bytes = upto(1000);
        copy.copy_kind = static_cast<int>(1 + upto(1));
        to.add(copy);
        schema::MemoryRow memory{
            .time = t, .rank = rank, .address = static_cast<std::uint64_t>(i), .bytes = 64};
        memory.global_tid = tid;
        memory.name = to.intern(fmt::format("tensor {}", upto(i / 30)));
        if (details && i > kRows / 3) memory.total = 64 * i;
        to.add(memory);
    }
    to.finish(kRows * 101, 0);
}

void expect_same(const Trace& parts, const Trace& whole) {
    ASSERT_EQ(parts.strings.size(), whole.strings.size());
    for (std::size_t s = 0; s < whole.strings.size(); ++s)
        EXPECT_EQ(parts.strings[schema::StringId(s)], whole.strings[schema::StringId(s)]);
    EXPECT_EQ(parts.first_ns, whole.first_ns);
    EXPECT_EQ(parts.last_ns, whole.last_ns);
    EXPECT_EQ(parts.invalid_events, whole.invalid_events);
    EXPECT_EQ(parts.threads.size(), whole.threads.size());
    EXPECT_EQ(parts.streams.size(), whole.streams.size());
    const auto texts = [](const Trace& trace) {
        std::vector<std::pair<std::string, std::string>> all;
        visit_columns(trace, {}, [&]<typename Kind>(const char* name, const Kind& column, ColumnBound) {
            const auto put = [&](const auto& values) {
                all.emplace_back(name, std::string(reinterpret_cast<const char*>(values.data()),
                                                   values.size() * sizeof(*values.data())));
            };
            if constexpr (std::is_same_v<Kind, IndexColumn>) {
                put(column.all());
            } else {
                put(column);
            }
        });
        return all;
    };
    const auto of_parts = texts(parts), of_whole = texts(whole);
    for (std::size_t c = 0; c < of_whole.size(); ++c)
        EXPECT_TRUE(of_parts[c] == of_whole[c]) << of_whole[c].first;
}

TEST(TableParts, GiveTheColumnsOfTheWhole) {
    for (unsigned seed = 0; seed < 6; ++seed) {
        const TemporaryFolder folder;
        const std::string path = folder / "run.sqlite";
        write_random_run(path, seed);
        const auto whole = load(path, {});
        ASSERT_EQ(whole->device.size(), 1400U);
        for (const TableParts parts : {TableParts{2, 10}, TableParts{3, 1}, TableParts{7, 99}}) {
            SCOPED_TRACE(fmt::format("seed {}, {} threads", seed, parts.threads));
            expect_same(*load(path, parts), *whole);
        }
    }
}

// Exports may have texts in the rows, and row ids with gaps.
TEST(TableParts, OfAnotherProgramGiveTheColumnsOfTheWhole) {
    const TemporaryFolder folder;
    const std::string path = folder / "export.sqlite";
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    std::string sql =
        "CREATE TABLE NVTX_EVENTS (start INTEGER, \"end\" INTEGER, eventType INTEGER, globalTid "
        "INTEGER, domainId INTEGER, text TEXT);";
    for (int i = 0; i < 400; ++i)
        sql += fmt::format(
            "INSERT INTO NVTX_EVENTS (rowid, start, \"end\", eventType, globalTid, domainId, text) "
            "VALUES ({}, {}, {}, 59, {}, {}, '{} {}');",
            i * 3 + 5, i * 10, i * 10 + 8, i % 7, i % 2, i % 3 == 0 ? "nn.Module: Linear" : "aten::mm",
            i / 20);
    ASSERT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
    const auto whole = load(path, {});
    ASSERT_EQ(whole->ranges.size(), 400U);
    for (const TableParts parts : {TableParts{2, 10}, TableParts{5, 1}})
        expect_same(*load(path, parts), *whole);
}

// So many that the threads also share the columns, the kinds and nesting of ranges, and the lanes.
TEST(TableParts, OfALargeTraceKeepEveryRangeOnce) {
    const TemporaryFolder folder;
    const std::string path = folder / "run.sqlite";
    constexpr int kRanges = 300'000, kThreads = 5;  // a part is large, too
    {
        DatabaseWriter to({.path = path});
        const schema::StringId outer = to.intern("outer"), inner = to.intern("aten::mm"),
                               operators = to.intern(kOperatorDomain), none = to.intern("");
        for (int i = 0; i < kRanges; ++i) {
            const bool is_inner = i % (2 * kThreads) >= kThreads;
            const std::int64_t start = i / (2 * kThreads) * 100 + (is_inner ? 10 : 0);
            schema::RangeRow range{.start = start, .end = start + (is_inner ? 20 : 90)};
            range.text = is_inner ? inner : outer;
            range.domain = is_inner ? operators : none;
            range.global_tid = schema::global_tid(1, i % kThreads + 1);
            range.module = -1;
            if (i % 3 == 0) range.detail = outer;
            to.add(range);
        }
        to.finish(kRanges * 100, 0);
    }
    const auto whole = load(path, {}), parts = load(path, {2, 1});
    expect_same(*parts, *whole);
    ASSERT_EQ(parts->ranges.size(), static_cast<std::size_t>(kRanges));
    int wrong = 0;
    for (std::size_t i = 0; i < parts->ranges.size(); ++i) {
        const bool is_inner = parts->ranges.parent[i] >= 0;
        wrong += parts->strings[parts->ranges.name[i]] != (is_inner ? "aten::mm" : "outer");
        wrong += (parts->ranges.kind[i] == RangeKind::operation) != is_inner;
    }
    std::vector<int> seen(parts->ranges.size());
    for (const lanes::Track& track : lanes::make_tracks(*parts).tracks) {
        for (std::size_t l = 0; l < track.lanes.size(); ++l) {
            const lanes::Lane& lane = track.lanes[l];
            for (std::size_t e = 0; e < lane.size(); ++e) {
                const auto i = static_cast<std::size_t>(lane.event(e).index);
                ++seen[i];
                wrong += lane.start(e) != parts->ranges.start[i] || lane.end(e) != parts->ranges.end[i] ||
                         track.thread != parts->ranges.thread[i] || l != parts->ranges.depth[i];
            }
        }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), kRanges);
}

TEST(OnCores, DoAllOfTheWorkOnce) {
    for (const std::size_t threads : {1, 2, 5, 64}) {
        for (const std::size_t count : {0, 1, 3, 1000}) {
            std::vector<std::atomic<int>> done(count);
            on_cores(threads, count, [&](std::size_t i) { ++done[i]; });
            for (const auto& times : done) EXPECT_EQ(times, 1);
        }
    }
}

TEST(OnCores, PassAFailureOnAndLeaveOutWhatHadNotBegun) {
    for (const std::size_t threads : {1, 2, 5}) {
        std::atomic<int> begun = 0;
        EXPECT_THROW(on_cores(threads, 1000,
                              [&](std::size_t i) {
                                  ++begun;
                                  if (i == 7) throw StoreError("seven");
                                  if (i > 7) std::this_thread::sleep_for(std::chrono::milliseconds(10));
                              }),
                     StoreError);
        EXPECT_LT(begun, 500);
    }
    // A failure of another thread: this one is kept busy until it is there.
    const auto caller = std::this_thread::get_id();
    std::atomic<bool> failed = false;
    EXPECT_THROW(on_cores(2, 2,
                          [&](std::size_t) {
                              if (std::this_thread::get_id() != caller) {
                                  failed = true;
                                  throw StoreError("other");
                              }
                              for (int ms = 0; ms < 10'000 && !failed; ++ms)
                                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                          }),
                 StoreError);
}

// Names whose ends are dropped become new strings while other threads read.
TEST(TableParts, AddStringsWhileOthersRead) {
    const TemporaryFolder folder;
    const std::string path = folder / "run.sqlite";
    {
        DatabaseWriter to({.path = path});
        for (int i = 0; i < 40'000; ++i) {
            schema::RuntimeRow call{.start = i, .end = i + 1, .global_tid = schema::global_tid(1, 1)};
            call.name = to.intern(fmt::format("cudaCall{}_v7000", i % 2400));
            to.add(call);
        }
        to.finish(40'000, 0);
    }
    expect_same(*load(path, {4, 10}), *load(path, {}));
}

TEST(TableParts, AreGivenUpWhereTheSumsOfAllWouldBeTooLarge) {
    const TemporaryFolder folder;
    const std::string path = folder / "run.sqlite";
    {
        DatabaseWriter to({.path = path});
        for (int i = 0; i < 40; ++i) {
            schema::RangeRow range{.start = 0, .end = std::int64_t{400'000'000'000'000'000}};
            range.global_tid = schema::global_tid(1, 1);
            to.add(range);
        }
        to.finish(1, 0);
    }
    const auto whole = load(path, {});
    EXPECT_GT(whole->invalid_events, 0);
    EXPECT_THROW(load(path, {2, 1}), NotInParts);
    expect_same(*load_trace(path), *whole);
}

TEST(TableParts, CanBeCancelled) {
    const TemporaryFolder folder;
    const std::string path = folder / "run.sqlite";
    {
        DatabaseWriter to({.path = path});
        for (int i = 0; i < 20'000; ++i) {
            schema::RangeRow range{.start = i, .end = i + 1};
            range.global_tid = schema::global_tid(1, 1);
            to.add(range);
        }
        to.finish(20'000, 0);
    }
    LoadProgress progress;
    progress.cancel = true;
    EXPECT_THROW(load(path, {2, 1}, &progress), StoreError);
    progress.cancel = false;
    EXPECT_EQ(load(path, {2, 1}, &progress)->ranges.size(), 20'000U);
    EXPECT_GT(progress.fraction, 0.5);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
