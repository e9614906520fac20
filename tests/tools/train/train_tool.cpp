#include "tests/tools/train/train_tool.h"

#include <fstream>
#include <iterator>
#include <ostream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::tools {

namespace {

Json json_of(const Outcome& outcome) {
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    Json json = Json::parse(outcome.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << "no JSON: " << outcome.out;
    return json;
}

}  // namespace

const std::string& train_binary() {
    static const std::string path = SHARDSCOPE_TRAIN;
    return path;
}

const std::string& trace_tool_binary() {
    static const std::string path = SHARDSCOPE_TRACE;
    return path;
}

std::string sample(const std::string& name) {
    return std::string(SHARDSCOPE_SAMPLES) + "/" + name;
}

Outcome train(Words arguments) {
    arguments.insert(arguments.begin(), train_binary());
    return run_command(arguments);
}

Outcome trace_tool(Words arguments) {
    arguments.insert(arguments.begin(), trace_tool_binary());
    return run_command(arguments);
}

void expect_refusal(const Outcome& outcome, const Words& sayings, int status) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, ::testing::StartsWith("shardscope-train: "));
    for (const std::string& saying : sayings) EXPECT_THAT(outcome.err, ::testing::HasSubstr(saying));
}

Json train_json(Words arguments) {
    arguments.insert(arguments.end(), {"--format", "json"});
    return json_of(train(std::move(arguments)));
}

Json trace_json(Words arguments) {
    arguments.insert(arguments.end(), {"--format", "json"});
    return json_of(trace_tool(std::move(arguments)));
}

std::string losses_text(const std::string& json) {
    constexpr std::string_view kKey = "\"losses\":[";
    const std::size_t start = json.find(kKey);
    const std::size_t end = json.find(']', start);
    if (start == std::string::npos || end == std::string::npos) return "no losses in: " + json;
    return json.substr(start + kKey.size(), end - start - kKey.size());
}

std::vector<std::vector<traces::store::QueryValue>> rows(const std::string& trace, const std::string& sql) {
    auto results = traces::store::run_query(trace, sql);
    if (results.size() != 1) throw std::logic_error("not one statement: " + sql);
    return std::move(results[0].rows);
}

std::int64_t number(const std::string& trace, const std::string& sql) {
    const auto all = rows(trace, sql);
    if (all.size() != 1 || all[0].size() != 1) throw std::logic_error("not one value: " + sql);
    return std::get<std::int64_t>(all[0][0]);
}

std::vector<std::string> texts(const std::string& trace, const std::string& sql) {
    std::vector<std::string> all;
    for (const auto& row : rows(trace, sql)) all.push_back(std::get<std::string>(row.at(0)));
    return all;
}

std::string read_file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

void write_file(const std::string& path, std::string_view content) {
    std::ofstream(path, std::ios::binary) << content;
}

std::string to_string(Way way) {
    switch (way) {
        case Way::root:
            return "root";
        case Way::per_layer:
            return "per_layer";
        case Way::ddp:
            return "ddp";
        case Way::none:
            return "none";
        case Way::gpt:
            return "gpt";
    }
    return "?";
}

void PrintTo(Way way, std::ostream* out) {
    *out << to_string(way);
}

Words arguments_for(Way way, const TemporaryFolder& folder) {
    const std::string steps = "--run.steps=" + std::to_string(kSteps);
    if (way == Way::gpt) {
        std::string text;
        while (text.size() < 4096) text += "The quick brown fox jumps over the lazy dog. ";
        write_file(folder / "text.txt", text);
        return {sample("gpt.toml"),        steps,
                "--run.ranks=2",           "--data.path=" + (folder / "text.txt"),
                "--model.layers=2",        "--model.width=32",
                "--model.heads=2",         "--model.context=16",
                "--fsdp.wrap=module:Block"};
    }
    Words arguments = {sample("mlp.toml"), steps, "--model.width=64"};
    switch (way) {
        case Way::root:
            arguments.emplace_back("--fsdp.wrap=root");
            break;
        case Way::per_layer:
            arguments.emplace_back("--fsdp.wrap=module:Linear");
            break;
        // Buckets: the last layer's 16640 bytes exceed 0.01 MB, then two layers' 33280 exceed 0.03 MB each
        // time.
        case Way::ddp:
            arguments.insert(arguments.end(), {"--parallel.mode=ddp", "--ddp.first_bucket_mb=0.01",
                                               "--ddp.bucket_cap_mb=0.03"});
            break;
        default:  // one rank, with the batches of four
            arguments.insert(arguments.end(), {"--parallel.mode=none", "--run.ranks=1", "--data.batch=32"});
    }
    return arguments;
}

TracedRun::TracedRun(Way way, Words more)
    : trace_(folder_ / "run.sqlite"),
      ranks_(way == Way::none  ? 1
             : way == Way::gpt ? 2
                               : 4) {
    Words arguments = arguments_for(way, folder_);
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--trace", trace_});
    result_ = train_json(std::move(arguments));
}

}  // namespace shardscope::tools
