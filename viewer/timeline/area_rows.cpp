// See area_rows.h.
#include "viewer/timeline/area_rows.h"

#include <set>

namespace shardscope::viewer::timeline {
namespace {

void put(std::vector<bool>& rows, std::size_t at) {
    if (at < rows.size()) rows[at] = true;
}

}  // namespace

std::vector<std::string> keys_of_rows(const RowLayout& layout, const std::vector<std::string>& track_keys,
                                      std::size_t first, std::size_t last) {
    std::set<int> tracks;
    const auto take = [&](bool any_heading) {
        for (std::size_t r = first; r <= last && r < layout.rows.size(); ++r) {
            const Row& row = layout.rows[r];
            if (row.kind == Row::Kind::lane) tracks.insert(row.track);
            if (row.kind != Row::Kind::group) continue;
            const RowGroup& group = layout.groups[static_cast<std::size_t>(row.group)];
            if (group.collapsed || any_heading) tracks.insert(group.tracks.begin(), group.tracks.end());
        }
    };
    take(false);
    if (tracks.empty()) take(true);
    std::vector<std::string> keys;
    keys.reserve(tracks.size());
    for (const int track : tracks) keys.push_back(track_keys[static_cast<std::size_t>(track)]);
    return keys;
}

ResolvedArea resolve(const model::MarkedArea& marked, const traces::store::Trace& trace, const Tracks& tracks,
                     const std::vector<std::string>& track_keys) {
    ResolvedArea resolved;
    traces::analysis::Area& area = resolved.area;
    const std::set<std::string> wanted(marked.rows.begin(), marked.rows.end());
    resolved.tracks.resize(tracks.tracks.size());
    area.streams.resize(trace.streams.size());
    area.threads.resize(trace.threads.size());
    area.marks.resize(trace.threads.size());
    area.waits.resize(trace.ranks.size());
    for (std::size_t t = 0; t < tracks.tracks.size(); ++t) {
        const std::string& key = track_keys[t];
        if (!wanted.empty() && !wanted.contains(key) && !wanted.contains(key.substr(0, key.find('/'))))
            continue;
        const Track& track = tracks.tracks[t];
        if (track.kind == Track::Kind::result) continue;  // shows events of other rows again
        // Of all rows, the streams hold the joined row's events.
        if (wanted.empty() && track.kind == Track::Kind::collectives) continue;
        resolved.tracks[t] = true;
        ++resolved.rows;
        switch (track.kind) {
            case Track::Kind::collectives:
                area.groups.push_back(track.group);
                break;
            case Track::Kind::stream:
                put(area.streams, track.stream.at());
                break;
            case Track::Kind::thread:
                put(area.threads, static_cast<std::size_t>(track.thread));
                break;
            case Track::Kind::marks:
                put(area.marks, static_cast<std::size_t>(track.thread));
                break;
            case Track::Kind::waits:
                put(area.waits, track.rank.at());
                break;
            case Track::Kind::result:
                break;
        }
    }
    area.time = {marked.time.from, marked.time.to};
    // A name that the trace does not have: that of no event.
    if (!marked.name.empty())
        area.name = trace.strings.find(marked.name).value_or(static_cast<traces::schema::StringId>(-1));
    return resolved;
}

const ResolvedArea* KeptArea::update(const std::optional<model::MarkedArea>& marked,
                                     const traces::store::Trace& trace,
                                     const std::shared_ptr<const Tracks>& tracks) {
    if (tracks == nullptr) return nullptr;
    const bool others = tracks != tracks_;
    if (others) {
        tracks_ = tracks;
        keys_ = timeline::track_keys(trace, *tracks);
    }
    if (others || marked != marked_) {
        marked_ = marked;
        ++serial_;
        resolved_ = marked ? resolve(*marked, trace, *tracks, keys_) : ResolvedArea{};
    }
    return marked_ ? &resolved_ : nullptr;
}

}  // namespace shardscope::viewer::timeline
