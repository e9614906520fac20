// Files and folders, opened in memory or imported to a database, with the same result.
#include "traces/import/import.h"

#include <atomic>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "kineto_text.h"
#include "temporary_folder.h"
#include "traces/import/inputs.h"
#include "traces/import/join/join.h"
#include "traces/import/open.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

// A rank of a job of two: a step of 1000 us and three all-reduces that end at 200, 400 and 600 us of the
// common clock; the rank's own clock is `ahead` us ahead.
std::string rank_of_two(int rank, int ahead, bool numbered = true) {
    std::string events =
        R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 42, "tid": 43, "ts": )" +
        std::to_string(1000 + ahead) + R"(, "dur": 1000})";
    for (int i = 0; i < 3; ++i) {
        const int start = 1100 + 200 * i + 10 * rank + ahead, duration = 100 - 10 * rank;
        events +=
            R"(,{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32", "pid": 0, "tid": 20, "ts": )" +
            std::to_string(start) + R"(, "dur": )" + std::to_string(duration) +
            R"(, "args": {"device": 0, "stream": 20, "correlation": )" + std::to_string(i + 1) +
            R"(, "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 10, "Out msg nelems": 10, "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]")" +
            (numbered ? R"(, "Seq": )" + std::to_string(i) : "") + "}}";
    }
    return kineto(events, R"("distributedInfo": {"backend": "nccl", "rank": )" + std::to_string(rank) +
                              R"(, "world_size": 2}, "baseTimeNanoseconds": 1711964646000000000,)");
}

