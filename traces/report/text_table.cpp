// UTF-8 decoding, display widths and column alignment; see text_table.h.
#include "traces/report/text_table.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

namespace shardscope::traces {

namespace {

// --- the widths of columns, in columns of the terminal ---

constexpr std::size_t kColumnGap = 2;   // between two columns
constexpr std::size_t kLeastText = 20;  // a text that is shortened keeps so much of itself

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

// Headers stay in one line if that fits. The first `keys` columns identify a row and begin every block. A
// table that cannot be made that narrow (a key or one number alone is wider) is as narrow as possible.
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

// --- UTF-8 ---

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr char32_t kInvalid = 0xFFFFFFFF;

// Decodes one code point of `text` at `at` and advances `at` (by one byte if the text is invalid).
char32_t decode(std::string_view text, std::size_t& at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(at);
    if (lead < 0x80) {
        ++at;
        return lead;
    }
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || at + static_cast<std::size_t>(more) >= text.size()) {
        ++at;
        return kInvalid;
    }
    char32_t code = lead & (0x3F >> more);
    for (int i = 1; i <= more; ++i) {
        const unsigned char next = byte(at + static_cast<std::size_t>(i));
        if ((next & 0xC0) != 0x80) {
            ++at;
            return kInvalid;
        }
        code = code << 6 | (next & 0x3F);
    }
    static constexpr char32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};  // shorter forms are invalid
    if (code < kSmallest[more] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
        ++at;
        return kInvalid;
    }
    at += static_cast<std::size_t>(more) + 1;
    return code;
}

struct CodeRange {
    char32_t first, last;
};
// Combining marks, joiners and variation selectors take no column.
constexpr CodeRange kZeroWidth[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F},
                                    {0x093C, 0x093C}, {0x094D, 0x094D}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                                    {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064}, {0x20D0, 0x20FF},
                                    {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}};
// East Asian wide and fullwidth characters and emoji take two columns.
constexpr CodeRange kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},  {0x3400, 0x4DBF},
                               {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},
                               {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F},
                               {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

bool in_any(char32_t code, const CodeRange* first, const CodeRange* last) {
    return std::any_of(first, last, [code](const CodeRange& r) { return code >= r.first && code <= r.last; });
}

// Trailing blanks are not printed.
void trim_right(std::string& line) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
}

}  // namespace

std::size_t display_width(std::string_view text) {
    std::size_t width = 0, at = 0;
    while (at < text.size()) {
        const char32_t code = decode(text, at);
        if (code < 0x300) {
            ++width;
        } else if (!in_any(code, std::begin(kZeroWidth), std::end(kZeroWidth))) {
            width += in_any(code, std::begin(kWide), std::end(kWide)) ? 2 : 1;
        }
    }
    return width;
}

std::string printable(std::string_view text) {
    std::string safe;
    safe.reserve(text.size());
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t begin = at;
        const char32_t code = decode(text, at);
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

// Headers of several lines are aligned to the rule below them.
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

}  // namespace shardscope::traces
