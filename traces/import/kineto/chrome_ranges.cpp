#include "traces/import/kineto/chrome_ranges.h"

#include <algorithm>

#include <fmt/core.h>

namespace shardscope::traces::importer {

// An id is unique within its category; a local id2, only within its process as well.
std::string ChromeRanges::key_of(const TraceEvent& event, std::int64_t thread, bool asynchronous) {
    if (!asynchronous) return {};
    const JsonScalar id = event[EventKey::id], id2 = event[EventKey::id2];
    const bool local = !id && id2 && id2.text.find("local") != std::string_view::npos;
    return fmt::format("{}\n{}\n{}", event.text(EventKey::cat), id ? id.text : id2.text,
                       local ? thread >> 24 : 0);
}

void ChromeRanges::begin(const TraceEvent& event, std::int64_t time, std::int64_t thread, bool asynchronous) {
    auto& open = asynchronous ? asynchronous_[key_of(event, thread, true)] : stacks_[thread];
    open.push_back({.start = time,
                    .thread = thread,
                    .text = sink_.intern(event.text(EventKey::name)),
                    .domain = sink_.intern(event.text(EventKey::cat))});
}

schema::RangeRow ChromeRanges::row_of(const Open& open, std::int64_t end, std::int64_t end_thread,
                                      bool asynchronous) const {
    schema::RangeRow row{.start = open.start, .end = std::max(end, open.start)};
    row.event_type = asynchronous ? schema::kNvtxStartEnd : schema::kNvtxPushPop;
    row.text = open.text;
    row.domain = open.domain;
    row.global_tid = open.thread;
    if (asynchronous && end_thread != open.thread) row.end_global_tid = end_thread;
    return row;
}

void ChromeRanges::add(Open& open, std::int64_t end, std::int64_t end_thread, bool asynchronous) {
    sink_.add(row_of(open, end, end_thread, asynchronous));
    for (const schema::RangeRow& inner : open.held) sink_.add(inner);
    open.held.clear();
}

void ChromeRanges::end(const TraceEvent& event, std::int64_t time, std::int64_t thread, bool asynchronous) {
    std::vector<Open>* open = nullptr;
    if (asynchronous) {
        const auto it = asynchronous_.find(key_of(event, thread, true));
        if (it != asynchronous_.end()) open = &it->second;
    } else if (const auto it = stacks_.find(thread); it != stacks_.end()) {
        open = &it->second;
    }
    if (open == nullptr || open->empty()) {
        ++lonely_ends_;
        return;
    }
    auto which = open->end() - 1;
    if (const std::string_view name = event.text(EventKey::name); asynchronous && !name.empty()) {
        const schema::StringId text = sink_.intern(name);
        const auto same =
            std::find_if(open->rbegin(), open->rend(), [&](const Open& o) { return o.text == text; });
        if (same != open->rend()) which = same.base() - 1;
    }
    // For ranges with equal times the order of the rows decides the nesting: a range that began together with
    // the range around it is held until that one ends.
    if (!asynchronous && which != open->begin() && (which - 1)->start == which->start) {
        std::vector<schema::RangeRow>& held = (which - 1)->held;
        held.push_back(row_of(*which, time, thread, false));
        held.insert(held.end(), which->held.begin(), which->held.end());
    } else {
        add(*which, time, thread, asynchronous);
    }
    open->erase(which);
}

std::uint64_t ChromeRanges::finish(std::int64_t last_time) {
    std::uint64_t count = 0;
    const auto close = [&](auto& lists, bool asynchronous) {
        for (auto& [key, open] : lists) {
            for (Open& range : open) add(range, last_time, range.thread, asynchronous);
            count += open.size();
        }
        lists.clear();
    };
    close(stacks_, false);
    close(asynchronous_, true);
    return count;
}

}  // namespace shardscope::traces::importer
