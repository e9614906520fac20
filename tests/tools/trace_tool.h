// Runs the real shardscope-trace as users call it.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/run_command.h"

namespace shardscope::tools {

class TraceToolTest : public ::testing::Test {
  protected:
    static Outcome tool(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), SHARDSCOPE_TRACE);
        return run_command(arguments);
    }
    // The text or the JSON that a verb prints; a failure of the tool fails the test.
    static std::string text_of(const std::vector<std::string>& arguments) {
        const Outcome outcome = tool(arguments);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        return outcome.out;
    }
    static nlohmann::json json_of(std::vector<std::string> arguments) {
        arguments.insert(arguments.end(), {"--format", "json"});
        const Outcome outcome = tool(arguments);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(outcome.err, "");
        return nlohmann::json::parse(outcome.out, nullptr, false);
    }
    // One sentence on standard error, nothing on standard output.
    static void expect_refused(const std::vector<std::string>& arguments, int status,
                               const std::string& saying) {
        const Outcome outcome = tool(arguments);
        EXPECT_EQ(outcome.status, status) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_THAT(outcome.err, ::testing::AllOf(::testing::StartsWith("shardscope-trace: "),
                                                  ::testing::HasSubstr(saying)));
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
    std::string file(const std::string& name, const std::string& content) const {
        std::ofstream(folder_ / name, std::ios::binary) << content;
        return folder_ / name;
    }

    TemporaryFolder folder_;
};

}  // namespace shardscope::tools
