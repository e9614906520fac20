// Draws the flame graph of the Samples panel, callers above what they called: a click on a box shows it as
// wide as the graph, below its callers; the mouse says what it is. Laid out again only when samples, zoom or
// size change; only rows in sight are drawn. Drawing layer (Dear ImGui); frame thread only.
//
// For scripts: "samples.flame" (the whole) with the number of rows; "samples.box.<row>.<n>", the n-th box in
// sight of a row, both from 0, with its name and weight.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <imgui.h>

#include "viewer/panels/samples/samples_rows.h"

namespace shardscope::viewer::panels {

class FlameGraph {
  public:
    // The node that is shown whole; kept by its path while samples change.
    int top(const std::shared_ptr<const ShownSamples>& samples);
    void show(int node);
    void show_path(std::vector<std::string> path) { path_ = std::move(path), of_.reset(); }
    const std::vector<std::string>& path() const { return path_; }
    void to_caller();
    void to_largest_callee();
    void forget();  // the samples; the path stays

    // As high as its rows, at most `most`. Boxes for which `marked` is false are pale.
    void draw(const std::shared_ptr<const ShownSamples>& samples, float most,
              const std::function<bool(int node)>& marked);

  private:
    void lay_out(const std::shared_ptr<const ShownSamples>& samples, float width);
    void draw_row(std::size_t row, ImVec2 at, float height,
                  const std::function<bool(int node)>& marked) const;
    void draw_tip(const FlameCell& cell) const;
    const traces::analysis::FlameNode& node(int number) const {
        return of_->report.tree[static_cast<std::size_t>(number)];
    }

    std::shared_ptr<const ShownSamples> of_;  // that `top_` is of
    std::vector<std::string> path_;           // to `top_`
    int top_ = 0;
    std::shared_ptr<const ShownSamples> laid_out_;
    int laid_out_top_ = -1;
    float width_ = 0, font_ = 0;
    FlameLayout layout_;
    std::vector<std::vector<std::string>> labels_;  // by row and cell; empty where there is no room
    bool scroll_to_top_ = false;
};

}  // namespace shardscope::viewer::panels
