// See rows.h.
#include "viewer/timeline/rows.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include <fmt/core.h>

#include "traces/lanes/counter_words.h"
#include "traces/schema/sort_rows.h"

namespace shardscope::viewer::timeline {
namespace {

// A row before it has a place on the page.
struct Candidate {
    RowEntry entry;
    Row row;
    int lanes = 1;  // number of lines
};
struct CandidateGroup {
    RowGroup group;
    std::vector<Candidate> rows;
};

std::string rank_key(const traces::store::Trace& trace, traces::store::RankIndex rank) {
    return rank.known() ? fmt::format("rank {}", trace.ranks[rank.at()].number) : "other";
}

// The thread's number, or its index if the trace does not contain it.
std::int64_t thread_number(const traces::store::Trace& trace, int thread) {
    const auto at = static_cast<std::size_t>(thread);
    return at < trace.threads.size() ? trace.threads[at].global_tid & 0xFFFFFF : thread;
}

// Identifies the track among those of its rank.
std::string track_key(const traces::store::Trace& trace, const Track& track) {
    const std::string rank = rank_key(trace, track.rank);
    switch (track.kind) {
        case Track::Kind::collectives:
            return "collectives/" + track.label;
        case Track::Kind::stream:
            return fmt::format("{}/stream {}", rank,
                               track.stream.at() < trace.streams.size() ? trace.streams[track.stream.at()].id
                                                                        : track.stream.value);
        case Track::Kind::thread:
            return fmt::format("{}/thread {}", rank, thread_number(trace, track.thread));
        case Track::Kind::marks:
            return fmt::format("{}/marks {}", rank, thread_number(trace, track.thread));
        case Track::Kind::result:
            return "result/" + track.label;
        case Track::Kind::waits:
            break;
    }
    return rank + "/waiting";
}

// Two tracks may have equal names (two streams of a damaged file), but their keys must differ.
class UniqueKeys {
  public:
    std::string operator()(std::string key) {
        if (const int before = seen_[key]++; before > 0) key += fmt::format(" ({})", before + 1);
        return key;
    }

  private:
    std::unordered_map<std::string, int> seen_;
};

class Rows {
  public:
    Rows(const traces::store::Trace& trace, const Tracks& tracks, const model::RowArrangement& arrangement)
        : trace_(trace),
          tracks_(tracks),
          by_kind_(arrangement.grouping == model::RowArrangement::Grouping::kind) {}

    std::vector<CandidateGroup> groups() {
        result();
        if (!by_kind_) {
            joined();
            for (std::size_t r = 0; r < trace_.ranks.size(); ++r) group_of_rank(traces::store::RankIndex(r));
        }
        memory();
        for (std::size_t t = 0; t < tracks_.tracks.size(); ++t) track(t);
        counters();
        std::erase_if(groups_,
                      [](const CandidateGroup& g) { return g.rows.empty() && !g.group.rank.known(); });
        return std::move(groups_);
    }

  private:
    CandidateGroup& group(const std::string& key, const std::string& label,
                          traces::store::RankIndex rank = {}) {
        const auto [it, is_new] = index_.try_emplace(key, groups_.size());
        if (is_new) {
            groups_.emplace_back();
            groups_.back().group.key = key;
            groups_.back().group.label = label;
            groups_.back().group.rank = rank;
        }
        return groups_[it->second];
    }
    CandidateGroup& result() { return group("result", "Query result"); }
    CandidateGroup& joined() { return group("collectives", "Collectives"); }
    CandidateGroup& group_of_rank(traces::store::RankIndex rank) {
        if (!rank.known()) return group("other", "Other threads");
        const traces::store::Rank& r = trace_.ranks[rank.at()];
        CandidateGroup& made = group(rank_key(trace_, rank), fmt::format("Rank {}", r.number), rank);
        made.group.note = r.device_name;
        return made;
    }
    CandidateGroup& group_of_track(const Track& track) {
        if (track.kind == Track::Kind::result) return result();
        if (track.kind == Track::Kind::collectives) return joined();
        if (!by_kind_) return group_of_rank(track.rank);
        switch (track.kind) {
            case Track::Kind::stream:
                switch (track.work) {
                    case traces::store::DeviceKind::kernel:
                        return group("kind kernel", "Kernel streams");
                    case traces::store::DeviceKind::memcpy:
                        return group("kind memcpy", "Memcpy streams");
                    case traces::store::DeviceKind::memset:
                        return group("kind memset", "Memset streams");
                    case traces::store::DeviceKind::communication:
                        return group("kind communication", "Communication streams");
                }
                break;
            case Track::Kind::waits:
                return group("kind waiting", "Waiting for devices");
            case Track::Kind::marks:
                return group("kind marks", "Marks");
            default:
                break;
        }
        return group("kind thread", "Host threads");
    }
    // When grouped by kind, a row's label includes its rank.
    std::string label(traces::store::RankIndex rank, const std::string& plain) const {
        if (!by_kind_ || !rank.known()) return plain;
        return fmt::format("rank {} {}", trace_.ranks[rank.at()].number, plain);
    }
    void put(CandidateGroup& to, Candidate candidate, std::string key, std::string text) {
        candidate.entry.key = unique_(std::move(key));
        candidate.entry.label = std::move(text);
        to.rows.push_back(std::move(candidate));
    }

