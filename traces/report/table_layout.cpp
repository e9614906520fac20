#include "traces/report/table_layout.h"

#include <algorithm>
#include <numeric>

#include "traces/report/text_table.h"

namespace shardscope::traces {
namespace {

std::size_t width_of(const std::vector<std::size_t>& widths, const std::vector<std::size_t>& columns) {
    std::size_t sum = columns.empty() ? 0 : (columns.size() - 1) * kColumnGap;
    for (const std::size_t c : columns) sum += widths[c];
    return sum;
}

// Shortens the widest text first, so that shortened columns end up equally wide.
void shorten_texts(const std::vector<ColumnNeeds>& needs, const std::vector<std::size_t>& columns,
                   std::size_t width, std::vector<std::size_t>& widths) {
    while (width_of(widths, columns) > width) {
        std::size_t widest = needs.size();
        for (const std::size_t c : columns) {
            const bool can = needs[c].text && widths[c] > std::max(kLeastText, needs[c].word);
            if (can && (widest == needs.size() || widths[c] > widths[widest])) widest = c;
        }
        if (widest == needs.size()) return;
        --widths[widest];
    }
}

}  // namespace

TableLayout lay_out(const std::vector<ColumnNeeds>& columns, std::size_t keys, std::size_t width) {
    TableLayout layout;
    std::vector<std::size_t> all(columns.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    for (const ColumnNeeds& c : columns) layout.widths.push_back(std::max(c.cells, c.header));
    if (width_of(layout.widths, all) > width) {
        for (std::size_t c = 0; c < columns.size(); ++c)
            layout.widths[c] = std::max(columns[c].cells, columns[c].word);
        shorten_texts(columns, all, width, layout.widths);
    }
    if (width_of(layout.widths, all) <= width) {
        layout.blocks.push_back(std::move(all));
        return layout;
    }
    // Columns that continue below have room for longer texts again: half a line for the names, the rest for
    // the columns next to them.
    keys = std::min(keys, columns.size());
    const std::vector<std::size_t> names(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(keys));
    for (std::size_t c = 0; c < columns.size(); ++c)
        layout.widths[c] = std::max(columns[c].cells, columns[c].word);
    shorten_texts(columns, names, width / 2, layout.widths);
    const std::size_t used = std::min(width, width_of(layout.widths, names) + kColumnGap);
    for (std::size_t c = keys; c < columns.size(); ++c)
        shorten_texts(columns, {c}, width - used, layout.widths);
    std::vector<std::size_t> block = names;
    for (std::size_t c = keys; c < columns.size(); ++c) {
        block.push_back(c);
        if (block.size() == keys + 1 || width_of(layout.widths, block) <= width) continue;
        block.pop_back();
        layout.blocks.push_back(std::move(block));
        block = names;
        block.push_back(c);
    }
    layout.blocks.push_back(std::move(block));
    return layout;
}

std::vector<std::string> broken_at_blanks(std::string_view text, std::size_t width) {
    std::vector<std::string> lines(1);
    std::size_t used = 0;
    while (!text.empty()) {
        const std::size_t blank = text.find(' ');
        const std::string_view word = text.substr(0, blank);
        text.remove_prefix(blank == text.npos ? text.size() : blank + 1);
        const std::size_t more = display_width(word);
        if (used > 0 && used + 1 + more > width) {
            lines.emplace_back();
            used = 0;
        }
        if (used > 0) {
            lines.back() += ' ';
            ++used;
        }
        lines.back() += word;
        used += more;
    }
    return lines;
}

}  // namespace shardscope::traces
