// The user's arrangement of the timeline's rows: by rank or by kind, in which order, which of them collapsed,
// hidden, pinned or filtered away. Plain data, saved as JSON with the other saved state of a trace; rows are
// identified by keys, which are stable across openings of a trace:
//   "rank 0", "kind kernel", "collectives", "other"                 groups
//   "rank 0/stream 7", "rank 0/thread 4242", "rank 0/memory", "rank 0/counter active_bytes",
//   "rank 0/waiting", "rank 0/marks 4242", "collectives/group 1"    rows
// Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::viewer::model {

struct RowArrangement {
    enum class Grouping : std::uint8_t { rank, kind };
    Grouping grouping = Grouping::rank;
    std::set<std::string> collapsed;  // groups that show only their heading and summary strip
    std::set<std::string> hidden;     // groups and rows
    std::vector<std::string> pinned;  // rows that stay on top, in this order
    // Keys that were moved by hand, in the user's order. They come first among the rows of a group (and among
    // groups); all others follow in their natural order.
    std::vector<std::string> order;
    // Only rows whose label, group or key contains each word of this, ignoring case, are shown; empty: all.
    std::string filter;

    bool operator==(const RowArrangement&) const = default;
    friend constexpr std::array<std::string_view, 2> names(Grouping) { return {"rank", "kind"}; }

    void toggle_collapsed(const std::string& key);
    void toggle_pinned(const std::string& key);
    void hide(const std::string& key) { hidden.insert(key); }
    void show_all() { hidden.clear(); }
    bool is_pinned(std::string_view key) const;
    // Puts `key` before `before` (at the end if that is empty) among `siblings`: the keys of its group's
    // rows, or of all groups, in their current order.
    void move(const std::string& key, const std::string& before, const std::vector<std::string>& siblings);
    // Moves it one place up (-1) or down (1) among its siblings.
    void step(const std::string& key, int by, const std::vector<std::string>& siblings);
};

std::string to_json(const RowArrangement& arrangement);
// A missing or unknown key, or one of another type, keeps its default: a file that was edited by hand or
// written by another version never prevents a trace from opening.
RowArrangement arrangement_from_json(std::string_view json);

// Whether `text` contains each word of `filter`, ignoring the case of ASCII letters.
bool matches_filter(std::string_view text, std::string_view filter);

}  // namespace shardscope::viewer::model
