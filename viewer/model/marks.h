// What a user keeps beside a trace: marks (instants and ranges of time with a text, sorted by time) and saved
// views. Nanoseconds since the start of the capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/model/place.h"

namespace shardscope::viewer::model {

struct Mark {
    std::int64_t from = 0, to = 0;  // equal: an instant
    std::string text;
    bool is_range() const { return to > from; }
    bool operator==(const Mark&) const = default;
};

template <IsOrIsConst<Mark> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [from, to, text] = value;
    visit("from_ns", from);
    visit("to_ns", to);
    visit("text", text);
}
bool is_valid(const Mark& mark);  // within what a view can show

class MarkBook {
  public:
    MarkBook() = default;
    explicit MarkBook(std::vector<Mark> marks);

    const std::vector<Mark>& all() const { return marks_; }
    // Returns its index. An empty text becomes "mark 3" or "range 3", with the first free number.
    std::size_t add(Mark mark);
    void rename(std::size_t index, const std::string& text);
    void remove(std::size_t index);
    // The nearest one that starts after or before an instant; nullopt if there is none.
    std::optional<std::size_t> after(std::int64_t time) const;
    std::optional<std::size_t> before(std::int64_t time) const;
    // Starts and ends, to which a measure snaps.
    std::vector<std::int64_t> edges() const;
    bool operator==(const MarkBook&) const = default;

  private:
    std::vector<Mark> marks_;
};

// A view under a key: Ctrl+1 to Ctrl+9 show it.
struct SavedView {
    int key = 0;  // 1..9
    std::string name;
    View view;
    bool operator==(const SavedView&) const = default;
};
inline constexpr int kViewKeys = 9;

template <IsOrIsConst<SavedView> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [key, name, view] = value;
    visit("key", key);
    visit("name", name);
    visit("view", view);
}
inline bool is_valid(const SavedView& view) {
    return view.key >= 1 && view.key <= kViewKeys;
}

// --- Marks and views beside their trace: `<trace>.marks.json` or, if that folder cannot be written,
// `$XDG_STATE_HOME/shardscope/marks/` (the XDG Base Directory specification; ~/.local/state if it is not
// set), named by the trace's whole path. The trace itself is never touched. Frame thread; the files are
// small.
//
// The file: {"shardscope_marks": 1, "trace": "/data/run.sqlite",
//            "marks": [{"from_ns": 10, "to_ns": 20, "text": "slow step"}, ...],
//            "views": [{"key": 1, "name": "slow step", "view": {...}}, ...]}
// An instant has no to_ns. With views the version is 2: a viewer that does not know them leaves the file as
// it is.

struct KeptBeside {
    MarkBook marks;
    std::vector<SavedView> views;  // by key
    bool operator==(const KeptBeside&) const = default;

    const SavedView* view(int key) const;  // nullptr: none
    void set_view(SavedView view);         // replaces the one with its key
    void remove_view(int key);
    // Adds those that are not there. A view whose key another has gets the first free one; returns the names
    // of those for which there is none.
    std::vector<std::string> add(const std::vector<Mark>& more, const std::vector<SavedView>& more_views);
};

std::string marks_json(const KeptBeside& kept, const std::string& trace_path);
// Throws std::runtime_error with a sentence (the error, and where in the text) if it is not a marks file.
KeptBeside parse_marks(std::string_view json);

class MarkFile : public KeptBeside {
  public:
    // Reads the trace's marks, from the newer of both files. A trace without a file (made in memory) has
    // none, and none are written.
    explicit MarkFile(std::string trace_path);

    // Writes them whole or not at all. An existing file that is not a marks file is left unchanged, and
    // problem() says so.
    void save();
    // One sentence for the user, empty if all is well.
    const std::string& problem() const { return problem_; }
    // The path where they are stored; empty: in memory only.
    const std::string& path() const { return path_; }

  private:
    std::string trace_path_, beside_, in_state_, path_, problem_;
    bool locked_ = false;  // the existing file has an unknown format
};

}  // namespace shardscope::viewer::model
