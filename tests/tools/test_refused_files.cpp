// Files that shardscope-trace must not overwrite, and packed files that it must not unpack before it knows
// their size.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/tools/run_command.h"
#include "tests/traces/sample_run.h"
#include "traces/store/write/writer.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

class RefusedFiles : public ::testing::Test {
  protected:
    RefusedFiles() : run_(folder_ / "run.sqlite") {
        traces::store::DatabaseWriter writer({.path = run_, .overwrite = true});
        traces::write_sample_run(writer);
        writer.finish(3 * traces::kSampleMs, 0);
    }
    // Runs the tool with scratch() as $TMPDIR.
    Outcome tool(std::vector<std::string> arguments) const {
        fs::create_directory(scratch());
        arguments.insert(arguments.begin(), {"env", "TMPDIR=" + scratch(), SHARDSCOPE_TRACE});
        return run_command(arguments);
    }
    std::string scratch() const { return folder_ / "scratch"; }
    std::string packed(const std::string& name, const std::string& bytes, std::size_t zeros) const {
        const std::string path = folder_ / name;
        gzFile file = gzopen(path.c_str(), "wb1");
        gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
        const std::string block(1 << 20, '\0');
        for (; zeros > 0; zeros -= std::min(zeros, block.size()))
            gzwrite(file, block.data(), static_cast<unsigned>(std::min(zeros, block.size())));
        gzclose(file);
        return path;
    }

    TemporaryFolder folder_;
    const std::string run_;
};

TEST_F(RefusedFiles, AnInputIsNotWrittenOver) {
    const std::string before = content(run_);
    fs::create_symlink(run_, folder_ / "link.sqlite");
    fs::create_hard_link(run_, folder_ / "hard.sqlite");
    const std::string dotted = folder_.path() + "/./run.sqlite";
    for (const std::string& output : {run_, dotted, folder_ / "link.sqlite", folder_ / "hard.sqlite"}) {
        for (const std::vector<std::string>& verb : {std::vector<std::string>{"report", run_},
                                                     {"report", folder_.path()},
                                                     {"export", run_, "--to", "chrome"},
                                                     {"import", run_},
                                                     {"slice", run_, "--step", "0"}}) {
            std::vector<std::string> arguments = verb;
            arguments.insert(arguments.end(), {"-o", output, "--overwrite"});
            const Outcome outcome = tool(arguments);
            EXPECT_NE(outcome.status, 0) << verb[0] << " " << output;
            EXPECT_THAT(outcome.err, HasSubstr("is both read and written; choose another path"))
                << verb[0] << " " << output;
            EXPECT_TRUE(content(run_) == before) << verb[0] << " " << output;
        }
    }
}

// A journal is protected like the file itself.
TEST_F(RefusedFiles, AJournalIsNotWrittenOver) {
    std::ofstream(run_ + "-wal") << "not empty";
    const Outcome outcome = tool({"report", run_, "-o", run_ + "-wal", "--overwrite"});
    EXPECT_THAT(outcome.err, HasSubstr("-wal is both read and written"));
    EXPECT_EQ(content(run_ + "-wal"), "not empty");
}

TEST_F(RefusedFiles, APackedFileThatOnlyBeginsLikeADatabaseIsNotUnpacked) {
    const std::string magic("SQLite format 3\0", 16);
    const std::string bomb = packed("bomb.gz", magic, std::size_t{64} << 20);
    for (const char* verb : {"info", "summary", "query"}) {
        std::vector<std::string> arguments = {verb, bomb};
        if (verb == std::string("query")) arguments.emplace_back("SELECT 1");
        const Outcome outcome = tool(arguments);
        EXPECT_EQ(outcome.status, 1);
        EXPECT_THAT(outcome.err, HasSubstr("begins like an SQLite file but is not one"));
    }
    // A file that is longer than its header states is read up to that size.
    const Outcome longer = tool({"info", packed("long.gz", content(run_), std::size_t{64} << 20)});
    EXPECT_EQ(longer.status, 1);
    EXPECT_THAT(longer.err, HasSubstr("beyond the size in its header"));
    EXPECT_TRUE(fs::is_empty(scratch()));
    EXPECT_EQ(tool({"info", packed("whole.gz", content(run_), 0)}).status, 0);
}

