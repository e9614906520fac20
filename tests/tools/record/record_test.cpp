// shardscope-record from the command line: what a user types, and the resulting trace.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tools/record/record_tool.h"
#include "traces/store/load/loader.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Command = RecordTool;

TEST_F(Command, may_succeed_or_fail) {
    EXPECT_EQ(record({"true"}).status, 0);
    EXPECT_EQ(setting("command"), "true");
    EXPECT_EQ(setting("exit_status"), "0");
    const Outcome failed = record({"sh", "-c", "echo out; echo err >&2; exit 7"}, {"--overwrite"});
    EXPECT_EQ(failed.status, 7);
    EXPECT_EQ(failed.out, "out\n");  // only the command's output
    EXPECT_THAT(failed.err, HasSubstr("err\n"));
    EXPECT_EQ(setting("command"), "sh -c 'echo out; echo err >&2; exit 7'");
    EXPECT_EQ(setting("exit_status"), "7");
    EXPECT_EQ(value("SELECT name FROM PROCESSES"), "sh");
    EXPECT_EQ(run_command({kTrace, "check", out_}).status, 0);
}

TEST_F(Command, may_be_killed) {
    EXPECT_EQ(record({"sh", "-c", "kill -9 $$"}).status, 128 + 9);
    EXPECT_EQ(setting("exit_status"), "137");
}