    void memory() {
        for (std::size_t r = 0; r < trace_.ranks.size() && r < tracks_.has_memory.size(); ++r) {
            if (!tracks_.has_memory[r]) continue;
            const traces::store::RankIndex rank(r);
            Candidate c;
            c.row = {.kind = Row::Kind::memory, .rank = rank};
            put(by_kind_ ? group("kind memory", "Memory") : group_of_rank(rank), std::move(c),
                rank_key(trace_, rank) + "/memory", label(rank, "allocated"));
        }
    }
    void track(std::size_t t) {
        const Track& track = tracks_.tracks[t];
        CandidateGroup& to = group_of_track(track);
        to.group.tracks.push_back(static_cast<int>(t));
        Candidate c;
        c.row = {.kind = Row::Kind::lane, .rank = track.rank, .track = static_cast<int>(t)};
        c.lanes = static_cast<int>(track.lanes.size());
        put(to, std::move(c), track_key(trace_, track), label(track.rank, track.label));
    }
    // A counter of no rank is its host's, or of the processes that are no rank's.
    std::string key_of_counters(const CounterTrack& counter) const {
        if (counter.rank.known()) return rank_key(trace_, counter.rank);
        if (counter.metric) return "metrics";
        if (counter.host == traces::schema::StringId::empty) return "processes";
        return "host " + std::string(trace_.strings[counter.host]);
    }
    CandidateGroup& group_of_counter(const CounterTrack& counter) {
        if (counter.rank.known()) return group_of_rank(counter.rank);
        const std::string key = key_of_counters(counter);
        if (counter.metric) return group(key, "Metrics");
        if (counter.host == traces::schema::StringId::empty) return group(key, "Other processes");
        return group(key, "Host " + std::string(trace_.strings[counter.host]));
    }
    void counters() {
        for (std::size_t i = 0; i < tracks_.counters.size(); ++i) {
            const CounterTrack& counter = tracks_.counters[i];
            const std::string name(trace_.strings[counter.name]), host(trace_.strings[counter.host]);
            Candidate c;
            c.row = {.kind = Row::Kind::counter, .rank = counter.rank, .track = static_cast<int>(i)};
            std::string key = key_of_counters(counter) + "/counter " + name;
            if (!counter.rank.known() && counter.device >= 0) key += fmt::format(" {}", counter.device);
            std::string text = label(counter.rank, traces::lanes::counter_words(name, counter.device).label);
            if (by_kind_ && !counter.rank.known() && !host.empty()) text = host + " " + text;
            put(by_kind_ ? group("kind counter", "Counters") : group_of_counter(counter), std::move(c),
                std::move(key), std::move(text));
        }
    }

    const traces::store::Trace& trace_;
    const Tracks& tracks_;
    bool by_kind_;
    std::vector<CandidateGroup> groups_;
    std::unordered_map<std::string, std::size_t> index_;
    UniqueKeys unique_;
};

// The user's order: rows that were moved come first.
class Order {
  public:
    explicit Order(const std::vector<std::string>& keys) {
        for (std::size_t i = 0; i < keys.size(); ++i) place_.try_emplace(keys[i], i);
    }
    std::size_t operator()(const std::string& key) const {
        const auto it = place_.find(key);
        return it == place_.end() ? std::numeric_limits<std::size_t>::max() : it->second;
    }

