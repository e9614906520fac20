// Runs shardscope-record as a user would, and reads the resulting trace.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/run_command.h"
#include "traces/store/sqlite/query.h"

namespace shardscope::tools {

inline const std::string kRecord = SHARDSCOPE_RECORD;
inline const std::string kTrace = SHARDSCOPE_TRACE;
inline const std::string kJob = SHARDSCOPE_JOB;  // job_program.cpp

// The single value of a query on a trace, as text.
inline std::string value_in(const std::string& file, const std::string& sql) {
    const auto results = traces::store::run_query(file, sql);
    if (results.size() != 1 || results[0].rows.size() != 1) return "(not one row)";
    const traces::store::QueryValue& v = results[0].rows[0][0];
    if (const auto* number = std::get_if<std::int64_t>(&v)) return std::to_string(*number);
    if (const auto* real = std::get_if<double>(&v)) return std::to_string(*real);
    if (const auto* text = std::get_if<std::string>(&v)) return *text;
    return "(null)";
}

class RecordTool : public ::testing::TestWithParam<std::string> {
  protected:
    const TemporaryFolder folder_;
    const std::string out_ = folder_ / "out.sqlite";

    Outcome record(const std::vector<std::string>& command,
                   const std::vector<std::string>& options = {}) const {
        std::vector<std::string> line = {kRecord, "-o", out_};
        line.insert(line.end(), options.begin(), options.end());
        line.emplace_back("--");
        line.insert(line.end(), command.begin(), command.end());
        return run_command(line);
    }
    // Runs a script with $record, $out, $job and $folder set.
    Outcome shell(const std::string& script) const {
        return run_command({"bash", "-c",
                            "record='" + kRecord + "' out='" + out_ + "' job='" + kJob + "' trace='" +
                                kTrace + "' folder='" + folder_.path() + "'; " + script});
    }

    std::string value(const std::string& sql) const { return value_in(out_, sql); }
    double number(const std::string& sql) const { return std::stod(value(sql)); }
    std::string setting(const std::string& key) const {
        return value("SELECT value FROM SHARD_RUN WHERE key = '" + key + "'");
    }
    bool exists(const std::string& file) const { return std::filesystem::exists(folder_ / file); }
};

}  // namespace shardscope::tools
