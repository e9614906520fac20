// Which part of a trace a slice keeps: the time windows of each owner of events, and the owner of each thread
// and device.
//
// An owner is a rank, or a process without a rank. Host threads belong to the rank that they work for; a
// thread that works for none belongs to the lowest rank of its process, and so does a device without a rank.
// Rows without an owner (a counter without a rank) and processes without a rank are kept if no ranks are
// chosen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardscope::traces::merge {

struct Part;

struct SliceChoice {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranks;  // both included; empty: all
    std::optional<std::int64_t> first_step, last_step;         // both included
    std::optional<std::int64_t> from_ns, to_ns;                // half-open

    bool cuts_time() const { return first_step || last_step || from_ns || to_ns; }
    bool has_rank(std::int64_t rank) const;
    bool has_step(std::int64_t step) const;
};

struct Window {
    std::int64_t from = INT64_MIN, to = INT64_MAX;  // half-open
    bool holds(std::int64_t time) const { return time >= from && time < to; }
    // Whether an event from `start` to `end` overlaps the window; an instant counts if it is inside.
    bool meets(std::int64_t start, std::int64_t end) const {
        return start < to && (end > from || (end == start && start >= from));
    }
};

class SliceWindows {
  public:
    // Throws StoreError if the choice matches nothing: no such rank, no such step.
    SliceWindows(Part& part, const SliceChoice& choice);

    // An owner's windows in order of time; empty if the owner is not in the slice.
    using Windows = std::vector<Window>;
    const Windows& of_rank(std::int64_t rank) const;
    const Windows& of_thread(std::int64_t thread) const;
    const Windows& of_device(std::int64_t device, std::int64_t process) const;
    const Windows& of_process(std::int64_t process) const;
    const Windows& of_nobody() const;
    // Whether an owner in the slice belongs to the process, given in its serialized form or as a pid.
    bool has_process(std::int64_t process) const { return processes_.contains(process); }
    bool has_pid(std::int64_t pid) const;

    // The smallest window that contains all windows.
    Window hull() const { return hull_; }
    const std::set<std::int64_t>& ranks() const { return ranks_; }
    // The steps of the slice; empty if it has all.
    const std::set<std::int64_t>& steps() const { return steps_; }

  private:
    void choose_ranks(Part& part, const SliceChoice& choice);
    void choose_steps(Part& part, const SliceChoice& choice);
    void index_owners(const Part& part, const SliceChoice& choice);

    Windows none_, nobody_;
    Window hull_;
    std::set<std::int64_t> ranks_, steps_, processes_;
    std::map<std::int64_t, Windows> by_rank_, by_process_;  // by_process_: processes without a rank
    std::map<std::int64_t, std::int64_t> rank_of_thread_, rank_of_process_;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>
        rank_of_device_;  // (device, process or 0 for any) -> rank
};

bool holds(const SliceWindows::Windows& windows, std::int64_t time);
bool meets(const SliceWindows::Windows& windows, std::int64_t start, std::int64_t end);

}  // namespace shardscope::traces::merge
