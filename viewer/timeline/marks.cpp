// See marks.h.
#include "viewer/timeline/marks.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"

namespace shardscope::viewer {
namespace {

bool earlier(const Mark& a, const Mark& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
}

}  // namespace

MarkBook::MarkBook(std::vector<Mark> marks) : marks_(std::move(marks)) {
    for (Mark& mark : marks_) mark.to = std::max(mark.from, mark.to);
    traces::sort_rows(marks_, earlier);
}

std::size_t MarkBook::add(Mark mark) {
    mark.to = std::max(mark.from, mark.to);
    for (int n = 1; mark.text.empty(); ++n) {
        std::string name = fmt::format("{} {}", mark.is_range() ? "range" : "mark", n);
        if (std::none_of(marks_.begin(), marks_.end(), [&](const Mark& m) { return m.text == name; }))
            mark.text = std::move(name);
    }
    const auto at = std::upper_bound(marks_.begin(), marks_.end(), mark, earlier);
    const auto index = static_cast<std::size_t>(at - marks_.begin());
    marks_.insert(at, std::move(mark));
    return index;
}

void MarkBook::rename(std::size_t index, const std::string& text) {
    if (index < marks_.size() && !text.empty()) marks_[index].text = text;
}

void MarkBook::remove(std::size_t index) {
    if (index < marks_.size()) marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(index));
}

std::optional<std::size_t> MarkBook::after(std::int64_t time) const {
    const auto at =
        std::partition_point(marks_.begin(), marks_.end(), [time](const Mark& m) { return m.from <= time; });
    return at == marks_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - marks_.begin()));
}

std::optional<std::size_t> MarkBook::before(std::int64_t time) const {
    const auto at =
        std::partition_point(marks_.begin(), marks_.end(), [time](const Mark& m) { return m.from < time; });
    return at == marks_.begin() ? std::nullopt
                                : std::optional(static_cast<std::size_t>(at - marks_.begin()) - 1);
}

std::vector<std::int64_t> MarkBook::edges() const {
    std::vector<std::int64_t> edges;
    for (const Mark& mark : marks_) {
        edges.push_back(mark.from);
        if (mark.is_range()) edges.push_back(mark.to);
    }
    return edges;
}

}  // namespace shardscope::viewer