// A terminal would interpret control characters.
TEST_F(RefusedFiles, NamesInSentencesHoldNoControlCharacters) {
    const Outcome outcome = tool({"info", folder_ / "no\x1b[31m\xc2\x9b\xe2\x80\xae.sqlite"});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("does not exist"), Not(HasSubstr("\x1b")),
                                   Not(HasSubstr("\xc2\x9b")), Not(HasSubstr("\xe2\x80\xae"))));
}

// CSV is data: in a file or a pipe each field is exactly the trace's text. In a terminal, control characters
// are replaced.
TEST_F(RefusedFiles, CsvIsExactInAFileAndEscapedInATerminal) {
    const std::string path = folder_ / "colours.sqlite", name = "red \x1b[31m gemm";
    {
        traces::store::DatabaseWriter writer({.path = path});
        traces::write_sample_run(writer);
        writer.add(traces::schema::KernelRow{.start = 1, .end = 1000, .short_name = writer.intern(name)});
        writer.finish(3 * traces::kSampleMs, 0);
    }
    const Outcome piped = tool({"kernels", path, "--format", "csv"});
    EXPECT_EQ(piped.status, 0) << piped.err;
    EXPECT_THAT(piped.out, HasSubstr(name));
    const std::string command = std::string("'") + SHARDSCOPE_TRACE + "' kernels '" + path + "' --format csv";
    const Outcome shown = run_command({"script", "-qec", command, "/dev/null"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.out, AllOf(HasSubstr("red "), HasSubstr("[31m gemm"), Not(HasSubstr("\x1b"))));
}

TEST_F(RefusedFiles, AHalfWrittenFileOfAKilledProcessIsRemovedByTheNextOnThatPath) {
    const std::string output = folder_ / "out.sqlite";
    const std::string gone = "4194305";  // no process has such a number
    const auto left = [&](const std::string& name, std::chrono::minutes age) {
        std::ofstream(folder_ / name) << "half";
        fs::last_write_time(folder_ / name, fs::file_time_type::clock::now() - age);
        return folder_ / name;
    };
    const std::chrono::minutes old(10), fresh(0);
    const std::string created = left("out.sqlite.shardscope-new-" + gone, old),
                      merged = left("out.sqlite.shardscope-part-" + gone, old),
                      indexed = left("out.sqlite.shardscope-part-" + gone + ".finalizing", old),
                      finished = left("out.sqlite.finalizing", fresh);  // no process has locked it
    const std::string others[] = {left("out.sqlite.shardscope-new-" + std::to_string(::getpid()), old),
                                  left("out.sqlite.shardscope-new-4194306", fresh),
                                  left("out.sqlite.shardscope-new-mine", old),
                                  left("out.sqlite.shardscope-new-0" + gone, old),
                                  left("out.sqlite.part-" + gone, old),
                                  left("out.sqlite.new-2024", old),
                                  left("other.sqlite.shardscope-new-" + gone, old)};
    EXPECT_EQ(tool({"merge", run_, "-o", output}).status, 0);
    EXPECT_FALSE(fs::exists(created));
    for (const std::string& one : {merged, indexed, finished}) EXPECT_FALSE(fs::exists(one)) << one;
    for (const std::string& other : others) EXPECT_TRUE(fs::exists(other)) << other;
}

TEST_F(RefusedFiles, FilesThatAKilledProcessDecompressedAreRemovedByTheNext) {
    fs::create_directories(scratch() + "/shardscope-unpacked-abcdef");
    std::ofstream(scratch() + "/shardscope-unpacked-abcdef/trace.sqlite") << "left";
    fs::create_directories(scratch() + "/shardscope-unpacked-fresh1");
    const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
    fs::last_write_time(scratch() + "/shardscope-unpacked-abcdef", old);
    EXPECT_EQ(tool({"info", packed("whole.gz", content(run_), 0)}).status, 0);
    EXPECT_FALSE(fs::exists(scratch() + "/shardscope-unpacked-abcdef"));
    EXPECT_TRUE(fs::exists(scratch() + "/shardscope-unpacked-fresh1")) << "its process may live";
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
