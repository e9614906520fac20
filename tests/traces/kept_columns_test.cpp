// The file of columns beside a trace: what opens from it equals what opens from the rows, and a file that is
// stale, damaged, cut or forged is as good as none.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/traces/sample_run.h"
#include "tests/traces/temporary_folder.h"
#include "traces/lanes/kept_tracks.h"
#include "traces/lanes/tracks.h"
#include "traces/store/beside/each_column.h"
#include "traces/store/beside/kept_trace.h"
#include "traces/store/error.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/temporary_file.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

namespace fs = std::filesystem;

// Every column with its name, as bytes.
std::vector<std::pair<std::string, std::string>> columns_of(const Trace& trace) {
    std::vector<std::pair<std::string, std::string>> all;
    const auto bytes_of = [](const auto& column) {
        return std::string(reinterpret_cast<const char*>(column.data()),
                           column.size() * sizeof(*column.data()));
    };
    visit_columns(trace, {}, [&]<typename Kind>(const char* name, const Kind& column, ColumnBound) {
        if constexpr (std::is_same_v<Kind, IndexColumn>) {
            all.emplace_back(name, bytes_of(column.all()));
        } else {
            all.emplace_back(name, bytes_of(column));
        }
    });
    return all;
}

std::string facts_of(const Trace& trace) {
    std::string text =
        fmt::format("{} {} {} {} {} {} {}\n", trace.start_system_ns, trace.first_ns, trace.last_ns,
                    trace.schema_version, trace.ended, trace.dropped, trace.start_utc_ns);
    for (std::size_t s = 0; s < trace.strings.size(); ++s)
        text += fmt::format("{}\n", trace.strings[schema::StringId(s)]);
    for (const Rank& r : trace.ranks)
        text += fmt::format("rank {} {} {} {} {} {} {} {} {} {}\n", r.number, r.device, r.global_pid,
                            r.global_tid, r.device_memory, r.local_rank, r.host, r.device_name, r.cpus,
                            fmt::join(r.place, ","));
    for (const HostThread& t : trace.threads)
        text += fmt::format("thread {} {} {}\n", t.global_tid, t.rank.value, t.name);
    for (const DeviceStream& s : trace.streams)
        text += fmt::format("stream {} {} {}\n", s.id, s.rank.value, s.name);
    for (const Step& s : trace.steps)
        text +=
            fmt::format("step {} {} {} {} {}\n", s.rank.value, s.number, s.start, s.end, s.loss.value_or(-1));
    for (const auto& [key, value] : trace.config) text += fmt::format("{} = {}\n", key, value);
    text += fmt::format("{} modules, {} units, {} predictions, {} diagnostics\n", trace.modules.size(),
                        trace.units.size(), trace.predictions.size(), trace.diagnostics.size());
    Trace::each_kind([&]<typename Row>(Row*) { text += fmt::format("{} ", trace.kept<Row>().size()); });
    return text;
}

// Of every track and lane: what is drawn.
std::string tracks_text(const Trace& trace) {
    std::string text;
    for (const lanes::Track& track : lanes::make_tracks(trace).tracks) {
        text += fmt::format("{} {} {} {} {} {} {}\n", static_cast<int>(track.kind), track.rank.value,
                            track.stream.value, track.thread, track.group, static_cast<int>(track.work),
                            track.label);
        for (const lanes::Lane& lane : track.lanes) {
            text += fmt::format("lane {} {}:", lane.last_end(), lane.busy(0, lane.size()));
            for (std::size_t i = 0; i < lane.size(); ++i)
                text += fmt::format(" {}+{} {} {} {}", lane.start(i), lane.length(i), lane.paint(i),
                                    static_cast<int>(lane.event(i).kind), lane.event(i).index);
            text += fmt::format(" {}\n", lane.dominant(0, lane.size()));
        }
    }
    return text;
}

void expect_equal(const Trace& a, const Trace& b) {
    EXPECT_EQ(facts_of(a), facts_of(b));
    EXPECT_EQ(tracks_text(a), tracks_text(b));
    const auto of_a = columns_of(a), of_b = columns_of(b);
    ASSERT_EQ(of_a.size(), of_b.size());
    for (std::size_t c = 0; c < of_a.size(); ++c) EXPECT_TRUE(of_a[c] == of_b[c]) << of_a[c].first;
}

