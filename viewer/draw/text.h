// Text that panels share: right-aligned numbers, names that shorten to their cell, legends, uniform tooltips.
// Drawing layer (Dear ImGui); frame thread only; draws into the current window.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

namespace shardscope::viewer::draw {

float width_of(std::string_view text);  // pixels

// Right-aligned in the remaining width of the current cell or line.
void text_right(std::string_view text);
void text_right_dim(std::string_view text);

// In another colour; dimmed; dimmed and shortened like text_fit().
void text_in(ImU32 color, std::string_view text);
void text_dim(std::string_view text);
void text_fit_dim(const std::string& text);

// Shortened to the width that is left; a shortened text is shown whole on hover.
void text_fit(const std::string& text);
// The same for any place: `text` in one line of `width` pixels. A C++ function's name loses its parameters,
// namespaces and template arguments first (short_name.h), any other text its middle. The cost depends on the
// width, not on the length of the text.
std::string fit_text(const std::string& text, float width);

// The text shortened to fit a combo box of this width, beside its arrow.
std::string fit_in_combo(const std::string& text, float width);

// A number, right-aligned in the rest of the line. A number that is too wide is shortened (format_short) and
// shown whole on hover: no digit is ever cut off.
void number_right(const std::string& text, double number);
// A tooltip with the whole of a long text, wrapped; for a very long text only its start.
void full_text_tip(std::string_view text);

// Call before an item of `width` pixels, after SameLine: begins a new line if this one has no room for it.
void flow(float width);
// The width of a button with this label.
float button_width(std::string_view label);
// A button that scripts find as `item`, with its label as text.
bool named_button(const char* label, std::string_view item);

// Until end_wrap(), text() and what is made of it wraps at `x` in the window, 0: at the end of the line; at
// spaces, and a number is kept with its unit.
void begin_wrap(float x = 0);
void end_wrap();
// Text that wraps at the end of the line.
void wrapped(std::string_view text);
// The same in another colour: an error.
void wrapped_in(ImU32 color, std::string_view text);
// Dimmed text that wraps: an explanation, a reason why there is nothing to show.
void note(std::string_view text);

// A heading with a thin line behind it.
void heading(std::string_view text);

// A number in a table's cell: right-aligned, over a bar of `share` (0..1), and shortened if there is no room.
void number_cell(const std::string& text, double number, double share, ImU32 color);

struct LegendItem {
    std::string label;
    ImU32 color = 0;
};
// Colour squares with labels, in as many lines as the width requires.
void legend(std::span<const LegendItem> items);
// A colour square the height of a capital, then SameLine: for table rows and tooltips.
void swatch(ImU32 color);

// A tooltip is a title and rows of label and right-aligned value; begin, rows, end.
void begin_tip(std::string_view title);
void tip_row(std::string_view label, std::string_view value, ImU32 color = 0);
void end_tip();

// Right-aligns the headers of number columns like the numbers below; sortable tables stay sortable.
// `numbers`: by column, whether it holds numbers. Returns the height.
float headers_row(const std::vector<bool>& numbers);

// An invisible area that catches the mouse. Dear ImGui refuses one without a width or a height, which can
// occur in a small window.
inline bool place_button(const char* id, ImVec2 size, ImGuiButtonFlags flags = 0) {
    return ImGui::InvisibleButton(id, {size.x > 0 ? size.x : 1, size.y > 0 ? size.y : 1}, flags);
}

void text(std::string_view t);

}  // namespace shardscope::viewer::draw
