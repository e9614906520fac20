// See panes.h.
#include "viewer/app/panes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/core.h>

namespace shardscope::viewer::app {
namespace {

constexpr double kLeast = 0.12;  // of the area that two parts share
constexpr int kDeepest = 8;      // parentheses in a text

template <class Node>
void collect(Node& node, std::vector<Node*>& leaves) {
    if (node.parts.empty()) leaves.push_back(&node);
    for (Node& part : node.parts) collect(part, leaves);
}

// Both parts of an area, and the bar between them.
struct Halves {
    PaneRect first, bar, second;
};
Halves halved(const PaneRect& whole, Split split, double share, float gap) {
    Halves halves{whole, whole, whole};
    const bool beside = split == Split::beside;
    const float length = std::max(0.0F, (beside ? whole.width : whole.height) - gap);
    const float first = std::floor(length * static_cast<float>(share));
    const auto cut = [&](PaneRect& rect, float from, float to) {
        (beside ? rect.x : rect.y) += from;
        (beside ? rect.width : rect.height) = to - from;
    };
    cut(halves.first, 0, first);
    cut(halves.bar, first, first + gap);
    cut(halves.second, first + gap, length + gap);
    return halves;
}

template <class Node>
std::string text_of(const Node& node, bool inside) {
    if (node.parts.empty()) return node.panel;
    const int percent = static_cast<int>(std::lround(node.share * 100));
    const std::string text =
        fmt::format("{} {}{} {}", text_of(node.parts[0], true), node.split == Split::beside ? '|' : '/',
                    percent == 50 ? "" : std::to_string(percent), text_of(node.parts[1], true));
    return inside ? "(" + text + ")" : text;
}

void skip_blanks(std::string_view& text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
}

bool takes(std::string_view& text, char letter) {
    skip_blanks(text);
    if (!text.starts_with(letter)) return false;
    text.remove_prefix(1);
    return true;
}

}  // namespace

std::vector<const Panes::Node*> Panes::leaves() const {
    std::vector<const Node*> all;
    collect(root_, all);
    return all;
}

std::vector<Panes::Node*> Panes::leaves() {
    std::vector<Node*> all;
    collect(root_, all);
    return all;
}

// From the root to the leaf, both included.
std::vector<Panes::Node*> Panes::path_to(Node& root, const Node* leaf) {
    if (&root == leaf) return {&root};
    for (Node& part : root.parts) {
        std::vector<Node*> path = path_to(part, leaf);
        if (path.empty()) continue;
        path.insert(path.begin(), &root);
        return path;
    }
    return {};
}

std::optional<std::size_t> Panes::pane_of(std::string_view panel) const {
    const auto all = leaves();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Node* n) { return n->panel == panel; });
    return found == all.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - all.begin()));
}

void Panes::set_focus(std::size_t pane) {
    focus_ = std::min(pane, count() - 1);
}

void Panes::step_focus(int step) {
    focus_ = (focus_ + (step > 0 ? 1 : count() - 1)) % count();
}

void Panes::show(std::string_view panel) {
    if (const auto there = pane_of(panel)) {
        focus_ = *there;
    } else {
        leaves()[focus_]->panel = panel;
    }
}

void Panes::put(std::size_t pane, std::string_view panel) {
    const auto all = leaves();
    if (const auto there = pane_of(panel)) std::swap(all[*there]->panel, all[pane]->panel);
    all[pane]->panel = panel;
}

void Panes::split(Split how, std::string panel) {
    if (count() == kMost) return;
    Node& leaf = *leaves()[focus_];
    Node first{Split::none, 0.5, std::move(leaf.panel), {}}, second{Split::none, 0.5, std::move(panel), {}};
    leaf = {how, 0.5, {}, {std::move(first), std::move(second)}};
    ++focus_;
    alone_ = false;
}

void Panes::close() {
    const std::vector<Node*> path = path_to(root_, leaves()[focus_]);
    if (path.size() < 2) return;
    Node& parent = *path[path.size() - 2];
    const bool was_first = &parent.parts[0] == path.back();
    Node rest = std::move(parent.parts[was_first ? 1 : 0]);
    parent = std::move(rest);
    if (!was_first) --focus_;
    set_focus(focus_);
    alone_ = false;
}