TEST_F(Command, that_cannot_start_leaves_no_file) {
    const Outcome missing = record({"no-such-command-anywhere"});
    EXPECT_EQ(missing.status, 127);
    EXPECT_THAT(missing.err, HasSubstr("no-such-command-anywhere: command not found"));
    const Outcome text = record({"/etc/passwd"});
    EXPECT_EQ(text.status, 126);
    EXPECT_THAT(text.err, HasSubstr("/etc/passwd: cannot be executed"));
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(Command, that_cannot_start_leaves_an_older_trace_alone) {
    ASSERT_EQ(record({"true"}).status, 0);
    EXPECT_EQ(record({"no-such-command-anywhere"}, {"--overwrite"}).status, 127);
    EXPECT_EQ(setting("command"), "true");
}

TEST_F(Command, gets_the_arguments_after_the_dashes_unchanged) {
    const Outcome outcome = record({"echo", "--overwrite", "--", "-o", "a b"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out, "--overwrite -- -o a b\n");
    EXPECT_EQ(setting("command"), "echo --overwrite -- -o 'a b'");
}

using Output = RecordTool;

TEST_F(Output, that_exists_is_kept) {
    ASSERT_EQ(record({"true"}).status, 0);
    const Outcome again = record({"false"});
    EXPECT_EQ(again.status, 125);
    EXPECT_THAT(again.err, HasSubstr(out_));
    EXPECT_THAT(again.err, HasSubstr("--overwrite"));
    EXPECT_EQ(setting("command"), "true");
    EXPECT_EQ(record({"false"}, {"--overwrite"}).status, 1);
    EXPECT_EQ(setting("command"), "false");
}

TEST_F(Output, that_cannot_be_written_stops_before_the_command) {
    const std::string touched = folder_ / "touched";
    const Outcome outcome =
        run_command({kRecord, "-o", folder_ / "no/such/folder/x.sqlite", "--", "touch", touched});
    EXPECT_EQ(outcome.status, 125);
    EXPECT_THAT(outcome.err, HasSubstr("no/such/folder"));
    EXPECT_FALSE(std::filesystem::exists(touched));
}

TEST_F(Output, gets_a_name_when_none_is_given) {
    const Outcome outcome =
        run_command({"sh", "-c", "cd \"$0\" && exec \"$1\" -- /bin/true", folder_.path(), kRecord});
    EXPECT_EQ(outcome.status, 0);
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
        files.push_back(entry.path().filename().string());
    }
    ASSERT_EQ(files.size(), 1u);
    EXPECT_THAT(files[0], ::testing::MatchesRegex("shardscope-true-[0-9]+\\.sqlite"));
    EXPECT_THAT(outcome.err, HasSubstr(files[0]));
}

TEST_F(Output, of_a_program_without_events_says_what_would_make_some) {
    const Outcome outcome = record({"true"});
    EXPECT_THAT(outcome.err, HasSubstr("no events; the command made no NVTX, CUDA or NCCL call"));
    EXPECT_THAT(outcome.err, HasSubstr("samples/pytorch/shardscope_torch.py"));
}

TEST_F(Output, is_for_its_owner_only) {
    ASSERT_EQ(record({"true"}).status, 0);
    struct stat facts;
    ASSERT_EQ(::stat(out_.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST(CommandLine, is_explained) {
    const Outcome help = run_command({kRecord, "--help"});
    EXPECT_EQ(help.status, 0);
    for (const char* option : {"-- COMMAND",     "-o,--output",   "--overwrite", "--no-nvtx",   "--no-cuda",
                               "--no-nccl",      "--no-counters", "--steps",     "--step-name", "--range",
                               "--profiler-api", "--ranks",       "--delay",     "--duration",  "--toggle",
                               "--max-size",     "--keep-last",   "--hang",      "127",         "%r"}) {
        EXPECT_THAT(help.out, HasSubstr(option));
    }
    const Outcome version = run_command({kRecord, "--version"});
    EXPECT_EQ(version.status, 0);
    EXPECT_THAT(version.out,
                ::testing::MatchesRegex("shardscope-record [0-9.]+ \\(trace schema [0-9]+\\)\n"));
}

// A terminal would interpret control characters.
TEST(CommandLine, names_in_sentences_hold_no_control_characters) {
    for (const auto& line : {std::vector<std::string>{kRecord, "--", "no\x1b[31m\xc2\x9b"},
                             {kRecord, "-o", "/no\x1b[31m\xc2\x9b/folder/x.sqlite", "--", "true"}}) {
        const Outcome outcome = run_command(line);
        EXPECT_NE(outcome.status, 0);
        EXPECT_THAT(outcome.err,
                    ::testing::AllOf(HasSubstr("[31m"), Not(HasSubstr("\x1b")), Not(HasSubstr("\xc2\x9b"))));
    }
}

TEST(CommandLine, that_is_wrong_gets_a_sentence) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
        {{kRecord}, "no command"},
        {{kRecord, "--"}, "no command"},
        {{kRecord, "ls"}, "ls"},
        {{kRecord, "--no-such-option", "--", "ls"}, "--no-such-option"},
        {{kRecord, "--duration", "-1", "--", "ls"}, "--duration"},
        {{kRecord, "--delay", "soon", "--", "ls"}, "--delay"},
        {{kRecord, "--steps", "9:3", "--", "ls"}, "--steps: '9:3' ends before it begins"},
        {{kRecord, "--ranks", "1-", "--", "ls"}, "--ranks: '1-' is not a list of ranks"},
        {{kRecord, "--max-size", "2Q", "--", "ls"}, "--max-size: '2Q' is not a size"},
        {{kRecord, "--max-size", "500K", "--", "ls"}, "--max-size: an empty trace takes half a megabyte"},
        {{kRecord, "--toggle", "KILL", "--", "ls"}, "--toggle: 'KILL' is not a signal"},
        {{kRecord, "--keep-last", "0", "--", "ls"}, "--keep-last"},
        {{kRecord, "--hang", "5", "--", "ls"}, "--hang works only with --keep-last"},
        {{kRecord, "--step-name", "it", "--", "ls"}, "--step-name works only with --steps"},
        {{kRecord, "--steps", "1:2", "--range", "x", "--", "ls"}, "exclude each other"},
        {{kRecord, "--range", std::string(300, 'x'), "--", "ls"}, "--range: the name is longer"},
        {{kRecord, "--profiler-api", "--no-cuda", "--", "ls"}, "--profiler-api needs CUDA"},
        {{kRecord, "--toggle", "USR2", "--delay", "1", "--", "ls"}, "--toggle starts and stops"},
        {{kRecord, "--keep-last", "5", "--duration", "1", "--", "ls"}, "--keep-last records all the time"}};
    for (const auto& [line, words] : wrong) {
        const Outcome outcome = run_command(line);
        EXPECT_EQ(outcome.status, 125) << words;
        EXPECT_THAT(outcome.err, HasSubstr(words));
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
        EXPECT_EQ(outcome.out, "");
    }
}

// Programs that use NVTX; GetParam() is one of them.
using NvtxProgram = RecordTool;

TEST_P(NvtxProgram, becomes_a_trace_with_its_ranges) {
    const Outcome outcome = record({GetParam(), "every_call"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto trace = traces::store::load_trace(out_);
    const auto& ranges = trace->ranges;
    std::vector<std::string> texts;
    for (const auto text : ranges.name) texts.emplace_back(trace->strings[text]);
    for (const char* wanted : {"outer", "colored", "start a", "registered a", "registered w"}) {
        EXPECT_EQ(std::count(texts.begin(), texts.end(), wanted), 1) << wanted;
    }
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 34"), "4");
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 75 AND text = 'Domain A'"), "1");
    EXPECT_EQ(
        value(
            "SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59 AND text = 'registered a' AND domainId = "
            "(SELECT domainId FROM NVTX_EVENTS WHERE eventType = 75 AND text = 'Domain A')"),
        "1");
    EXPECT_EQ(value("SELECT color FROM NVTX_EVENTS WHERE text = 'colored'"), std::to_string(0xFF123456u));
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE \"end\" < start"), "0");
    EXPECT_EQ(value("SELECT s.value FROM ThreadNames t JOIN StringIds s ON s.id = t.nameId "
                    "WHERE t.globalTid = (SELECT globalTid FROM NVTX_EVENTS WHERE text = 'outer')"),
              "main thread");
    EXPECT_EQ(value("SELECT name FROM PROCESSES WHERE globalPid = "
                    "(SELECT globalTid & ~0xFFFFFF FROM NVTX_EVENTS WHERE text = 'outer')"),
              std::filesystem::path(GetParam()).filename().string());
    EXPECT_EQ(run_command({kTrace, "check", out_}).status, 0);
    EXPECT_EQ(run_command({kTrace, "info", out_}).status, 0);
}

TEST_P(NvtxProgram, that_aborts_or_is_killed_keeps_its_ranges) {
    EXPECT_EQ(record({GetParam(), "aborts"}).status, 128 + SIGABRT);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE text IN ('finished', 'open at the end')"), "2");
    EXPECT_EQ(record({GetParam(), "is_killed"}, {"--overwrite"}).status, 128 + SIGKILL);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE text IN ('finished', 'open at the end')"), "2");
}

TEST_P(NvtxProgram, of_many_events_is_kept_completely) {
    const Outcome outcome = record({GetParam(), "many"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59"), "300000");
    EXPECT_THAT(outcome.err, HasSubstr("300000 events of 1 process"));
    EXPECT_THAT(outcome.err, Not(HasSubstr("lost")));
}

TEST_P(NvtxProgram, under_a_launcher_is_a_rank) {
    ASSERT_EQ(record({"sh", "-c", "RANK=0 \"$0\" exits; RANK=1 \"$0\" exits", GetParam()}).status, 3);
    const auto trace = traces::store::load_trace(out_);
    ASSERT_EQ(trace->ranks.size(), 2u);
    EXPECT_EQ(trace->ranks[1].number, 1);
    EXPECT_EQ(run_command({kTrace, "info", out_}).status, 0);
}

TEST_P(NvtxProgram, is_left_alone_without_nvtx) {
    const Outcome outcome = record({GetParam(), "exits"}, {"--no-nvtx"});
    EXPECT_EQ(outcome.status, 3);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS"), "0");
}

TEST_P(NvtxProgram, is_recorded_for_the_requested_time) {
    ASSERT_EQ(record({GetParam(), "for_a_second"}, {"--delay", "0.3", "--duration", "0.3"}).status, 0);
    // The ranges are consecutive, 5 ms each, from 0.3 s to 0.6 s; the tool polls every 20 ms.
    EXPECT_GT(std::stoi(value("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'tick'")), 5);
    EXPECT_GE(std::stoll(value("SELECT min(start) FROM NVTX_EVENTS")), 300'000'000);
    EXPECT_LE(std::stoll(value("SELECT max(start) FROM NVTX_EVENTS")), 800'000'000);
    EXPECT_EQ(setting("exit_status"), "0");
}

TEST_P(NvtxProgram, continues_when_the_disk_is_full) {
    // No file may exceed 1.3 MB (in blocks of 1 KiB); 300,000 ranges need more.
    const Outcome outcome =
        run_command({"bash", "-c", "ulimit -f 1500; trap '' XFSZ; exec \"$0\" -o \"$1\" -- \"$2\" many",
                     kRecord, out_, GetParam()});
    EXPECT_EQ(outcome.status, 0);  // the command's status
    // This happens either before or after the command ended.
    EXPECT_THAT(outcome.err, AnyOf(HasSubstr("recording has stopped, the command continues"),
                                   HasSubstr("the trace is not complete")));
    EXPECT_THAT(outcome.err, HasSubstr(out_));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(setting("command"), GetParam() + " many");  // what was committed before is present
}

TEST_P(NvtxProgram, is_on_disk_while_it_runs) {
    // The tool is killed; the file opens with what was committed until then.
    const Outcome outcome =
        run_command({"sh", "-c", "\"$0\" -o \"$1\" -- \"$2\" for_a_second & sleep 0.9; kill -9 $!; wait $!",
                     kRecord, out_, GetParam()});
    EXPECT_EQ(outcome.status, 128 + SIGKILL);
    EXPECT_GT(std::stoi(value("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'tick'")), 5);
}

std::string program_name(const ::testing::TestParamInfo<std::string>& tested) {
    return tested.param.find("toolkit") == std::string::npos ? "plain" : "toolkit";
}
INSTANTIATE_TEST_SUITE_P(Programs, NvtxProgram, ::testing::ValuesIn(std::vector<std::string>{NVTX_PROGRAMS}),
                         program_name);

#ifdef SHARDSCOPE_STATIC_PROGRAM
// glibc crashes such a program when NVTX loads the recorder into it.
TEST_F(Output, of_a_program_that_cannot_load_the_recorder_says_so) {
    const std::string program = SHARDSCOPE_STATIC_PROGRAM;
    const Outcome outcome = record({program, "writes_when_done", "10", folder_ / "job"});
    EXPECT_EQ(outcome.status, 5);
    EXPECT_TRUE(exists("job"));
    EXPECT_THAT(outcome.err, HasSubstr(program + " is linked statically and calls NVTX"));
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS"), "0");
    EXPECT_EQ(setting("exit_status"), "5");
}
#endif

}  // namespace TEST_FILE
}  // namespace shardscope::tools
