// Arbitrary programs, recorded from outside: nvtx_program runs with the injected library, and the records in
// its session are collected. Once with our own loader, and, if the CUDA Toolkit was found, once as a real
// NVTX program.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/inject/name_table.h"
#include "profiler/record/collector.h"
#include "profiler/record/launch.h"
#include "profiler/record/session.h"
#include "tests/profiler/memory_sink.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using namespace std::chrono_literals;
using testing::MemorySink;
using testing::Received;
using traces::schema::RangeRow;

// One run of a scenario and its result.
class Injected : public ::testing::TestWithParam<std::string> {
  protected:
    struct Setting {
        SessionOptions options = {.max_bytes_per_process = 64u << 20};
        bool drain = true;  // drain while the program runs
        SessionState state = SessionState::recording;
        Command::Variables variables;
    };

    int run(const std::string& scenario) { return run(scenario, Setting()); }
    int run(const std::string& scenario, const Setting& setting,
            const std::function<void(Session&, std::chrono::milliseconds)>& meanwhile = nullptr) {
        got_.ranges.clear();
        got_.schemas.clear();
        got_.enums.clear();
        got_.scopes.clear();
        got_.threads.clear();
        got_.ranks.clear();
        Session session(setting.options);
        session.set_state(setting.state);
        MemorySink sink(got_);
        Calibration clock(clock_source());
        const auto origin = MonotonicTime::now();
        Collector collector(session.directory(), sink, clock, origin);
        auto variables = setting.variables;
        variables.emplace_back("NVTX_INJECTION64_PATH", INJECT_LIBRARY);
        variables.emplace_back(kSessionVariable, session.directory());
        Command command({GetParam(), scenario}, variables);
        pid_ = command.pid();
        std::optional<int> status;
        while (!(status = command.wait(5ms))) {
            if (setting.drain) collector.drain();
            if (meanwhile)
                meanwhile(session, std::chrono::milliseconds((MonotonicTime::now() - origin) / 1'000'000));
        }
        end_ns_ = MonotonicTime::now() - origin;
        collector.finish(end_ns_);
        processes_ = collector.processes();
        dropped_ = collector.dropped();
        EXPECT_EQ(collector.damaged(), 0);
        EXPECT_EQ(collector.rows(), static_cast<std::int64_t>(got_.ranges.size()));
        return *status;
    }

    std::vector<RangeRow> named(std::string_view text) const {
        std::vector<RangeRow> found;
        for (const RangeRow& row : got_.ranges) {
            if (got_.text(row.text) == text) found.push_back(row);
        }
        return found;
    }
    // All texts, sorted.
    std::vector<std::string> texts() const {
        std::vector<std::string> found;
        for (const RangeRow& row : got_.ranges) found.push_back(got_.text(row.text));
        std::sort(found.begin(), found.end());
        return found;
    }
    std::int64_t count(std::string_view text) const { return static_cast<std::int64_t>(named(text).size()); }

    Received got_;
    std::int64_t pid_ = 0, end_ns_ = 0, processes_ = 0, dropped_ = 0;
};