void Panes::swap_with_next() {
    const auto all = leaves();
    const std::size_t next = (focus_ + 1) % all.size();
    if (next == focus_) return;
    std::swap(all[focus_]->panel, all[next]->panel);
    focus_ = next;
}

void Panes::grow(double share) {
    const std::vector<Node*> path = path_to(root_, leaves()[focus_]);
    if (path.size() < 2) return;
    Node& parent = *path[path.size() - 2];
    if (&parent.parts[0] != path.back()) share = -share;
    parent.share = std::clamp(parent.share + share, kLeast, 1 - kLeast);
}

// Places and bars are in the order of a walk from the root, so that a bar's number names its node.
Panes::Places Panes::places(float width, float height, float gap) const {
    Places result;
    const auto walk = [&](const auto& self, const Node& node, const PaneRect& at) -> void {
        if (node.parts.empty()) {
            result.panes.push_back(at);
            return;
        }
        const Halves halves = halved(at, node.split, node.share, gap);
        result.bars.push_back({node.split, halves.bar, at});
        self(self, node.parts[0], halves.first);
        self(self, node.parts[1], halves.second);
    };
    walk(walk, root_, {0, 0, width, height});
    if (alone_) {
        result.bars.clear();
        for (std::size_t i = 0; i < result.panes.size(); ++i)
            result.panes[i] = i == focus_ ? PaneRect{0, 0, width, height} : PaneRect{};
    }
    return result;
}

void Panes::drag(std::size_t bar, float x, float y, float width, float height, float gap) {
    const Places now = places(width, height, gap);
    if (bar >= now.bars.size()) return;
    std::vector<Node*> nodes;
    const auto walk = [&](const auto& self, Node& node) -> void {
        if (node.parts.empty()) return;
        nodes.push_back(&node);
        for (Node& part : node.parts) self(self, part);
    };
    walk(walk, root_);
    const Bar& it = now.bars[bar];
    const bool beside = it.split == Split::beside;
    const float at = beside ? x - it.whole.x : y - it.whole.y;
    const float length = std::max(1.0F, (beside ? it.whole.width : it.whole.height) - gap);
    nodes[bar]->share = std::clamp(static_cast<double>((at - gap / 2) / length), kLeast, 1 - kLeast);
}

std::string Panes::text() const {
    return text_of(root_, false);
}

// Reads a panel's name or what is in parentheses.
bool Panes::parse(std::string_view& text, Node& node, int depth) {
    if (depth > kDeepest) return false;
    skip_blanks(text);
    if (text.starts_with('(')) {
        text.remove_prefix(1);
        if (!parse_split(text, node, depth + 1) || !takes(text, ')')) return false;
        return true;
    }
    const std::size_t end = text.find_first_of(" |/()");
    node.panel = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end));
    return !node.panel.empty();
}

// Reads one part, and the other if a sign follows.
bool Panes::parse_split(std::string_view& text, Node& node, int depth) {
    Node first;
    if (!parse(text, first, depth)) return false;
    const Split how = takes(text, '|') ? Split::beside : takes(text, '/') ? Split::above : Split::none;
    if (how == Split::none) {
        node = std::move(first);
        return true;
    }
    int percent = 50;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    Node second;
    if (!parse(text, second, depth)) return false;
    node = {how, std::clamp(percent / 100.0, kLeast, 1 - kLeast), {}, {std::move(first), std::move(second)}};
    return error != std::errc::result_out_of_range;
}

std::string not_panes(std::string_view text) {
    return fmt::format(
        "\"{}\" does not divide a window; write one to four different panels as timeline / memory, or "
        "timeline "
        "|40 (memory / units)",
        text);
}

std::optional<Panes> parse_panes(std::string_view text) {
    Panes panes;
    if (!Panes::parse_split(text, panes.root_, 0)) return std::nullopt;
    skip_blanks(text);
    std::set<std::string> panels;
    for (const Panes::Node* leaf : std::as_const(panes).leaves()) panels.insert(leaf->panel);
    if (!text.empty() || panels.size() != panes.count() || panes.count() > Panes::kMost) return std::nullopt;
    return panes;
}

}  // namespace shardscope::viewer::app
