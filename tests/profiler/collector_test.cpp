// The process and thread to which records belong: those of a session, simulated by files that the tests
// write.
#include "profiler/record/collector.h"

#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/inject/session_format.h"
#include "profiler/log/log_writer.h"
#include "profiler/log/work_records.h"
#include "profiler/record/session.h"
#include "tests/profiler/memory_sink.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using testing::MemorySink;
using testing::Received;

// A process in another pid namespace than the tool's, unless the facts say otherwise; its records belong to
// one thread.
class PlayedProcess {
  public:
    struct Facts {
        std::uint32_t pid = 77, tid = 77;
        std::int32_t rank = -1;
        std::uint64_t pid_namespace = 1;
        std::uint64_t start = 1;
    };

    PlayedProcess(const Session& session, const std::string& name, const Facts& facts) : facts_(facts) {
        const std::string path = session.directory() + "/" + name + kRecordSuffix;
        const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        EXPECT_EQ(::ftruncate(fd, kBytes), 0);
        memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ::close(fd);
        auto* header = new (memory_) ProcessHeader{};
        header->magic = kProcessMagic;
        header->format = kRecordFormat;
        header->pid = facts.pid;
        header->rank = facts.rank;
        header->pid_namespace = facts.pid_namespace;
        header->start_ticks = Ticks(facts.start);
        header->chunk_bytes = kMappedChunkBytes;
        header->max_chunks = kChunks;
        arena_.init(
            static_cast<std::byte*>(memory_) + kProcessHeaderBytes, kMappedChunkBytes, kChunks,
            &header->control, [](void*, std::uint32_t) { return true; }, nullptr);
        log_.init(&arena_, 1, facts.tid, ClockSource::monotonic);
        header->ready.store(1, std::memory_order_release);
    }
    ~PlayedProcess() { ::munmap(memory_, kBytes); }
    PlayedProcess(const PlayedProcess&) = delete;
    PlayedProcess& operator=(const PlayedProcess&) = delete;

    void record_event() {
        auto* record = log_.begin<RecordOf<RuntimeFields>>(RecordKind::runtime, 0);
        record->fields = {log_.now(), log_.now(), ++events_};
        log_.publish();
    }
    void name_thread(std::uint32_t tid, std::string_view name) {
        auto* record = log_.begin<TextRecord>(RecordKind::thread_name, 0,
                                              sizeof(TextRecord) + (name.size() + 8) / 8 * 8);
        record->ticks = log_.now();
        record->owner = tid;
        std::memset(record + 1, 0, (name.size() + 8) / 8 * 8);
        std::memcpy(record + 1, name.data(), name.size());
        log_.publish();
    }

  private:
    static constexpr std::uint32_t kChunks = 4;
    static constexpr std::size_t kBytes = kProcessHeaderBytes + kChunks * std::size_t{kMappedChunkBytes};

    Facts facts_;
    void* memory_;
    ChunkArena arena_;
    LogWriter log_;
    std::int64_t events_ = 0;
};

class Collected : public ::testing::Test {
  protected:
    Session session_;
    Received got_;
    MemorySink sink_{got_};
    Calibration clock_{ClockSource::monotonic};
    Collector collector_{session_.directory(), sink_, clock_, MonotonicTime(0)};
};

// Containers that share the session's folder: the first process of each has the same pid.
TEST_F(Collected, keeps_processes_of_one_pid_apart_when_their_namespaces_differ) {
    PlayedProcess first(session_, "a", {.rank = 0, .pid_namespace = 1, .start = 1});
    PlayedProcess second(session_, "b", {.rank = 1, .pid_namespace = 2, .start = 2});
    first.record_event();
    second.record_event();
    collector_.drain();
    first.record_event();
    second.record_event();
    collector_.finish(1);
    EXPECT_EQ(collector_.processes(), 2);
    EXPECT_EQ(got_.runtimes.size(), 4u) << "of the first process, too, after the second came";
    ASSERT_EQ(got_.processes.size(), 2u);
    EXPECT_EQ(got_.processes[0].pid, 77);
    EXPECT_EQ(got_.processes[1].pid, 77);
    EXPECT_NE(got_.processes[0].global_pid, got_.processes[1].global_pid);
    ASSERT_EQ(got_.ranks.size(), 2u);
    EXPECT_NE(got_.ranks[0].global_pid, got_.ranks[1].global_pid);
    for (const traces::schema::RankRow& rank : got_.ranks) {
        EXPECT_EQ(rank.global_tid & traces::schema::kPidMask, rank.global_pid);
        EXPECT_EQ(std::count_if(got_.runtimes.begin(), got_.runtimes.end(),
                                [&](const auto& row) { return row.global_tid == rank.global_tid; }),
                  2)
            << "of rank " << rank.rank;
    }
}

TEST_F(Collected, takes_a_second_file_of_a_process_for_its_exec) {
    PlayedProcess before(session_, "a", {.start = 1});
    before.record_event();
    collector_.drain();
    PlayedProcess after(session_, "b", {.start = 2});
    collector_.drain();
    before.record_event();  // its process is missing, and never writes the record
    after.record_event();
    collector_.finish(1);
    EXPECT_EQ(collector_.processes(), 1);
    EXPECT_EQ(got_.processes.size(), 1u);
    EXPECT_EQ(got_.runtimes.size(), 2u);
}

// The system's answer would be about the process that has this pid in the tool's namespace.
TEST_F(Collected, watches_no_process_of_another_namespace) {
    PlayedProcess process(session_, "a", {});
    process.record_event();
    collector_.drain();
    EXPECT_EQ(collector_.processes(), 1);
    EXPECT_TRUE(collector_.living().empty());
}

TEST_F(Collected, takes_ranks_from_the_names_of_threads_if_the_process_has_none) {
    PlayedProcess process(session_, "a", {});
    process.name_thread(78, "rank 0 host");
    process.name_thread(79, "rank 1 host");
    process.name_thread(80, "rank 1");
    process.name_thread(81, "ranking 5");
    process.name_thread(82, "rank 3x");
    process.name_thread(83, "rank ");
    PlayedProcess launched(session_, "b", {.pid = 90, .rank = 4, .start = 2});
    launched.name_thread(91, "rank 7 host");
    PlayedProcess late(session_, "c", {.pid = 95, .start = 3});
    late.name_thread(96, "rank 1 host");
    collector_.finish(1);
    const auto rank_of = [&](std::int64_t pid, std::int64_t tid) {
        for (const traces::schema::ThreadRow& row : got_.threads) {
            if (row.global_tid == traces::schema::global_tid(pid, tid)) return row.rank;
        }
        return -2;
    };
    EXPECT_EQ(rank_of(77, 78), 0);
    EXPECT_EQ(rank_of(77, 79), 1);
    EXPECT_EQ(rank_of(77, 80), 1);
    for (const std::int64_t tid : {81, 82, 83}) EXPECT_EQ(rank_of(77, tid), -1) << tid;
    EXPECT_EQ(rank_of(90, 91), 4) << "its launcher has said which rank it is";
    EXPECT_EQ(rank_of(95, 96), -1) << "another process has that rank";
    std::multiset<int> ranks;
    for (const traces::schema::RankRow& row : got_.ranks) ranks.insert(row.rank);
    EXPECT_EQ(ranks, (std::multiset<int>{0, 1, 4}));
    EXPECT_EQ(got_.ranks.back().global_tid & traces::schema::kPidMask, got_.ranks.back().global_pid);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
