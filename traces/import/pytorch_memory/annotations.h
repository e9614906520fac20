// The external annotations of a memory snapshot: named ranges of the program's threads, recorded only as
// starts and ends. An end closes the latest open start of its name. Half-open: [start, end). Times in us.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace shardscope::traces::importer {

struct AnnotationEdge {
    std::int64_t time_us = 0;
    bool start = false;
    std::string_view name;  // a view into the value tree
};

class AnnotationList {
  public:
    using Position = std::vector<AnnotationEdge>::const_iterator;

    void add(std::int64_t time_us, bool start, std::string_view name) {
        edges_.push_back({time_us, start, name});
    }
    void sort();  // by time, stable

    Position begin() const { return edges_.begin(); }
    Position end() const { return edges_.end(); }
    std::optional<std::int64_t> first_us() const;
    std::int64_t last_us() const { return edges_.empty() ? 0 : edges_.back().time_us; }

    // Visits each range once. A range without an end ends at `end_us`, one without a start began with the
    // first annotation.
    void for_each_range(std::int64_t end_us,
                        const std::function<void(std::int64_t from_us, std::int64_t to_us,
                                                 std::string_view name)>& visit) const;

  private:
    std::vector<AnnotationEdge> edges_;
};

// The annotations that are open at a time, the innermost (the latest to start) last.
class OpenAnnotations {
  public:
    // Processes all edges up to and including `time_us`.
    void advance(AnnotationList::Position& next, AnnotationList::Position end, std::int64_t time_us);

    std::size_t size() const { return open_.size(); }
    std::string_view operator[](std::size_t i) const { return open_[i]; }

  private:
    std::vector<std::string_view> open_;
};

}  // namespace shardscope::traces::importer
