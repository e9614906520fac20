// Changed settings tried in the viewer, with the real programs: the box shows what shardscope-train prints.
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/run_command.h"
#include "viewer/draw/format.h"

namespace shardscope::tools {
namespace TEST_FILE {

using nlohmann::json;

const std::string kRun = SHARDSCOPE_SAMPLES "/traces/mlp-linear.sqlite";

void replace(std::string& text, const std::string& word, const std::string& value) {
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += value.size())
        text.replace(at, word.size(), value);
}

TEST(TryInViewer, ShowsWhatTheReplayPrints) {
    const Outcome printed = run_command({SHARDSCOPE_TRAIN, "plan", kRun, "--only", "--format", "json",
                                         "--fsdp.wrap=path:net.0,net.10,net.12,net.14,net.2,net.4,net.8;"});
    ASSERT_EQ(printed.status, 0) << printed.err;
    const json all = json::parse(printed.out, nullptr, false);
    const json &before = all.at("unmodified"), &after = all.at("rows").at(1);
    const auto time = [](const json& row, const char* key) {
        return viewer::draw::format_duration(row.at(key).get<double>() * 1e3);
    };
    std::ifstream file(SHARDSCOPE_SCRIPTS "/try.script");
    std::stringstream text;
    text << file.rdbuf();
    ASSERT_TRUE(file);
    const TemporaryFolder folder;
    std::string script = text.str();
    replace(script, "${linear}", kRun);
    replace(script, "${folder}", folder.path());
    replace(script, "${row}",
            "modules.row.FullyShardedDataParallel_0/MLP_0/Sequential_0/FullyShardedDataParallel_4");
    replace(script, "${before.step}", time(before, "step_us"));
    replace(script, "${after.step}", time(after, "step_us"));
    replace(script, "${after.exposed}", time(after, "exposed_communication_us"));
    replace(script, "${after.peak}", viewer::draw::format_size(after.at("peak_bytes").get<std::int64_t>()));
    const std::string path = folder / "try.script";
    std::ofstream(path) << "set size 1400x900\n" << script;
    const Outcome outcome =
        run_command({"env", "TMPDIR=" + folder.path(), SHARDSCOPE_VIEW, "--script", path});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
