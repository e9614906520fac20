// What the compare panel says of several runs: a title for each (what differs), and the rows of the table.
// Pure text from an analysis result, no drawing; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "traces/analysis/compare/compare.h"

namespace shardscope::viewer {

// One title a run: the settings that differ, the telling ones first ("wrap=root"), the file's name where none
// does. Titles that would be equal get the file's name behind them.
std::vector<std::string> run_titles(const traces::Comparison& comparison);

// A file's name without folders and without its ending: "run.sqlite", "run.pt.trace.json.gz" -> "run".
std::string file_title(const std::string& path);

enum class Tone { neutral, better, worse };  // against the first run; inside the spread is neutral

struct CompareCell {
    std::string value;
    std::string change;  // "-59.3 %"; "~" behind it: inside the spread; empty for the first run
    Tone tone = Tone::neutral;
    double share = 0;  // for a bar, 0..1: of the largest peak, the longest step or the largest in the row
};

struct CompareRow {
    std::string label;
    bool heading = false;  // a group's name; no cells
    std::vector<CompareCell> cells;
};

// `stepped`: which runs name steps; one without has no figures of a step where another has. Empty: all do.
std::vector<CompareRow> compare_rows(const traces::Comparison& comparison,
                                     const std::vector<bool>& stepped = {});

// The largest peak of the runs: the common scale of the cards' bars.
std::int64_t largest_peak(const traces::Comparison& comparison);

// The kept step whose window is nearest to the median, not the first where there is another; nullptr without
// steps.
const traces::StepSummary* steady_step(const traces::RankSummary& rank);

}  // namespace shardscope::viewer