TEST_P(Injected, records_every_call) {
    ASSERT_EQ(run("every_call"), 0);
    const std::int64_t main_thread = traces::schema::global_tid(pid_, pid_);
    const auto& outer = got_.range("outer");
    const auto& wide = got_.range("w\u00efde \u20ac \U0001F600");
    const auto& colored = got_.range("colored");
    EXPECT_EQ(outer.event_type, traces::schema::kNvtxPushPop);
    EXPECT_EQ(outer.global_tid, main_thread);
    EXPECT_EQ(outer.domain, traces::schema::StringId::empty);
    EXPECT_EQ(outer.module, -1);
    EXPECT_FALSE(outer.color.has_value());
    EXPECT_LE(0, outer.start);
    EXPECT_LE(outer.start, wide.start);
    EXPECT_LE(wide.start, colored.start);
    EXPECT_LE(*colored.end, *wide.end);
    EXPECT_LE(*wide.end, *outer.end);
    EXPECT_LE(*outer.end, end_ns_);
    EXPECT_EQ(colored.color, 0xFF123456u);
    EXPECT_EQ(colored.category, 7u);

    for (const char* text : {"mark a", "mark w", "mark ex", "domain mark"}) {
        EXPECT_EQ(got_.range(text).event_type, traces::schema::kNvtxMark) << text;
        EXPECT_FALSE(got_.range(text).end.has_value()) << text;
    }
    for (const char* text : {"start a", "start w", "start ex", "domain start"}) {
        const auto& range = got_.range(text);
        EXPECT_EQ(range.event_type, traces::schema::kNvtxStartEnd) << text;
        EXPECT_EQ(range.global_tid, main_thread) << text;  // even if another thread ended it
        EXPECT_EQ(range.end_global_tid.has_value(), text == std::string("start w")) << text;
        ASSERT_TRUE(range.end.has_value()) << text;
        EXPECT_LT(*range.end, end_ns_) << text;
    }
    // The ranges of two domains cross.
    const auto& first = got_.range("registered a");
    const auto& second = got_.range("registered w");
    EXPECT_EQ(got_.text(first.domain), "Domain A");
    EXPECT_EQ(got_.text(second.domain), "Domain W");
    EXPECT_LE(first.start, second.start);
    EXPECT_LE(second.start, *first.end);
    EXPECT_LE(*first.end, *second.end);

    const std::map<std::string, std::pair<unsigned, std::string>> categories = {
        {"category a", {7, ""}},
        {"category w", {8, ""}},
        {"domain category a", {9, "Domain A"}},
        {"domain category w", {10, "Domain A"}}};
    for (const auto& [text, wanted] : categories) {
        EXPECT_EQ(got_.range(text).event_type, traces::schema::kNvtxCategory) << text;
        EXPECT_EQ(got_.range(text).category, wanted.first) << text;
        EXPECT_EQ(got_.text(got_.range(text).domain), wanted.second) << text;
    }
    EXPECT_EQ(got_.range("main thread").event_type, traces::schema::kNvtxThreadName);
    EXPECT_EQ(got_.range("main thread").global_tid, main_thread);
    // 3 pushes, 3 + 1 marks, 3 + 1 start/ends, 2 domain ranges, 4 categories, 2 thread names.
    EXPECT_EQ(got_.ranges.size(), 3u + 4u + 4u + 2u + 4u + 2u);
    EXPECT_EQ(dropped_, 0);
}

TEST_P(Injected, names_processes_and_threads) {
    ASSERT_EQ(run("every_call"), 0);
    ASSERT_EQ(got_.processes.size(), 1u);
    EXPECT_EQ(got_.processes[0].pid, pid_);
    EXPECT_EQ(got_.processes[0].global_pid, traces::schema::global_pid(pid_));
    EXPECT_EQ(got_.processes[0].name, std::filesystem::path(GetParam()).filename().string());
    ASSERT_EQ(got_.threads.size(), 2u);  // the main thread, and the one that ended a range
    const auto named_one =
        std::find_if(got_.threads.begin(), got_.threads.end(),
                     [](const traces::schema::ThreadRow& row) { return row.name == "main thread"; });
    ASSERT_NE(named_one, got_.threads.end());
    EXPECT_EQ(named_one->global_tid, traces::schema::global_tid(pid_, pid_));
    EXPECT_EQ(named_one->rank, -1);
    EXPECT_TRUE(got_.ranks.empty());
}