void expect_two_ranks(const store::Trace& trace) {
    ASSERT_EQ(trace.ranks.size(), 2U);
    EXPECT_EQ(trace.ranks[0].number, 0);
    EXPECT_EQ(trace.ranks[1].number, 1);
    ASSERT_EQ(trace.collectives.size(), 6U);
    ASSERT_EQ(trace.steps.size(), 2U);
    // All ranks of a collective end at the same time once the clocks are aligned.
    for (std::size_t i = 0; i < 6; ++i) {
        const auto event = static_cast<std::size_t>(trace.collectives.event[i]);
        EXPECT_EQ(trace.device.end[event] % 200'000, 0) << i;
        EXPECT_EQ(trace.device.rank[event], trace.collectives.rank[i]);
        EXPECT_EQ(trace.device.end[event] - trace.device.start[event],
                  trace.collectives.rank[i] == 0 ? 100'000 : 90'000);
    }
    EXPECT_EQ(trace.collectives.group[0], trace.collectives.group[5]);
    EXPECT_TRUE(std::is_sorted(trace.device.start.begin(), trace.device.start.end()));
}

TEST(Import, ranksAreOpenedTogetherOnOneClock) {
    for (const bool numbered : {true, false}) {
        const TemporaryFolder folder;
        // Rank 1's clock is 5 ms ahead.
        const std::string a = write(folder / "b.json", rank_of_two(0, 0, numbered));
        const std::string b = write(folder / "a.json", rank_of_two(1, 5000, numbered));
        expect_two_ranks(*open_any({a, b}));
        expect_two_ranks(*open_any({b, a}));
        expect_two_ranks(*open_any({folder.path()}));
    }
}

// The database that `import` writes has the same times as the opened files.
TEST(Import, ranksBecomeADatabaseOnOneClock) {
    for (const bool numbered : {true, false}) {
        const TemporaryFolder folder, out;
        write(folder / "rank0.json", rank_of_two(0, 0, numbered));
        write(folder / "rank1.json", rank_of_two(1, 5000, numbered));
        const ImportResult result = import_files({.inputs = {folder.path()}, .output = out / "job.sqlite"});
        EXPECT_EQ(result.merged.collectives, 3) << numbered;
        EXPECT_EQ(result.merged.residual_by_wall_ns, 5'000'000) << numbered;  // rank 1 is 5 ms ahead
        const auto imported = store::load_trace(out / "job.sqlite");
        expect_two_ranks(*imported);
        const auto opened = open_any({folder.path()});
        EXPECT_EQ(imported->device.start, opened->device.start) << numbered;
        EXPECT_EQ(imported->device.end, opened->device.end) << numbered;
    }
}

TEST(Import, aFolderBecomesOneDatabase) {
    const TemporaryFolder folder, out;
    write(folder / "rank0.json", rank_of_two(0, 0));
    write(folder / "rank1.json", rank_of_two(1, 5000));
    write(folder / "README.md", "no trace");
    const ImportResult result = import_files({.inputs = {folder.path()}, .output = out / "job.sqlite"});
    ASSERT_EQ(result.files.size(), 2U);
    EXPECT_EQ(result.merged.collectives, 3);
    EXPECT_EQ(result.merged.residual_ns, 0);
    EXPECT_EQ(result.merged.parts[1].file, folder / "rank1.json");
    expect_two_ranks(*store::load_trace(out / "job.sqlite"));
    // No other file is left, and the database alone opens with the same content as the folder.
    EXPECT_EQ(std::distance(fs::directory_iterator(out.path()), fs::directory_iterator()), 1);
}

// Kernels of NCCL in early traces have no metadata; the import did not lose any.
TEST(Import, kernelsOfNcclWithoutMetadataAreNotAFault) {
    const TemporaryFolder folder, out;
    const std::string file = write(
        folder / "x.json",
        kineto(R"({"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float", "pid": 0,
                   "tid": 20, "ts": 10, "dur": 5, "args": {"device": 0, "stream": 20, "correlation": 1}})"));
    import_files({.inputs = {file}, .output = out / "x.sqlite"});
    const auto trace = store::load_trace(out / "x.sqlite");
    EXPECT_EQ(trace->device.kind.at(0), store::DeviceKind::communication);
    EXPECT_TRUE(trace->diagnostics.empty()) << trace->diagnostics[0].text;
}

// The oldest protocols do not mark themselves in the first byte.
TEST(Import, aPickleOfAnOldProtocolIsRecognized) {
    const TemporaryFolder folder;
    for (const char* text : {"(dp0\n.", "].", "}."}) {
        try {
            open_any({write(folder / "x.pickle", text)});
            FAIL();
        } catch (const store::StoreError& error) {
            EXPECT_THAT(error.what(), HasSubstr("neither a memory snapshot")) << text;
        }
    }
}

TEST(Import, twoFilesOfOneRankAreRefusedWithBothNames) {
    const TemporaryFolder folder;
    const std::string a = write(folder / "a.json", rank_of_two(1, 0)),
                      b = write(folder / "b.json", rank_of_two(1, 0));
    try {
        open_any({a, b});
        FAIL();
    } catch (const store::StoreError& error) {
        EXPECT_THAT(error.what(), HasSubstr("a.json and "));
        EXPECT_THAT(error.what(), HasSubstr("b.json both contain rank 1"));
    }
}

TEST(Import, aRankThatIsGivenAfterTheEventsIsTheRank) {
    const TemporaryFolder folder, out;
    const std::string file =
        write(folder / "x.json", kineto(kOneLaunch, "", R"(, "distributedInfo": {"rank": 6})"));
    EXPECT_EQ(open_any({file})->ranks.at(0).number, 6);
    import_files({.inputs = {file}, .output = out / "x.sqlite"});
    EXPECT_EQ(store::load_trace(out / "x.sqlite")->ranks.at(0).number, 6);
}

TEST(Import, ranksComeFromNamesOrFromTheOrder) {
    EXPECT_EQ(rank_of_name("/rank9/trace_rank_3.json.gz"), 3);
    EXPECT_EQ(rank_of_name("worker12_step_4.169.pt.trace.json"), 12);
    EXPECT_EQ(rank_of_name("Rank-0007.json"), 7);
    EXPECT_EQ(rank_of_name("franklin.json"), -1);
    const auto ranks = [](const std::vector<std::string>& paths) {
        std::vector<int> all;
        for (const InputFile& file : list_inputs(paths)) all.push_back(file.rank);
        return all;
    };
    EXPECT_THAT(ranks({"rank3.json", "rank1.json"}), ::testing::ElementsAre(3, 1));
    EXPECT_THAT(ranks({"t_1.json", "t_0.json"}), ::testing::ElementsAre(1, 0));
    EXPECT_THAT(ranks({"host_4711.json", "host_4712.json"}), ::testing::ElementsAre(0, 1));
    EXPECT_THAT(ranks({"a_rank0.json", "b_rank0.json"}), ::testing::ElementsAre(0, 1));
}

TEST(Import, aDatabaseHasTheContentOfTheFile) {
    const TemporaryFolder folder, out;
    const std::string file =
        write(folder / "x.json", kineto(kOneLaunch, R"("baseTimeNanoseconds": 1711964646000000000,)"));
    import_files({.inputs = {file}, .output = out / "x.sqlite"});
    const auto direct = open_any({file}), stored = open_any({out / "x.sqlite"});
    EXPECT_EQ(stored->start_utc_ns, direct->start_utc_ns);
    EXPECT_EQ(stored->device.start, direct->device.start);
    EXPECT_EQ(stored->device.launch.all(), direct->device.launch.all());
    EXPECT_EQ(stored->device.range.all(), direct->device.range.all());
    EXPECT_EQ(stored->device.occupancy, direct->device.occupancy);
    EXPECT_EQ(stored->ranges.kind, direct->ranges.kind);
    EXPECT_EQ(stored->config_value("import.format"), "kineto");
    EXPECT_TRUE(stored->ended);
}

// A packed file that is cut within its first few events, before its format is detected.
TEST(Import, aFileThatIsCutNearItsStartIsKeptOnDemand) {
    const TemporaryFolder folder, out;
    const std::string whole = folder / "whole.json.gz", cut = folder / "cut.json.gz";
    const std::string text = rank_of_two(0, 0);
    gzFile file = gzopen(whole.c_str(), "wb0");  // stored: half of the bytes are half the text
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    fs::copy_file(whole, cut);
    fs::resize_file(cut, text.size() * 9 / 10);
    EXPECT_THROW(open_any({cut}), store::StoreError);
    const auto kept = open_any({cut}, {.partial = true});
    EXPECT_GT(kept->device.size(), 0U);
    EXPECT_FALSE(kept->diagnostics.empty());
    EXPECT_TRUE(
        import_files({.inputs = {cut}, .output = out / "x.sqlite", .partial = true}).files.at(0).partial);
}

TEST(Import, whatGoesWrongLeavesNothing) {
    const TemporaryFolder folder, out;
    const std::string file = write(folder / "x.json", kineto(kOneLaunch).substr(0, 200));
    EXPECT_THROW(import_files({.inputs = {file}, .output = out / "x.sqlite"}), store::StoreError);
    EXPECT_TRUE(fs::is_empty(out.path()));
    const ImportResult result = import_files({.inputs = {file}, .output = out / "x.sqlite", .partial = true});
    EXPECT_TRUE(result.files.at(0).partial);
    EXPECT_EQ(store::load_trace(out / "x.sqlite")->config_value("import.partial"), "1");
    // The output exists, and is not changed.
    EXPECT_THROW(import_files({.inputs = {file}, .output = out / "x.sqlite", .partial = true}),
                 store::StoreError);
    const std::atomic<bool> cancel = true;
    EXPECT_THROW(import_files({.inputs = {file}, .output = out / "y.sqlite", .partial = true},
                              {.cancel = &cancel, .progress = {}}),
                 merge::Cancelled);
    EXPECT_FALSE(fs::exists(out / "y.sqlite"));
}

TEST(Import, filesThatAreNotTracesAreNamed) {
    const TemporaryFolder folder;
    for (const auto& [text, word] : {std::pair("", "is empty"), {"hello", "not a trace of a known format"}}) {
        try {
            open_any({write(folder / "x", text)});
            FAIL();
        } catch (const store::StoreError& error) {
            EXPECT_THAT(error.what(), HasSubstr(word));
        }
    }
    EXPECT_THROW(open_any({folder / "missing"}), store::StoreError);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
