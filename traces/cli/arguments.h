// What people type after --rank, --step and --range, and what is wrong with it.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/report/report.h"

namespace shardscope::traces {

struct Trace;

// The command line is wrong: exit status 2. The text is one sentence.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct SelectionText {
    std::optional<int> rank;
    std::string step;   // "A:B" inclusive, "A:", ":B" or "A"
    std::string range;  // "A:B" half-open; times with unit ns (or none), us, ms or s
};

// What an analysis verb was given.
struct Inputs {
    std::vector<std::string> files;  // of one job: opened together
    SelectionText selection;
    Format format = Format::table;
    bool partial = false;  // keep what can be read of a damaged file
    std::string max_size;  // that a packed file may unpack to: "64G"; empty: the default
};

// Throws UsageError where the text is none of table, json and csv.
Format parse_format(const std::string& text);

// Throws UsageError where the text cannot be read.
Selection parse_selection(const SelectionText& text);

// Nanoseconds of "250ms" or "10s" (ns, us, ms, s), more than 0. Throws UsageError.
std::int64_t parse_duration(const std::string& option, const std::string& text);

// Throws UsageError where nothing of the trace is selected: no such rank, no such step.
void check_selection(const Selection& selection, const Trace& trace);

// "500M", "64G", "1024": bytes, K, M, G and T of 1024 each; 256G where the text is empty. Throws UsageError.
std::uint64_t parse_size(const std::string& text);

// Throws UsageError where `path` is missing or a folder. Says on standard error where it is read from a copy.
void check_input(const std::string& path);
// The same, but a folder stands for the traces in it.
void check_input_or_folder(const std::string& path);

}  // namespace shardscope::traces
