// See items.h. Two frames are kept: the one being drawn, and the previous one, complete, which answers
// queries.
#include "viewer/draw/items.h"

#include <map>
#include <utility>

namespace shardscope::viewer::draw::items {
namespace {

using Named = std::map<std::string, Item, std::less<>>;

struct State {
    bool on = false;
    std::string prefix;
    Named drawing, drawn;
};

State& state() {
    static State kState;
    return kState;
}

}  // namespace

void keep(bool on) {
    state() = {};
    state().on = on;
}

bool kept() {
    return state().on;
}

void set_prefix(std::string prefix) {
    state().prefix = std::move(prefix);
}

void begin_frame() {
    if (!kept()) return;
    state().drawn = std::exchange(state().drawing, {});
}

void mark(std::string_view name, std::string_view text) {
    if (kept()) place(name, ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), text);
}

void place(std::string_view name, ImVec2 min, ImVec2 max, std::string_view text) {
    if (!kept()) return;
    state().drawing.insert_or_assign(state().prefix + std::string(name),
                                     Item{min, max, std::string(text), ImGui::IsRectVisible(min, max)});
}

void value(std::string_view name, std::string_view text) {
    const ImVec2 at = kept() ? ImGui::GetCursorScreenPos() : ImVec2();
    place(name, at, at, text);
}

std::optional<Item> find(std::string_view name) {
    const auto found = state().drawn.find(name);
    return found == state().drawn.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const auto& [name, item] : state().drawn) all.push_back(name);
    return all;
}

}  // namespace shardscope::viewer::draw::items
