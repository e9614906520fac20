// Programs of samples/pytorch under shardscope-record, in one process or on two ranks. Skips without a Python
// with PyTorch: $SHARDSCOPE_PYTHON, python3, or the system's.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tests/tools/run_command.h"

namespace shardscope::tools {

using Json = nlohmann::json;

inline std::string find_python() {
    std::vector<std::string> candidates = {"python3", "/usr/bin/python3"};
    if (const char* given = std::getenv("SHARDSCOPE_PYTHON")) candidates.insert(candidates.begin(), given);
    for (const std::string& python : candidates) {
        if (run_command({"env", python, "-c", "import torch"}).status == 0) return python;
    }
    return {};
}

class PytorchSample : public ::testing::Test {
  protected:
    void SetUp() override {
        static const std::string python = find_python();
        if (python.empty()) GTEST_SKIP() << "no Python with PyTorch; set SHARDSCOPE_PYTHON to one";
        python_ = python;
    }

    // Runs Python so that it leaves nothing in the samples' folder, and finds the helper there.
    std::vector<std::string> python(std::vector<std::string> arguments) const {
        std::vector<std::string> command = {
            "env", std::string("PYTHONPATH=" SHARDSCOPE_PYTORCH_SAMPLE) + python_path_, "OMP_NUM_THREADS=1",
            python_, "-B"};
        command.insert(command.end(), arguments.begin(), arguments.end());
        return command;
    }
    Outcome record(const std::vector<std::string>& arguments) {
        std::vector<std::string> command = {SHARDSCOPE_RECORD, "--overwrite", "-o", trace_, "--"};
        for (const std::string& word : python(arguments)) command.push_back(word);
        return run_command(command);
    }
    // Two ranks of a program, each with the environment that torchrun gives it and `more`.
    Outcome record_ranks(const std::vector<std::string>& arguments, const std::string& more) {
        const std::string port = std::to_string(20000 + ::getpid() % 20000);
        const std::string script = folder_ / "ranks.sh";
        std::ofstream(script) << "export MASTER_ADDR=127.0.0.1 MASTER_PORT=" << port
                              << " WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 CUDA_VISIBLE_DEVICES= " << more << "\n"
                              << "for rank in 0 1; do RANK=$rank LOCAL_RANK=$rank \"$@\" & done\n"
                              << "wait %1 && wait %2\n";
        std::vector<std::string> command = {
            SHARDSCOPE_RECORD, "--overwrite", "-o", trace_, "--", "bash", script};
        for (const std::string& word : python(arguments)) command.push_back(word);
        return run_command(command);
    }
    Outcome record_script(const std::string& script) {
        std::ofstream(folder_ / "script.py") << script;
        return record({folder_ / "script.py"});
    }
    Json answer(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), SHARDSCOPE_TRACE);
        arguments.insert(arguments.end(), {"--format", "json"});
        const Outcome outcome = run_command(arguments);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        return Json::parse(outcome.out);
    }
    // The first column of a query's rows.
    std::vector<std::string> texts(const std::string& sql) const {
        std::vector<std::string> found;
        const Json result = answer({"query", trace_, sql});
        for (const Json& row : result.at("rows")) {
            found.push_back(row.at(0).is_string() ? row.at(0).get<std::string>() : row.at(0).dump());
        }
        return found;
    }

    TemporaryFolder folder_;
    std::string trace_ = folder_ / "run.sqlite", python_;
    std::string python_path_;  // further folders of modules, each after a colon
};

}  // namespace shardscope::tools