  private:
    std::unordered_map<std::string, std::size_t> place_;
};

class Page {
  public:
    Page(RowLayout& layout, const RowHeights& heights) : layout_(layout), heights_(heights) {}

    void heading(int group) {
        Row row{.kind = Row::Kind::group, .group = group};
        row.rank = layout_.groups[static_cast<std::size_t>(group)].rank;
        put(row, heights_.rank);
    }
    void lines(const Candidate& c, int group, bool pinned) {
        const int entry = static_cast<int>(layout_.entries.size());
        layout_.entries.push_back(c.entry);
        layout_.entries.back().group = group;
        layout_.entries.back().pinned = pinned;
        Row row = c.row;
        row.entry = entry;
        row.group = group;
        row.pinned = pinned;
        const float height = row.kind == Row::Kind::memory    ? heights_.memory
                             : row.kind == Row::Kind::counter ? heights_.counter
                                                              : heights_.lane;
        for (int l = 0; l < c.lanes; ++l) {
            row.lane = l;
            row.first_of_track = l == 0;
            row.last_of_track = l + 1 == c.lanes;
            put(row, height);
        }
        layout_.height += heights_.gap;
    }

  private:
    void put(Row row, float height) {
        row.y = layout_.height;
        row.height = height;
        layout_.rows.push_back(row);
        layout_.height += height;
    }
    RowLayout& layout_;
    const RowHeights& heights_;
};

bool is_filtered_out(const model::RowArrangement& a, const CandidateGroup& group, const Candidate& c) {
    return !a.filter.empty() &&
           !model::matches_filter(c.entry.label + " " + group.group.label + " " + c.entry.key, a.filter);
}

}  // namespace

std::vector<std::string> track_keys(const traces::store::Trace& trace, const Tracks& tracks) {
    std::vector<std::string> keys;
    UniqueKeys unique;
    for (const Track& track : tracks.tracks) keys.push_back(unique(track_key(trace, track)));
    return keys;
}

RowLayout layout_rows(const traces::store::Trace& trace, const Tracks& tracks,
                      const model::RowArrangement& arrangement, const RowHeights& heights) {
    RowLayout layout;
    std::vector<CandidateGroup> groups = Rows(trace, tracks, arrangement).groups();
    const Order order(arrangement.order);
    traces::schema::sort_rows(groups, [&](const CandidateGroup& a, const CandidateGroup& b) {
        return order(a.group.key) < order(b.group.key);
    });
    for (CandidateGroup& group : groups) {
        traces::schema::sort_rows(group.rows, [&](const Candidate& a, const Candidate& b) {
            return order(a.entry.key) < order(b.entry.key);
        });
        group.group.collapsed = arrangement.collapsed.contains(group.group.key);
        layout.groups.push_back(group.group);
    }
    Page page(layout, heights);
    for (const std::string& key : arrangement.pinned) {
        if (arrangement.hidden.contains(key)) continue;
        for (std::size_t g = 0; g < groups.size(); ++g) {
            for (const Candidate& c : groups[g].rows) {
                if (c.entry.key == key) page.lines(c, static_cast<int>(g), true);
            }
        }
    }
    layout.pinned_height = layout.height;
    layout.first_scrolled = layout.rows.size();
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const CandidateGroup& group = groups[g];
        if (arrangement.hidden.contains(group.group.key)) continue;
        std::vector<const Candidate*> kept;
        std::size_t left_out = 0;
        for (const Candidate& c : group.rows) {
            if (arrangement.hidden.contains(c.entry.key)) continue;
            if (is_filtered_out(arrangement, group, c)) {
                ++left_out;
            } else if (!arrangement.is_pinned(c.entry.key)) {
                kept.push_back(&c);
            }
        }
        layout.filtered_out += left_out;
        if (kept.empty() && left_out > 0) continue;
        page.heading(static_cast<int>(g));
        if (group.group.collapsed) continue;
        for (const Candidate* c : kept) page.lines(*c, static_cast<int>(g), false);
    }
    for (std::size_t i = 0; i < layout.rows.size(); ++i) {
        const Row& row = layout.rows[i];
        if (row.kind == Row::Kind::lane) layout.lane_rows_.push_back({{row.track, row.lane}, i});
    }
    std::sort(layout.lane_rows_.begin(), layout.lane_rows_.end());
    return layout;
}