// A file that was changed a moment ago may still be changing: its columns are not kept.
void age(const std::string& path) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(10));
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class KeptColumns : public testing::Test {
  protected:
    KeptColumns() {
        DatabaseWriter writer({.path = path_, .start_utc_ns = 1'700'000'000'000'000'000});
        write_sample_run(writer);
        writer.finish(3 * kSampleMs, 0);
        age(path_);
        from_rows_ = load_trace(path_);
    }
    // Writes the file beside the trace as the viewer does.
    std::int64_t keep() const {
        EXPECT_TRUE(can_be_kept(*from_rows_));
        return lanes::keep_beside(*from_rows_, lanes::make_tracks(*from_rows_).tracks);
    }
    void execute(const std::string& sql) const {
        sqlite3* database = nullptr;
        ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(database);
        sqlite3_close(database);
    }

    TemporaryFolder folder_;
    std::string path_ = folder_ / "run.sqlite", columns_ = column_path(path_);
    std::unique_ptr<Trace> from_rows_;
};

TEST_F(KeptColumns, OpenAsTheRowsDo) {
    EXPECT_EQ(from_rows_->beside, nullptr);
    const std::int64_t bytes = keep();
    EXPECT_EQ(bytes, static_cast<std::int64_t>(fs::file_size(columns_)));
    const auto trace = load_trace(path_);
    ASSERT_NE(trace->beside, nullptr);
    expect_equal(*trace, *from_rows_);
    Trace::each_kind([&]<typename Row>(Row*) {
        const auto &kept = trace->kept<Row>(), &rows = from_rows_->kept<Row>();
        for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_TRUE(kept[i].order() == rows[i].order());
    });
    const auto mode = fs::status(columns_).permissions();
    EXPECT_EQ(mode & (fs::perms::group_all | fs::perms::others_all), fs::perms::none);
}

TEST_F(KeptColumns, OfTheSampleTracesOpenAsTheirRowsDo) {
    for (const char* name : {"mlp-root.sqlite", "mlp-linear.sqlite"}) {
        const std::string path = folder_ / name;
        fs::copy_file(std::string(SHARDSCOPE_SAMPLES) + "/traces/" + name, path);
        age(path);
        const auto rows = load_trace(path);
        (void)lanes::keep_beside(*rows, lanes::make_tracks(*rows).tracks);
        const auto trace = load_trace(path);
        ASSERT_NE(trace->beside, nullptr) << name;
        expect_equal(*trace, *rows);
    }
}

TEST_F(KeptColumns, OutliveTheirFileWhileTheyAreUsed) {
    keep();
    const auto trace = load_trace(path_);
    fs::remove(columns_);
    expect_equal(*trace, *from_rows_);
}

// SQLite counts changes in the file's header, whatever the file's size and time say.
TEST_F(KeptColumns, AreNotThoseOfAChangedTrace) {
    keep();
    const auto before = fs::last_write_time(path_);
    execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET \"end\" = \"end\" + 1");
    fs::last_write_time(path_, before);
    const auto trace = load_trace(path_);
    EXPECT_EQ(trace->beside, nullptr);
    EXPECT_NE(columns_of(*trace), columns_of(*from_rows_));
    (void)lanes::keep_beside(*trace, lanes::make_tracks(*trace).tracks);
    const auto again = load_trace(path_);
    EXPECT_NE(again->beside, nullptr);
    expect_equal(*again, *trace);
}

TEST_F(KeptColumns, AreNotThoseOfATraceThatIsBeingWritten) {
    keep();
    write_file(path_ + "-journal", "x");
    EXPECT_FALSE(identity_of(path_).has_value());
    fs::remove(path_ + "-journal");
    EXPECT_TRUE(identity_of(path_).has_value());
    fs::last_write_time(path_, fs::file_time_type::clock::now());
    EXPECT_EQ(load_trace(path_)->beside, nullptr);
    EXPECT_FALSE(can_be_kept(*load_trace(path_)));
}

TEST_F(KeptColumns, OfAnotherTraceAreNotTaken) {
    keep();
    const std::string other = folder_ / "other.sqlite";
    fs::copy_file(path_, other);
    fs::copy_file(columns_, column_path(other));
    age(other);
    const auto trace = load_trace(other);
    EXPECT_EQ(trace->beside, nullptr);
    expect_equal(*trace, *from_rows_);
}

TEST_F(KeptColumns, GoWithTheTraceThatIsReplaced) {
    keep();
    const std::string next = folder_ / "next.sqlite";
    fs::copy_file(path_, next);
    rename_database(next, path_, true);
    EXPECT_FALSE(fs::exists(columns_));
}

