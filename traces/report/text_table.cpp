// Display widths (by utf8proc) and column alignment; see text_table.h.
#include "traces/report/text_table.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>
#include <utf8proc.h>

namespace shardscope::traces::report {

namespace {

// --- the widths of columns, in terminal columns ---

constexpr std::size_t kColumnGap = 2;   // between two columns
constexpr std::size_t kLeastText = 20;  // a shortened text keeps at least this much

struct ColumnNeeds {
    std::size_t cells = 0;   // the widest cell below the header
    std::size_t header = 0;  // the header in one line
    std::size_t word = 0;    // its longest word: the minimum width of a folded header
    bool text = false;       // cells may be shortened; numbers may not
};

struct TableLayout {
    std::vector<std::size_t> widths;  // width of each column
    // The columns of each block; blocks are printed one below the other.
    std::vector<std::vector<std::size_t>> blocks;
};

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

// Headers stay on one line if that fits. The first `keys` columns identify a row and begin every block. A
// table that cannot fit (a key or a number alone is wider than `width`) becomes as narrow as possible.
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
    // Split into blocks, the table has room for longer texts again: half a line for the keys, the rest for
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

// --- UTF-8 ---

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr utf8proc_int32_t kInvalid = -1;

// Decodes one code point of `text` at `at` and advances `at` (by one byte if the text is invalid).
utf8proc_int32_t decode(std::string_view text, std::size_t& at) {
    const auto* rest = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
    utf8proc_int32_t code = kInvalid;
    const utf8proc_ssize_t bytes =
        utf8proc_iterate(rest, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    at += bytes > 0 ? static_cast<std::size_t>(bytes) : 1;
    return bytes > 0 ? code : kInvalid;
}

// Trailing blanks are not printed.
void trim_right(std::string& line) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
}

}  // namespace

std::size_t display_width(std::string_view text) {
    std::size_t width = 0, at = 0;
    while (at < text.size()) {
        const utf8proc_int32_t code = decode(text, at);
        constexpr utf8proc_int32_t kFirstCombining = 0x300;
        width += code < kFirstCombining ? 1 : static_cast<std::size_t>(utf8proc_charwidth(code));
    }
    return width;
}

std::string printable(std::string_view text) {
    std::string safe;
    safe.reserve(text.size());
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t begin = at;
        const utf8proc_int32_t code = decode(text, at);
        // Directional overrides (U+202A-E, U+2066-9) could make a line read differently.
        const bool reorders = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
        if (code == '\n') {
            safe += "\\n";
        } else if (code == '\t') {
            safe += "\\t";
        } else if (code == kInvalid || code < 0x20 || (code >= 0x7F && code < 0xA0) || reorders) {
            safe += kReplacement;
        } else {
            safe += text.substr(begin, at - begin);
        }
    }
    return safe;
}

std::string shortened(std::string_view text, std::size_t width) {
    std::string whole = printable(text);
    if (display_width(whole) <= width) return whole;
    // The head gets the odd column; both parts end at a character boundary.
    const std::size_t tail_width = (width - 1) / 2, head_width = width - 1 - tail_width;
    std::size_t head = 0, tail = whole.size();
    for (std::size_t at = 0, used = 0; at < whole.size() && used <= head_width;) {
        head = at;
        const std::size_t from = at;
        decode(whole, at);
        used += display_width(std::string_view(whole).substr(from, at - from));
        if (used <= head_width) head = at;
    }
    while (tail > head) {
        std::size_t before = tail - 1;
        while (before > head && (static_cast<unsigned char>(whole[before]) & 0xC0) == 0x80) --before;
        if (display_width(std::string_view(whole).substr(before)) > tail_width) break;
        tail = before;
    }
    return whole.substr(0, head) + "\u2026" + whole.substr(tail);
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

std::string paragraph(std::string_view text, std::size_t width) {
    std::string lines;
    for (const std::string& line : broken_at_blanks(text, width)) lines += line + '\n';
    return lines;
}

void TextTable::header(std::vector<std::string> cells) {
    row(std::move(cells));
    lines_.back().kind = Kind::header;
    rule();
}

void TextTable::row(std::vector<std::string> cells) {
    for (std::string& cell : cells) cell = printable(cell);
    cells.resize(columns_.size());
    lines_.push_back({std::move(cells), Kind::row});
}

void TextTable::rule() {
    lines_.push_back({{}, Kind::rule});
}

std::string TextTable::text(std::size_t width) const {
    std::vector<ColumnNeeds> needs(columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c) needs[c].text = columns_[c] == Align::left;
    for (const Line& line : lines_) {
        for (std::size_t c = 0; c < line.cells.size(); ++c) {
            const std::size_t size = display_width(line.cells[c]);
            if (line.kind == Kind::row) {
                needs[c].cells = std::max(needs[c].cells, size);
                continue;
            }
            needs[c].header = std::max(needs[c].header, size);
            for (const std::string& word : broken_at_blanks(line.cells[c], 1))
                needs[c].word = std::max(needs[c].word, display_width(word));
        }
    }
    const TableLayout layout = lay_out(needs, keys_, width);
    std::string out;
    for (const std::vector<std::size_t>& block : layout.blocks) {
        if (!out.empty()) out += '\n';
        for (const Line& line : lines_) print(line, block, layout.widths, out);
    }
    return out;
}

// Headers of several lines are aligned at the bottom.
void TextTable::print(const Line& line, const std::vector<std::size_t>& columns,
                      const std::vector<std::size_t>& widths, std::string& out) const {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (const std::size_t c : columns) {
        if (line.kind == Kind::header) {
            cells.push_back(broken_at_blanks(line.cells[c], widths[c]));
        } else if (line.kind == Kind::row) {
            const bool fits = display_width(line.cells[c]) <= widths[c];
            cells.push_back({fits ? line.cells[c] : shortened(line.cells[c], widths[c])});
        }
        if (!cells.empty()) height = std::max(height, cells.back().size());
    }
    for (std::size_t row = 0; row < height; ++row) {
        std::string printed;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const std::size_t c = columns[i];
            if (i > 0) printed.append(kColumnGap, ' ');
            if (line.kind == Kind::rule) {
                for (std::size_t n = 0; n < widths[c]; ++n) printed += "─";
                continue;
            }
            const std::size_t above = height - cells[i].size();
            const std::string cell = row < above ? std::string() : cells[i][row - above];
            const std::string pad(widths[c] - display_width(cell), ' ');
            printed += columns_[c] == Align::right ? pad + cell : cell + pad;
        }
        trim_right(printed);
        out += printed + '\n';
    }
}

}  // namespace shardscope::traces::report