TEST_P(Injected, takes_the_rank_from_the_launcher) {
    for (const char* variable :
         {"RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "LOCAL_RANK"}) {
        Setting setting;
        setting.variables = {{variable, "3"}};
        ASSERT_EQ(run("exits", setting), 3);
        ASSERT_EQ(got_.ranks.size(), 1u) << variable;
        EXPECT_EQ(got_.ranks[0].rank, 3);
        EXPECT_EQ(got_.ranks[0].global_tid, traces::schema::global_tid(pid_, pid_));
        EXPECT_FALSE(got_.ranks[0].host.empty());
        EXPECT_GT(got_.ranks[0].device_memory, 0);
        ASSERT_EQ(got_.threads.size(), 1u);
        EXPECT_EQ(got_.threads[0].rank, 3);
    }
}

// The bytes of a struct without its padding.
std::string transfer(std::uint64_t communicator, std::uint64_t bytes, std::int32_t root) {
    std::string raw(24, '\0');
    std::memcpy(raw.data(), &communicator, 8);
    std::memcpy(raw.data() + 8, &bytes, 8);
    std::memcpy(raw.data() + 16, &root, 4);
    return raw;
}

TEST_P(Injected, records_values_and_payloads) {
    ASSERT_EQ(run("payloads"), 0);
    using Type = traces::schema::RangePayload::Type;
    const std::uint64_t ones = ~std::uint64_t{0};
    const std::vector<std::pair<Type, std::uint64_t>> values = {{Type::uint64, std::uint64_t{1} << 63},
                                                                {Type::int64, ones - 6},             // -7
                                                                {Type::real64, 0xBFE0000000000000},  // -0.5
                                                                {Type::uint32, 4'000'000'000u},
                                                                {Type::int32, 0xFFFFFFF9},
                                                                {Type::real32, 0x3E800000}};  // 0.25
    for (std::size_t i = 0; i < values.size(); ++i) {
        const RangeRow& row = got_.range("value " + std::to_string(i + 1));
        EXPECT_EQ(row.payload.type, values[i].first) << i;
        EXPECT_EQ(row.payload.bits, values[i].second) << i;
        EXPECT_EQ(row.binary, "") << i;
    }

    const std::uint64_t id = (1 << 24) + 4;
    ASSERT_EQ(got_.schemas.size(), 4u);
    const traces::schema::PayloadSchemaRow& schema = got_.schemas[0];
    EXPECT_EQ(got_.text(schema.domain), "Transfers");
    EXPECT_EQ(schema.id, id);
    EXPECT_EQ(schema.name, "transfer");
    EXPECT_EQ(schema.type, 1u);
    EXPECT_EQ(schema.size, 24u);
    ASSERT_EQ(schema.entries.size(), 3u);
    EXPECT_EQ(schema.entries[0].name, "Communicator");
    EXPECT_EQ(schema.entries[0].description, "its hash");
    EXPECT_EQ(schema.entries[1].type, 22u);
    EXPECT_EQ(schema.entries[1].offset, 8u);
    EXPECT_EQ(schema.entries[2].type, (1u << 24) + 20u);
    EXPECT_EQ(got_.schemas[1].name, "note");
    EXPECT_EQ(got_.schemas[1].entries[1].detail, 16u);
    ASSERT_EQ(got_.enums.size(), 1u);
    EXPECT_EQ(got_.enums[0].id, (1u << 24) + 20u);
    EXPECT_EQ(got_.enums[0].size, 4u);
    ASSERT_EQ(got_.enums[0].entries.size(), 2u);
    EXPECT_EQ(got_.enums[0].entries[1].name, "Second");
    EXPECT_EQ(got_.enums[0].entries[1].value, 1u);
    EXPECT_TRUE(got_.enums[0].entries[1].is_flag);
    ASSERT_EQ(got_.scopes.size(), 2u);
    EXPECT_EQ(got_.scopes[0].path, "node[3]/gpu[1]");
    EXPECT_EQ(got_.scopes[0].parent, 1u);
    EXPECT_EQ(got_.scopes[1].parent, got_.scopes[0].id);

    // The struct's last four bytes are padding, and may contain anything.
    const auto payload_of = [](const RangeRow& row, std::size_t number) {
        return row.binary.substr(number * (32 + 24) + 32, 20);
    };
    const RangeRow& both = got_.range("both ends");
    ASSERT_EQ(both.binary.size(), 2u * (32 + 24));
    EXPECT_EQ(both.binary.substr(0, 32),
              traces::schema::binary_payload(id, std::string(24, ' ')).substr(0, 32));
    EXPECT_EQ(payload_of(both, 0), transfer(0xABCDEF, 1 << 20, 1).substr(0, 20));
    EXPECT_EQ(payload_of(both, 1), transfer(0xABCDEF, 5, 1).substr(0, 20));
    EXPECT_EQ(got_.range("two").binary,
              traces::schema::binary_payload(77, "abc") + traces::schema::binary_payload(79, "de"));

    EXPECT_EQ(got_.range("a word or two").event_type, traces::schema::kNvtxMark);
    EXPECT_EQ(got_.range("a word or two").binary.size(), 32u + 24u);
    EXPECT_EQ(got_.range("pointed at").event_type, traces::schema::kNvtxPushPop);
    const RangeRow& started = got_.range("registered");
    EXPECT_EQ(started.event_type, traces::schema::kNvtxStartEnd);
    EXPECT_EQ(started.binary.size(), (32u + 8u) + (32u + 24u));

    EXPECT_EQ(got_.range("too large").binary, traces::schema::binary_payload(79, "de"));
    EXPECT_EQ(got_.range("unknown size").binary, "");
    EXPECT_EQ(dropped_, 2);  // two payloads
    for (const RangeRow& row : named("large")) EXPECT_EQ(row.binary.size(), 32u + 40'000u);
    // 6 values, "both ends", "two", 3 by payload, 2 omitted, 20 large ones.
    EXPECT_EQ(got_.ranges.size(), 6u + 2u + 3u + 2u + 20u);
}

TEST_P(Injected, records_the_requested_steps) {
    for (const std::string scenario : {"steps", "registered_steps", "started_steps"}) {
        Setting setting;
        setting.options.window = WindowKind::steps;
        setting.options.first_step = 3;
        setting.options.last_step = 5;
        setting.options.range_name = "ProfilerStep#";
        ASSERT_EQ(run(scenario, setting), 0);
        const std::string tail = scenario == "registered_steps" ? ", op_id = 1" : "";
        // Exactly the ranges that began between the start of step 3 and the end of step 5.
        EXPECT_THAT(texts(), ::testing::UnorderedElementsAre("ProfilerStep#3" + tail, "work 3", "thread 3",
                                                             "between 3", "ProfilerStep#4" + tail, "work 4",
                                                             "thread 4", "between 4", "begun after step 4",
                                                             "ProfilerStep#5" + tail, "work 5", "thread 5",
                                                             "begun in step 5", "started in step 5"))
            << scenario;
        if (got_.ranges.size() != 14) continue;
        // A range that began in the window is complete, although it ended later.
        const RangeRow& last = got_.range("ProfilerStep#5" + tail);
        for (const char* text : {"begun in step 5", "started in step 5", "begun after step 4"}) {
            EXPECT_GT(*got_.range(text).end, *last.end) << text;
            EXPECT_LT(*got_.range(text).end, end_ns_) << text;
        }
        EXPECT_EQ(dropped_, 0);
    }
}

TEST_P(Injected, records_steps_from_the_middle_and_to_the_end) {
    Setting setting;
    setting.options.window = WindowKind::steps;
    setting.options.range_name = "ProfilerStep#";
    setting.options.first_step = 8;  // the job ends before the window does
    setting.options.last_step = 20;
    ASSERT_EQ(run("steps", setting), 0);
    EXPECT_THAT(texts(),
                ::testing::UnorderedElementsAre("ProfilerStep#8", "work 8", "thread 8", "between 8",
                                                "ProfilerStep#9", "work 9", "thread 9", "between 9"));
    setting.options.first_step = 20;
    ASSERT_EQ(run("steps", setting), 0);
    EXPECT_TRUE(got_.ranges.empty());
    setting.options.range_name = "Step ";
    setting.options.first_step = 0;
    ASSERT_EQ(run("steps", setting), 0);
    EXPECT_TRUE(got_.ranges.empty());
}

TEST_P(Injected, records_while_a_range_of_a_name_is_open) {
    Setting setting;
    setting.options.window = WindowKind::range;
    setting.options.range_name = "phase";
    ASSERT_EQ(run("phases", setting), 0);
    EXPECT_EQ(count("phase"), 3 * 3);
    EXPECT_EQ(count("inside"), 3 * 3);
    EXPECT_EQ(got_.ranges.size(), 18u);
}

TEST_P(Injected, records_between_start_and_stop_of_the_profiler) {
    Setting setting;
    setting.options.window = WindowKind::cuda_profiler;
    ASSERT_EQ(run("plain_c", setting), 0);
    EXPECT_EQ(texts(), (std::vector<std::string>{"", "again", "marked", "whole", "within"}));
    EXPECT_LE(*got_.range("whole").end, *got_.range("within").end);
}

TEST_P(Injected, lends_its_functions_to_programs_without_nvtx) {
    ASSERT_EQ(run("plain_c"), 0);  // starting and stopping have no effect on this session
    EXPECT_EQ(texts(), (std::vector<std::string>{"", "again", "early", "early too", "late", "marked", "whole",
                                                 "within"}));
    const RangeRow& early = got_.range("early");
    const RangeRow& late = got_.range("late");
    EXPECT_LE(*late.end, *early.end);
    EXPECT_EQ(got_.range("marked").event_type, traces::schema::kNvtxMark);
}

TEST_P(Injected, records_the_requested_ranks) {
    const auto events = [&](const char* rank) {
        Setting setting;
        setting.options.ranks = {{0, 1}, {8, 8}};
        if (rank != nullptr) setting.variables = {{"RANK", rank}};
        EXPECT_EQ(run("exits", setting), 3);
        EXPECT_EQ(processes_, got_.ranges.empty() ? 0 : 1);
        return got_.ranges.size();
    };
    EXPECT_EQ(events("0"), 2u);
    EXPECT_EQ(events("1"), 2u);
    EXPECT_EQ(events("2"), 0u);
    EXPECT_EQ(events("8"), 2u);
    EXPECT_EQ(events("9"), 0u);
    EXPECT_EQ(events(nullptr), 2u);  // without a rank, it may be the program that starts the ranks
}

TEST_P(Injected, watches_steps_without_recording_ranges) {
    Setting setting;
    setting.options.sources = kSourceCuda;
    setting.options.window = WindowKind::steps;
    setting.options.range_name = "ProfilerStep#";
    setting.options.last_step = 9;
    ASSERT_EQ(run("steps", setting), 0);
    EXPECT_TRUE(got_.ranges.empty());
}

TEST_P(Injected, survives_odd_calls) {
    ASSERT_EQ(run("odd_calls"), 0);
    // A null and an empty text, a text that is too long (truncated, with its NUL, at kMaxText), an event
    // without any field.
    EXPECT_EQ(count(""), 3);
    EXPECT_EQ(count(std::string(kMaxText - 1, 'x')), 1);
    EXPECT_EQ(got_.ranges.size(), 4u);
}

TEST_P(Injected, keeps_the_order_of_many_threads) {
    ASSERT_EQ(run("threads"), 0);
    EXPECT_EQ(count("outer"), 4 * 5000);
    EXPECT_EQ(count("inner"), 4 * 5000);
    std::set<std::int64_t> threads;
    for (const RangeRow& row : got_.ranges) {
        threads.insert(row.global_tid);
        EXPECT_LE(row.start, *row.end);
        EXPECT_EQ(got_.text(row.domain), got_.text(row.text) == "inner" ? "workers" : "");
    }
    EXPECT_EQ(threads.size(), 4u);
    EXPECT_EQ(dropped_, 0);
}

TEST_P(Injected, reuses_the_buffers_of_ended_threads) {
    ASSERT_EQ(run("short_threads"), 0);
    EXPECT_EQ(count("short"), 2000);
    EXPECT_EQ(dropped_, 0);
}

TEST_P(Injected, keeps_what_a_program_wrote_however_it_ended) {
    const std::map<std::string, int> endings = {
        {"exits", 3}, {"aborts", 128 + 6}, {"is_killed", 128 + 9}, {"leaves_threads", 4}};
    for (const auto& [scenario, status] : endings) {
        EXPECT_EQ(run(scenario), status) << scenario;
        EXPECT_EQ(count("finished"), 1) << scenario;
        ASSERT_EQ(count("open at the end"), 1) << scenario;
        const auto& open = got_.range("open at the end");
        EXPECT_LE(*got_.range("finished").end, *open.end) << scenario;
        EXPECT_LE(*open.end, end_ns_) << scenario;
        EXPECT_GE(count("background"), scenario == "leaves_threads" ? 1 : 0);
    }
}

TEST_P(Injected, follows_forks) {
    ASSERT_EQ(run("forks"), 0);
    EXPECT_EQ(processes_, 2);
    const auto ranges = named("registered before the fork");
    ASSERT_EQ(ranges.size(), 2u);  // the parent's once, and the child's own
    const auto& of_child = got_.range("registered by the child");
    EXPECT_NE(of_child.global_tid & ~std::int64_t{0xFFFFFF}, traces::schema::global_pid(pid_));
    EXPECT_EQ(got_.text(of_child.domain), "shared domain");
    EXPECT_EQ(of_child.binary, traces::schema::binary_payload((1 << 24) + 4, "abc"));
    ASSERT_EQ(got_.schemas.size(), 2u);  // each declares its schema
    EXPECT_EQ(got_.schemas[0].entries[1].name, got_.schemas[1].entries[1].name);
    EXPECT_EQ(std::count_if(ranges.begin(), ranges.end(),
                            [&](const RangeRow& row) { return row.global_tid == of_child.global_tid; }),
              1);
    EXPECT_EQ(count("parent after the fork"), 1);
    EXPECT_EQ(got_.processes.size(), 2u);
}

TEST_P(Injected, follows_exec) {
    ASSERT_EQ(run("executes"), 0);
    EXPECT_EQ(processes_, 1);  // the same process, but another program
    EXPECT_EQ(count("first image"), 1);
    // The first program's range ended where the next program began.
    EXPECT_LE(*got_.range("first image").end, got_.range("outer").start);
}

TEST_P(Injected, loses_nothing_while_it_is_drained) {
    ASSERT_EQ(run("many"), 0);
    EXPECT_EQ(count("a range with a text of some length"), 300'000);
    EXPECT_EQ(dropped_, 0);
}

// A handler that interrupts the writing of a record does not record; at any other moment it does.
TEST_P(Injected, records_during_and_in_signal_handlers) {
    ASSERT_EQ(run("interrupted"), 0);
    EXPECT_EQ(count("interrupted"), 300'000);
    EXPECT_EQ(dropped_, 0);
    const std::int64_t in_handlers = count(std::string(3000, 'h'));
    EXPECT_GE(in_handlers, 2);  // one before, and one between two records
    EXPECT_EQ(static_cast<std::int64_t>(got_.ranges.size()), 300'000 + in_handlers);
}

TEST_P(Injected, counts_what_does_not_fit) {
    Setting setting;
    setting.options.max_bytes_per_process = 1u << 20;
    setting.drain = false;
    ASSERT_EQ(run("many", setting), 0);
    const std::int64_t kept = count("a range with a text of some length");
    EXPECT_GT(kept, 5000);  // a megabyte of records of 72 + 24 bytes
    EXPECT_GT(dropped_, 0);
    EXPECT_EQ(kept + dropped_, 300'000);
}

// The short form of bench_injection's soak.
TEST_P(Injected, accounts_for_every_range) {
    ASSERT_EQ(run("paces"), 0);
    EXPECT_EQ(count("sent") + dropped_, 200'000);
    Setting setting;
    setting.options.max_bytes_per_process = 1u << 20;  // 15 chunks for four threads
    ASSERT_EQ(run("floods", setting), 0);
    EXPECT_EQ(count("sent") + dropped_, 200'000);
    EXPECT_GT(count("sent"), 4 * 1000);
}

TEST_P(Injected, writes_only_while_recording_is_on) {
    Setting setting;
    setting.state = SessionState::waiting;
    ASSERT_EQ(run("for_a_second", setting,
                  [](Session& session, std::chrono::milliseconds time) {
                      if (time > 300ms) session.set_state(SessionState::recording);
                      if (time > 600ms) session.set_state(SessionState::stopped);
                  }),
              0);
    ASSERT_GT(count("tick"), 5);
    for (const RangeRow& row : got_.ranges) {
        EXPECT_GE(row.start, 300'000'000);
        EXPECT_LE(row.start, 800'000'000);  // the test's loop notices the order within one iteration
    }
}

TEST_P(Injected, leaves_a_program_alone_without_a_session) {
    Command command({GetParam(), "every_call"}, {{"NVTX_INJECTION64_PATH", INJECT_LIBRARY}});
    std::optional<int> status;
    while (!(status = command.wait(5ms))) {
    }
    EXPECT_EQ(*status, 9);  // levels are not tracked, and the program detects that
}

std::string program_name(const ::testing::TestParamInfo<std::string>& tested) {
    return tested.param.find("toolkit") == std::string::npos ? "plain" : "toolkit";
}
INSTANTIATE_TEST_SUITE_P(Programs, Injected, ::testing::ValuesIn(std::vector<std::string>{NVTX_PROGRAMS}),
                         program_name);

TEST(InjectedLibrary, needs_nothing_but_the_c_library) {
    // The dynamic section names the required libraries as text, where they would appear.
    std::ifstream file(INJECT_LIBRARY, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ASSERT_GT(bytes.size(), 1000u);
    EXPECT_NE(bytes.find("libc.so.6"), std::string::npos);
    for (const char* library : {"libstdc++", "libgcc_s", "libsqlite3", "libfmt", "libasan", "libtsan"}) {
        EXPECT_EQ(bytes.find(library), std::string::npos) << library;
    }
}

// Lines of a command's output.
std::vector<std::string> output_of(const std::string& command) {
    std::vector<std::string> lines;
    FILE* pipe = ::popen(command.c_str(), "r");
    char line[4096];
    while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr) lines.emplace_back(line);
    if (pipe != nullptr) ::pclose(pipe);
    return lines;
}

// What a library exports. A library that is loaded into arbitrary programs must load with a ten years old C
// library, and needs no other.
std::set<std::string> exports_of(const std::string& library) {
    std::set<std::string> exported;
    for (const std::string& line : output_of("objdump -T '" + library + "' 2>/dev/null")) {
        const std::size_t version = line.find("GLIBC_");
        if (version != std::string::npos) {
            int major = 0, minor = 0;
            EXPECT_GE(std::sscanf(line.c_str() + version, "GLIBC_%d.%d", &major, &minor), 2) << line;
            EXPECT_TRUE(major == 2 && minor <= 18) << line;
        }
        if (line.find("*UND*") != std::string::npos || line.find(" g ") == std::string::npos) continue;
        std::string name = line.substr(line.find_last_of(" \t") + 1);
        name.erase(name.find_last_not_of('\n') + 1);
        exported.insert(name);
    }
    for (const std::string& line : output_of("objdump -p '" + library + "'")) {
        if (line.find("NEEDED") == std::string::npos) continue;
        const bool the_c_library =
            line.find("libc.so.6") != std::string::npos || line.find("libm.so.6") != std::string::npos ||
            line.find("libdl.so.2") != std::string::npos ||
            line.find("libpthread.so.0") != std::string::npos || line.find("ld-linux") != std::string::npos;
        EXPECT_TRUE(the_c_library) << line;
    }
    return exported;
}

// Nothing that could replace a function of the program's.
TEST(InjectedLibrary, loads_anywhere) {
    const std::set<std::string> exported = exports_of(INJECT_LIBRARY);
    if (exported.empty()) GTEST_SKIP() << "needs objdump (binutils)";
    for (const char* name : {"InitializeInjectionNvtx2", "InitializeInjectionNvtxExtension",
                             "shardscope_range_push", "shardscope_range_pop", "shardscope_mark",
                             "shardscope_profiler_start", "shardscope_profiler_stop"}) {
        EXPECT_EQ(exported.count(name), 1u) << name;
    }
    for (const std::string& name : exported) {
        EXPECT_TRUE(name.rfind("InitializeInjection", 0) == 0 || name.rfind("shardscope_", 0) == 0 ||
                    name.rfind("ncclProfiler_v", 0) == 0)
            << name;
    }
}

// It stands before three functions of the C library, and nothing else.
TEST(PreloadedLibrary, loads_anywhere) {
    const std::set<std::string> exported = exports_of(PRELOAD_LIBRARY);
    if (exported.empty()) GTEST_SKIP() << "needs objdump (binutils)";
    EXPECT_EQ(exported, (std::set<std::string>{"pthread_create", "pthread_sigmask", "sigprocmask"}));
}

TEST(Session, is_private_and_cleans_up) {
    std::string directory;
    {
        Session session;
        directory = session.directory();
        struct stat facts;
        ASSERT_EQ(::stat(directory.c_str(), &facts), 0);
        EXPECT_EQ(facts.st_mode & 0777, 0700u);
        ASSERT_EQ(::stat((directory + "/" + kSessionFile).c_str(), &facts), 0);
        EXPECT_EQ(facts.st_mode & 0777, 0600u);
        std::ofstream(directory + "/left behind.records") << "text";
    }
    EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST(Session, removes_what_a_killed_tool_left) {
    std::string abandoned, alive;
    Session session;
    alive = session.directory();
    abandoned = std::filesystem::path(alive).parent_path() / "shardscope-session-abandoned-test";
    std::filesystem::create_directory(abandoned);
    for (const std::string& directory : {abandoned, alive}) {
        const std::string file = directory + "/" + kSessionFile;
        std::ofstream(file, std::ios::app).flush();
        const timespec an_hour_ago[2] = {{::time(nullptr) - 3600, 0}, {::time(nullptr) - 3600, 0}};
        ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), an_hour_ago, 0), 0);
    }
    const Session next;
    EXPECT_FALSE(std::filesystem::exists(abandoned));
    EXPECT_TRUE(std::filesystem::exists(alive + "/" + kSessionFile));  // old, but its tool is running
}

TEST(Collector, skips_files_without_records) {
    Session session;
    std::ofstream(session.directory() + "/1-1.records") << std::string(100'000, 'x');
    // Marked as ready, but otherwise invalid.
    std::string pretender(8192, '\0');
    const std::uint32_t ready = 1;
    std::memcpy(pretender.data() + offsetof(ProcessHeader, ready), &ready, sizeof ready);
    std::ofstream(session.directory() + "/2-2.records") << pretender;
    std::ofstream(session.directory() + "/3-3.records") << "short";
    Received got;
    MemorySink sink(got);
    Calibration clock(clock_source());
    Collector collector(session.directory(), sink, clock, MonotonicTime::now());
    collector.drain();
    collector.finish(1);
    EXPECT_EQ(collector.processes(), 0);
    EXPECT_EQ(collector.damaged(), 1);
    EXPECT_TRUE(got.ranges.empty());
}

TEST(Command, answers_as_a_shell_does) {
    const auto status = [](std::vector<std::string> arguments) {
        Command command(arguments, {{"SHARDSCOPE_TEST", "5"}});
        std::optional<int> ended;
        while (!(ended = command.wait(5ms))) {
        }
        return *ended;
    };
    EXPECT_EQ(status({"true"}), 0);
    EXPECT_EQ(status({"false"}), 1);
    EXPECT_EQ(status({"sh", "-c", "exit $SHARDSCOPE_TEST"}), 5);
    EXPECT_EQ(status({"sh", "-c", "kill -9 $$"}), 128 + 9);
    const auto failure = [&](std::vector<std::string> arguments) {
        try {
            return status(arguments) - 1000;
        } catch (const LaunchError& error) {
            EXPECT_NE(std::string(error.what()).find(arguments[0]), std::string::npos);
            return error.status;
        }
    };
    EXPECT_EQ(failure({"no-such-command-anywhere"}), 127);
    EXPECT_EQ(failure({"/etc/passwd"}), 126);
    EXPECT_EQ(failure({"/"}), 126);
}

// There is room for the pipe that reports the start, but for nothing else.
TEST(Command, starts_nothing_when_no_descriptor_is_left_for_its_signals) {
    sigset_t ends, signals_before;  // an earlier Command may have left the signal blocked
    ::sigemptyset(&ends);
    ::sigaddset(&ends, SIGTERM);
    ::sigprocmask(SIG_UNBLOCK, &ends, &signals_before);
    std::vector<int> filled;
    for (int i = 0; i < 64; ++i) filled.push_back(::dup(0));  // each is the lowest free descriptor
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit now{static_cast<rlim_t>(filled.back()) + 1, before.rlim_max};
    for (int i = 0; i < 2; ++i) {
        ::close(filled.back());
        filled.pop_back();
    }
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
    std::string sentence;
    try {
        const Command command({"true"}, {});
    } catch (const LaunchError& error) {
        EXPECT_EQ(error.status, 125);
        sentence = error.what();
    }
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    for (const int fd : filled) ::close(fd);
    EXPECT_EQ(sentence,
              "cannot start true: no descriptor for its signals: Too many open files; raise ulimit -n");
    sigset_t blocked;
    ::sigprocmask(SIG_SETMASK, &signals_before, &blocked);
    EXPECT_EQ(::sigismember(&blocked, SIGTERM), 0) << "it would be lost";
}

TEST(Command, gets_the_signals_that_are_sent_to_its_parent) {
    Command command({"sh", "-c", "trap 'exit 33' TERM; while :; do sleep 0.01; done"}, {});
    ASSERT_FALSE(command.wait(200ms).has_value());
    ::kill(::getpid(), SIGTERM);
    std::optional<int> status;
    for (int i = 0; i < 1000 && !(status = command.wait(10ms)); ++i) {
    }
    EXPECT_EQ(status, 33);
}

TEST(NameTable, numbers_each_text_once) {
    static inject::NameTable names;  // lives as long as the program, as in the library
    bool added = false;
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 2000; ++i) {
            const std::string text = "name " + std::to_string(i);
            EXPECT_EQ(names.find_or_add({text.data(), text.size()}, &added),
                      static_cast<std::uint32_t>(i + 1));
            EXPECT_EQ(added, round == 0);
        }
    }
    EXPECT_EQ(std::string(names.text(1234).data), "name 1233");
}

TEST(Text, is_cut_between_characters) {
    // 4094 bytes and a two-byte character: 4095 bytes would fit, but not half a character.
    const std::string text = std::string(kMaxText - 2, 'a') + "\u00e9" + "tail";
    EXPECT_EQ(inject::narrow_text(text.c_str()).size, kMaxText - 2);
    EXPECT_EQ(inject::narrow_text(nullptr).size, 0u);
    char buffer[kMaxText];
    const wchar_t odd[] = {L'a', static_cast<wchar_t>(0xD800), static_cast<wchar_t>(0x7FFFFFFF), 0x20AC, 0};
    const inject::Text wide = inject::wide_text(odd, buffer);
    EXPECT_EQ(std::string(wide.data, wide.size), "a??\u20ac");
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
