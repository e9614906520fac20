// Parses what users type after --rank, --step and --range, and reports what is wrong with it.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/report/report.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::cli {

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

// The arguments of an analysis verb.
struct Inputs {
    std::vector<std::string> files;  // files of one job: opened together
    SelectionText selection;
    report::Format format = report::Format::table;
    bool partial = false;  // keep the readable part of a damaged file
    std::string max_size;  // the largest size to which a packed file may unpack: "64G"; empty: the default
};

// Throws UsageError if the text is not table, json or csv.
report::Format parse_format(const std::string& text);

// Throws UsageError if the text cannot be parsed.
analysis::Selection parse_selection(const SelectionText& text);
// As on the command line: " --rank 2 --step 3:5"; empty if all is selected.
std::string options_text(const SelectionText& text);

// The loss of --to-loss; none if the text is empty. Throws UsageError.
std::optional<double> parse_loss(const std::string& text);

// Nanoseconds of "250ms" or "10s" (ns, us, ms, s), more than 0. Throws UsageError.
std::int64_t parse_duration(const std::string& option, const std::string& text);

// Throws UsageError if the selection is empty: no such rank, no such step.
void check_selection(const analysis::Selection& selection, const store::Trace& trace);

// "500M", "64G", "1024": bytes, or multiples of 1024 with K, M, G and T; 256G if the text is empty. Throws
// UsageError.
std::uint64_t parse_size(const std::string& text, std::string_view option = "--max-size");

// Throws UsageError if `path` does not exist or is a folder. Prints a note to standard error if the file is
// read from a copy.
void check_input(const std::string& path);
// The same, but a folder stands for the traces in it.
void check_input_or_folder(const std::string& path);

}  // namespace shardscope::traces::cli
