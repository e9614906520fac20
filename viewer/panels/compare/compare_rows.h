// The compare panel's texts about several runs: a title for each (what differs), and the rows of the table.
// Pure text from an analysis result, no drawing; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "traces/analysis/compare/compare.h"

namespace shardscope::viewer::panels {

// One title per run: the settings that differ, the most informative first ("wrap=root"), or the file's name
// if none does. The file's name is appended to titles that would be equal.
std::vector<std::string> run_titles(const traces::analysis::Comparison& comparison);

// A file's name without folders and without its ending: "run.sqlite", "run.pt.trace.json.gz" -> "run".
std::string file_title(const std::string& path);

enum class Tone { neutral, better, worse };  // against the first run; neutral inside the spread

struct CompareCell {
    std::string value;
    std::string change;  // "-59.3 %"; with "~" after it: inside the spread; empty for the first run
    Tone tone = Tone::neutral;
    double share = 0;  // of a bar, 0..1: of the largest peak, the longest step or the largest in the row
};

struct CompareRow {
    std::string label;
    bool heading = false;  // the row has a group's name and no cells
    std::vector<CompareCell> cells;
};

// `stepped`: which runs name steps; one without has no figures per step if another has. Empty: all do.
std::vector<CompareRow> compare_rows(const traces::analysis::Comparison& comparison,
                                     const std::vector<bool>& stepped = {});

// The largest peak of the runs: the common scale of the cards' bars.
std::int64_t largest_peak(const traces::analysis::Comparison& comparison);

// The kept step whose window is closest to the median, preferably not the first; nullptr without steps.
const traces::analysis::StepSummary* steady_step(const traces::analysis::RankSummary& rank);

}  // namespace shardscope::viewer::panels
