// How a window is divided into panes, at most four, each with a panel: a tree of halves, side by side or
// above each other. Pure arithmetic; no Dear ImGui. A panel is in at most one pane of the program, as trace,
// rank, time and selection are common to all panes.
//
// As text, for the saved state and for scripts: "timeline", "timeline / memory" (above each other), "timeline
// |40 (memory / units)" (side by side; 40: the first part's percent, 50 if it is omitted).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::viewer::app {

enum class Split { none, beside, above };

struct PaneRect {
    float x = 0, y = 0, width = 0, height = 0;
};

class Panes {
  public:
    static constexpr std::size_t kMost = 4;
    // The bar between two parts, and the area that both fill.
    struct Bar {
        Split split = Split::none;
        PaneRect place, whole;
    };
    struct Places {
        std::vector<PaneRect> panes;  // by pane; empty ones are hidden
        std::vector<Bar> bars;
    };

    explicit Panes(std::string panel = {}) { root_.panel = std::move(panel); }

    std::size_t count() const { return leaves().size(); }
    std::size_t focus() const { return focus_; }  // the pane that has the keyboard
    const std::string& panel(std::size_t pane) const { return leaves()[pane]->panel; }
    const std::string& shown() const { return panel(focus_); }
    std::optional<std::size_t> pane_of(std::string_view panel) const;
    bool alone() const { return alone_ || count() == 1; }  // the focused pane fills the window

    void set_focus(std::size_t pane);
    void step_focus(int step);  // to the next pane (1) or the previous one (-1)
    // In the focused pane; a panel that another pane shows is not moved: that pane gets the focus.
    void show(std::string_view panel);
    // In this pane; if another pane shows it, the two change places.
    void put(std::size_t pane, std::string_view panel);
    // Halves the focused pane; the new one, to the right or below, gets the focus. Nothing if there are four.
    void split(Split how, std::string panel);
    void close();           // the focused pane; the last one stays
    void swap_with_next();  // the focused pane's panel, which keeps the focus
    void toggle_alone() { alone_ = !alone(); }
    void grow(double share);  // the focused pane, in the half that it is a part of
    void drag(std::size_t bar, float x, float y, float width, float height, float gap);

    Places places(float width, float height, float gap) const;

    std::string text() const;
    bool operator==(const Panes&) const = default;

  private:
    friend std::optional<Panes> parse_panes(std::string_view text);
    struct Node {
        Split split = Split::none;
        double share = 0.5;  // of the first part
        std::string panel;   // of a leaf
        std::vector<Node> parts;
        bool operator==(const Node&) const = default;
    };
    std::vector<const Node*> leaves() const;
    std::vector<Node*> leaves();
    static std::vector<Node*> path_to(Node& root, const Node* leaf);
    static bool parse(std::string_view& text, Node& node, int depth);
    static bool parse_split(std::string_view& text, Node& node, int depth);

    Node root_;
    std::size_t focus_ = 0;
    bool alone_ = false;
};

// What is wrong with a text that is none, as a sentence without its point.
std::string not_panes(std::string_view text);
// nullopt if it is no such text, has more than four panes, or a panel twice. The panels' names are not
// checked.
std::optional<Panes> parse_panes(std::string_view text);

}  // namespace shardscope::viewer::app