TEST_F(KeptColumns, ThatAreCutAreNotTaken) {
    keep();
    const std::string bytes = read_file(columns_);
    std::mt19937 random(1);
    std::vector<std::size_t> sizes = {0, 1, 15, 63, 64, 96, bytes.size() - 64, bytes.size() - 1};
    for (int i = 0; i < 40; ++i) sizes.push_back(random() % bytes.size());
    for (const std::size_t size : sizes) {
        write_file(columns_, bytes.substr(0, size));
        const auto trace = load_trace(path_);
        EXPECT_EQ(trace->beside, nullptr) << size;
        expect_equal(*trace, *from_rows_);
    }
}

// Only the bytes between two columns may differ.
TEST_F(KeptColumns, ThatAreDamagedOpenAsTheRowsDo) {
    keep();
    const std::string bytes = read_file(columns_);
    std::mt19937 random(2);
    int refused = 0;
    constexpr int kFlips = 120;
    for (int i = 0; i < kFlips; ++i) {
        std::string damaged = bytes;
        const std::size_t at = i < 60 ? static_cast<std::size_t>(i) : random() % bytes.size();
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
        write_file(columns_, damaged);
        const auto trace = load_trace(path_);
        EXPECT_EQ(columns_of(*trace), columns_of(*from_rows_)) << at;
        EXPECT_EQ(tracks_text(*trace), tracks_text(*from_rows_)) << at;
        refused += trace->beside == nullptr ? 1 : 0;
    }
    EXPECT_GT(refused, kFlips / 3);
}

// A hole of 32 GiB costs nothing on the disk.
TEST_F(KeptColumns, ThatClaimToBeHugeAreNotTaken) {
    keep();
    fs::resize_file(columns_, std::uintmax_t{1} << 35);
    const auto trace = load_trace(path_);
    EXPECT_EQ(trace->beside, nullptr);
    expect_equal(*trace, *from_rows_);
}

// A file whose sums are right and whose indexes are not.
TEST_F(KeptColumns, ThatLeadOutsideAreNotTaken) {
    const auto forged = [&](const std::function<void(Trace&)>& change) {
        auto trace = load_trace(path_);
        trace->identity = from_rows_->identity;
        change(*trace);
        ColumnFileWriter file(path_, *trace->identity);
        keep_columns(*trace, file);
        file.finish();
        const auto taken = load_trace(path_);
        const bool is_taken = taken->beside != nullptr;
        if (!is_taken) expect_equal(*taken, *from_rows_);
        fs::remove(columns_);
        return is_taken;
    };
    EXPECT_TRUE(forged([](Trace&) {}));
    EXPECT_FALSE(forged([](Trace& t) { t.device.name[0] = schema::StringId(t.strings.size()); }));
    EXPECT_FALSE(forged([](Trace& t) { t.device.stream[1] = static_cast<std::uint16_t>(t.streams.size()); }));
    EXPECT_FALSE(forged([](Trace& t) { t.device.rank[0] = kNoRank; }));
    EXPECT_FALSE(forged([](Trace& t) { t.ranges.parent[0] = 0; }));
    EXPECT_FALSE(forged([](Trace& t) { t.ranges.parent[1] = -2; }));
    EXPECT_FALSE(forged([](Trace& t) { t.ranges.thread[0] = 9; }));
    EXPECT_FALSE(forged([](Trace& t) { t.collectives.event[0] = 1 << 20; }));
    EXPECT_FALSE(forged([](Trace& t) { t.runtime.range[0] = static_cast<int>(t.ranges.size()); }));
    EXPECT_FALSE(forged([](Trace& t) { t.device.kind[0] = static_cast<DeviceKind>(kDeviceKinds); }));
    EXPECT_FALSE(forged([](Trace& t) { t.device.end.push_back(0); }));
    EXPECT_FALSE(forged([](Trace& t) { t.memory.time.clear(); }));
    EXPECT_FALSE(forged([](Trace& t) { t.steps[0].rank = RankIndex(77); }));
}

TEST_F(KeptColumns, AreNotWrittenHalf) {
    const std::atomic<bool> cancel = true;
    EXPECT_THROW((void)lanes::keep_beside(*from_rows_, {}, &cancel), StoreError);
    fs::create_directories(columns_ + "/full");  // which no file can replace
    EXPECT_THROW((void)keep(), StoreError);
    fs::remove_all(columns_);
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(folder_.path())) names.push_back(file.path().filename());
    EXPECT_THAT(names, testing::ElementsAre("run.sqlite"));
}

TEST_F(KeptColumns, AreOfFinishedTracesOfOurs) {
    execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET \"end\" = start - 1 WHERE rowid = 1");
    age(path_);
    const auto with_refused = load_trace(path_);
    EXPECT_EQ(with_refused->invalid_events, 1);
    EXPECT_FALSE(can_be_kept(*with_refused));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
