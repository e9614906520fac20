// See export.h.
#include "viewer/app/export.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <fmt/core.h>

#include "traces/export/text_output.h"
#include "viewer/backend/png.h"
#include "viewer/tables/table.h"

namespace shardscope::viewer::app {

void write_picture(const std::string& path, backend::Surface& surface) {
    backend::write_png(path, surface.width(), surface.height(), surface.pixels());
}

void write_picture(const std::string& path, backend::Surface& surface, ImVec2 min, ImVec2 max) {
    const ImVec2 dense = ImGui::GetIO().DisplayFramebufferScale;
    const auto pixel = [](float at, float scale, int most) {
        return std::clamp(static_cast<int>(std::lround(at * scale)), 0, most);
    };
    const int left = pixel(min.x, dense.x, surface.width()), right = pixel(max.x, dense.x, surface.width());
    const int top = pixel(min.y, dense.y, surface.height()), bottom = pixel(max.y, dense.y, surface.height());
    if (left >= right || top >= bottom) {
        throw std::runtime_error(fmt::format("{}: there is nothing to draw: the item is not visible.", path));
    }
    const std::vector<std::uint8_t> all = surface.pixels();
    const auto line = static_cast<std::size_t>(right - left) * 4;
    std::vector<std::uint8_t> part;
    part.reserve(line * static_cast<std::size_t>(bottom - top));
    for (int y = top; y < bottom; ++y) {
        const std::size_t from = (static_cast<std::size_t>(y) * static_cast<std::size_t>(surface.width()) +
                                  static_cast<std::size_t>(left)) *
                                 4;
        part.insert(part.end(), all.begin() + static_cast<std::ptrdiff_t>(from),
                    all.begin() + static_cast<std::ptrdiff_t>(from + line));
    }
    backend::write_png(path, right - left, bottom - top, part);
}

void write_shown_table(const std::string& name, const std::string& path) {
    const std::vector<tables::ShownTable> tables = tables::shown_tables();
    const auto found = std::find_if(tables.begin(), tables.end(), [&](const tables::ShownTable& t) {
        return name.empty() || t.name == name;
    });
    if (found == tables.end()) {
        std::string names;
        for (const tables::ShownTable& table : tables) names += (names.empty() ? "" : ", ") + table.name;
        throw std::runtime_error(names.empty()
                                     ? "No table is shown: choose a panel that has one."
                                     : fmt::format("No table called {} is shown; there is {}.", name, names));
    }
    if (!found->order)
        throw std::runtime_error("The table's rows are still being put in order; wait for it.");
    traces::exports::TextOutput output(path, true, false);
    output.buffer() = path.ends_with(".json") ? table_json(*found->model, found->order.get())
                                              : table_csv(*found->model, found->order.get());
    output.finish();
}

void write_text(const std::string& path, const std::string& text) {
    traces::exports::TextOutput output(path, true, false);
    output.buffer() = text;
    output.finish();
}

}  // namespace shardscope::viewer::app