void show_track(model::RowArrangement& arrangement, const traces::store::Trace& trace, const Tracks& tracks,
                int track) {
    for (const CandidateGroup& group : Rows(trace, tracks, arrangement).groups()) {
        for (const Candidate& c : group.rows) {
            if (c.row.kind != Row::Kind::lane || c.row.track != track) continue;
            arrangement.hidden.erase(c.entry.key);
            if (arrangement.is_pinned(c.entry.key)) return;  // shown whatever its group's state is
            arrangement.hidden.erase(group.group.key);
            arrangement.collapsed.erase(group.group.key);
            if (is_filtered_out(arrangement, group, c)) arrangement.filter.clear();
            return;
        }
    }
}

RowLayout::Span RowLayout::between(float top, float bottom) const {
    const auto first = std::partition_point(rows.begin(), rows.end(),
                                            [top](const Row& row) { return row.y + row.height <= top; });
    const auto last =
        std::partition_point(first, rows.end(), [bottom](const Row& row) { return row.y < bottom; });
    return {static_cast<std::size_t>(first - rows.begin()), static_cast<std::size_t>(last - rows.begin())};
}

const Row* RowLayout::at(float y) const {
    const auto row =
        std::partition_point(rows.begin(), rows.end(), [y](const Row& r) { return r.y + r.height <= y; });
    return row != rows.end() && row->y <= y ? &*row : nullptr;
}

const Row* RowLayout::of_lane(int track, int lane) const {
    const auto it = std::lower_bound(
        lane_rows_.begin(), lane_rows_.end(), std::pair{track, lane},
        [](const auto& known, const std::pair<int, int>& sought) { return known.first < sought; });
    return it != lane_rows_.end() && it->first == std::pair{track, lane} ? &rows[it->second] : nullptr;
}

RowLayout::Span RowLayout::pinned(float window) const {
    Span span = between(0, std::min(window, pinned_height));
    span.last = std::min(span.last, first_scrolled);
    return span;
}

RowLayout::Span RowLayout::scrolled(float scroll, float window) const {
    if (window <= pinned_height) return {first_scrolled, first_scrolled};
    Span span = between(scroll + pinned_height, scroll + window);
    span.first = std::max(span.first, first_scrolled);
    span.last = std::max(span.last, span.first);
    return span;
}

std::vector<const Row*> RowLayout::shown(float scroll, float window) const {
    std::vector<const Row*> all;
    for (const Span span : {pinned(window), scrolled(scroll, window)}) {
        for (std::size_t i = span.first; i < span.last; ++i) all.push_back(&rows[i]);
    }
    return all;
}

std::vector<std::string> RowLayout::siblings(const std::string& key) const {
    std::vector<std::string> keys;
    const auto entry =
        std::find_if(entries.begin(), entries.end(), [&](const RowEntry& e) { return e.key == key; });
    if (entry == entries.end()) {
        for (const RowGroup& group : groups) keys.push_back(group.key);
        return keys;
    }
    for (const RowEntry& other : entries) {
        if (other.group == entry->group && other.pinned == entry->pinned) keys.push_back(other.key);
    }
    return keys;
}

const RowLayout& KeptLayout::update(const traces::store::Trace& trace,
                                    const std::shared_ptr<const Tracks>& tracks,
                                    const model::RowArrangement& arrangement, const RowHeights& heights) {
    if (tracks_ != tracks || !(arrangement_ == arrangement) || !(heights_ == heights)) {
        layout_ = layout_rows(trace, *tracks, arrangement, heights);
        tracks_ = tracks;
        arrangement_ = arrangement;
        heights_ = heights;
    }
    return layout_;
}

}  // namespace shardscope::viewer::timeline
