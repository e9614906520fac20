#include "traces/import/pytorch_memory/annotations.h"

#include <algorithm>

#include "traces/schema/sort_rows.h"

namespace shardscope::traces::importer {
namespace {

// Limits how many ranges that never end are searched at every end; no program nests deeper.
constexpr std::size_t kMostOpen = 1000;

}  // namespace

void AnnotationList::sort() {
    schema::sort_rows(edges_,
                      [](const AnnotationEdge& a, const AnnotationEdge& b) { return a.time_us < b.time_us; });
}

std::optional<std::int64_t> AnnotationList::first_us() const {
    return edges_.empty() ? std::nullopt : std::optional(edges_.front().time_us);
}

void AnnotationList::for_each_range(
    std::int64_t end_us,
    const std::function<void(std::int64_t, std::int64_t, std::string_view)>& visit) const {
    std::vector<const AnnotationEdge*> open;
    for (const AnnotationEdge& edge : edges_) {
        if (edge.start) {
            if (open.size() == kMostOpen) {
                visit(open.front()->time_us, end_us, open.front()->name);
                open.erase(open.begin());
            }
            open.push_back(&edge);
            continue;
        }
        const auto at = std::find_if(open.rbegin(), open.rend(),
                                     [&](const AnnotationEdge* o) { return o->name == edge.name; });
        visit(at == open.rend() ? edges_.front().time_us : (*at)->time_us, edge.time_us, edge.name);
        if (at != open.rend()) open.erase(std::next(at).base());
    }
    for (const AnnotationEdge* edge : open) visit(edge->time_us, std::max(end_us, edge->time_us), edge->name);
}

void OpenAnnotations::advance(AnnotationList::Position& next, AnnotationList::Position end,
                              std::int64_t time_us) {
    for (; next != end && next->time_us <= time_us; ++next) {
        if (next->start) {
            if (open_.size() == kMostOpen) open_.erase(open_.begin());
            open_.push_back(next->name);
            continue;
        }
        const auto at = std::find(open_.rbegin(), open_.rend(), next->name);
        if (at != open_.rend()) open_.erase(std::next(at).base());
    }
}

}  // namespace shardscope::traces::importer
