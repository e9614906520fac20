// Marks beside their trace: `<trace>.marks.json`, or where that folder cannot be written
// `$XDG_STATE_HOME/shardscope/marks/` (the XDG Base Directory specification; ~/.local/state where it is not
// set), named by the trace's whole path. The trace itself is never touched. Frame thread; the files are
// small.
//
// The file: {"shardscope_marks": 1, "trace": "/data/run.sqlite",
//            "marks": [{"from_ns": 10, "to_ns": 20, "text": "slow step"}, ...]}; an instant has no to_ns.
#pragma once

#include <string>
#include <string_view>

#include "viewer/timeline/marks.h"

namespace shardscope::viewer {

std::string marks_json(const MarkBook& marks, const std::string& trace_path);
// Throws std::runtime_error with a sentence (the error, and where in the text) if it is not a marks file.
MarkBook parse_marks(std::string_view json);

class MarkFile {
  public:
    // Reads the trace's marks, from the newer of both files. A trace without a file (made in memory) has
    // none, and none are written.
    explicit MarkFile(std::string trace_path);

    MarkBook marks;
    // Writes them whole or not at all. An existing file that is not a file of marks is left unchanged, and
    // problem() says so.
    void save();
    // One sentence for the user, empty where all is well.
    const std::string& problem() const { return problem_; }
    // The path where they are stored; empty: in memory only.
    const std::string& path() const { return path_; }

  private:
    bool write(const std::string& path) const;

    std::string trace_path_, beside_, in_state_, path_, problem_;
    bool locked_ = false;  // the existing file has an unknown format
};

}  // namespace shardscope::viewer
