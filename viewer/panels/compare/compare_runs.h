// Which of the open runs are compared, with which base, each in its own limit range; their analyses, and the
// legend that names them. Frame thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/compare/compare_parts.h"
#include "viewer/model/session.h"
#include "viewer/panels/compare/compare_tables.h"

namespace shardscope::viewer::panels {

// A table of Dear ImGui has at most 64 columns: one for each run beside the names.
inline constexpr std::size_t kMostCompared = 63;

struct ComparedRuns {
    std::vector<model::TracePtr> traces;  // the base first
    std::vector<std::size_t> entries;     // their indices in Session::open
    std::vector<traces::analysis::Selection> selections;
    std::vector<RunHead> heads;  // the files' names until the comparison has found what differs
    std::size_t left_out = 0;    // chosen runs beyond kMostCompared, the last ones
    std::string key;             // distinguishes these selections from others: for the names of analyses
};

class RunChoice {
  public:
    ComparedRuns runs(const model::Session& session) const;
    bool shown(const model::TracePtr& trace) const;
    void show(const model::TracePtr& trace, bool on);
    void set_base(const model::TracePtr& trace);
    model::TracePtr base() const { return base_.lock(); }  // nullptr: the first that is shown

  private:
    std::vector<std::weak_ptr<const traces::store::Trace>> hidden_;
    std::weak_ptr<const traces::store::Trace> base_;  // none: the first that is shown
};

// By run: whether it names steps.
std::vector<bool> stepped_runs(const ComparedRuns& runs);
// Whether the figures per step of run `r` can be compared with those of the base.
bool comparable_with_base(const ComparedRuns& runs, std::size_t r);

// nullptr while it is computed.
std::shared_ptr<const traces::analysis::Comparison> comparison_of(model::Session& session,
                                                                  const ComparedRuns& runs);
std::shared_ptr<const traces::analysis::PartsComparison> parts_of(model::Session& session,
                                                                  const ComparedRuns& runs,
                                                                  traces::analysis::CompareBy by);

// --- What the pages of the compare panel share: the legend of runs, and a button that chooses a view.

// The run's colour, its number and its name, in as many lines as the width requires.
void draw_run_legend(const ComparedRuns& runs);

// What a run is called: what distinguishes it from the others or, if it is hidden, its file's name.
std::string title_of_entry(const model::Session& session, const ComparedRuns& runs, std::size_t entry);
// A box for each open run that shows or hides it, in its colour; `beside`: the last item is on the same line.
// For scripts: "<item>.<n>", n from 1 in the order of the open files.
void draw_run_checks(const model::Session& session, RunChoice& choice, const ComparedRuns& runs,
                     std::string_view item, bool beside);

// One of several alternative views: highlighted if it is chosen. True: it was clicked. `item`: for scripts.
bool choice_button(const char* label, bool chosen, const std::string& item);

std::vector<std::string> names_of(const ComparedRuns& runs);

}  // namespace shardscope::viewer::panels
