// The script and the style sheet of the HTML timeline: unpack.js, draw.js, page.js and page.css, which CMake
// embeds.
#pragma once

#include <string_view>

namespace shardscope::traces::report {

std::string_view timeline_script();
std::string_view timeline_style();

}  // namespace shardscope::traces::report
