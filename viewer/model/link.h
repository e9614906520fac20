// A link to a place in a trace, as text to be sent to somebody who has the same trace:
//   shardscope:1?trace=run.sqlite&run=...&id=...&events=2677&panel=timeline&visible=1000,9000&event=device...
// The values are percent-encoded (RFC 3986). What has its default value is left out; rows are, too, since
// everybody arranges them for themselves. Pure; any thread. No Dear ImGui.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/model/identity.h"
#include "viewer/model/place.h"

namespace shardscope::viewer::model {

inline constexpr std::string_view kLinkScheme = "shardscope:";
inline constexpr std::size_t kLongestLink = std::size_t{16} << 10;  // characters

struct Link {
    std::string trace;  // the file's name, to tell the user
    TraceIdentity identity;
    View view;
    bool operator==(const Link&) const = default;
};

// The list of fields of all parts, in one.
template <IsOrIsConst<Link> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [trace, identity, view] = value;
    auto& [run, id, events] = identity;
    auto& [panel, color_by, content, place] = view;
    auto& [visible, limit, lit, cursor, area, rows, rank, selected, module, unit] = place;
    auto& [kind, start, name, event_rank, detail] = selected;
    static_cast<void>(rows);
    visit("trace", trace);
    visit("run", run);
    visit("id", id);
    visit("events", events);
    visit("panel", panel);
    visit("color_by", color_by);
    visit("content", content);
    visit("visible", visible);
    visit("limit", limit);
    visit("lit", lit);
    visit("cursor_ns", cursor);
    visit("area", area);
    visit("rank", rank);
    visit("module", module);
    visit("unit", unit);
    visit("event", kind);
    visit("event_ns", start);
    visit("event_name", name);
    visit("event_rank", event_rank);
    visit("event_detail", detail);
}

std::string link_text(const Link& link);

struct ReadLink {
    Link link;
    std::vector<std::string> left_out;  // keys of values that cannot be read
};
// Throws std::runtime_error with the reason as the end of a sentence if the text is not a link of this
// version.
ReadLink parse_link(std::string_view text);

}  // namespace shardscope::viewer::model
