// docs/learn: the output shown on the pages is what the tools print. Blocks that begin with "    $ " contain
// a command and its output; a command continues over lines that end in a backslash, and a loop until its
// "done".
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fixtures/name_of_file.h"
#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;

struct Example {
    std::string command, output;
};

constexpr std::string_view kIndent = "    ", kPrompt = "    $ ";

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines(1);
    for (const char c : text) {
        if (c == '\n') {
            lines.emplace_back();
        } else {
            lines.back() += c;
        }
    }
    return lines;
}

std::vector<Example> examples(const std::string& page) {
    std::vector<Example> all;
    bool in_command = false, in_output = false;
    for (const std::string& line : lines_of(read_file(page))) {
        if (line.starts_with(kPrompt)) {
            all.push_back({line.substr(kPrompt.size()), ""});
            in_command = in_output = true;
        } else if (in_command) {
            all.back().command += "\n" + line.substr(kIndent.size());
        } else if (in_output && line.starts_with(kIndent)) {
            all.back().output += line.substr(kIndent.size()) + "\n";
        } else {
            in_output = false;
        }
        if (in_command) {
            const bool loop = all.back().command.starts_with("for ");
            in_command = loop ? line != "    done" : line.ends_with("\\");
        }
    }
    return all;
}

class Lesson : public ::testing::TestWithParam<const char*> {};

TEST_P(Lesson, ShowsWhatTheToolPrints) {
    const fs::path source = fs::path(sample("mlp.toml")).parent_path().parent_path();
    const std::string bin = fs::path(train_binary()).parent_path().string();
    const std::vector<Example> all = examples((source / "docs/learn" / GetParam()).string());
    EXPECT_FALSE(all.empty());
    const TemporaryFolder folder;  // of their mktemp
    for (const Example& example : all) {
        const Outcome outcome =
            run_command({"env", "TMPDIR=" + folder.path(), "bash", "-c",
                         "cd '" + source.string() + "' && PATH='" + bin + "':$PATH && " + example.command});
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(outcome.out, example.output) << example.command;
    }
}

INSTANTIATE_TEST_SUITE_P(Learn, Lesson,
                         ::testing::Values("1-wrap.md", "2-prefetch.md", "3-limiter.md", "4-offload.md",
                                           "5-strategies.md", "6-checkpointing.md", "7-mesh.md",
                                           "8-bubble.md", "9-slow-links.md", "10-large-batch.md",
                                           "11-fp16.md", "12-fewer-bytes.md", "13-less-waiting.md",
                                           "14-offload.md"),
                         name_of_file);

}  // namespace TEST_FILE
}  // namespace shardscope::tools
