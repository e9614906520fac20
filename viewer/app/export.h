// Writes what is on the screen to files: pictures of the window or a part of it, tables as sorted and
// filtered, texts. Drawing layer (Dear ImGui); frame thread only. Each function throws std::runtime_error
// with one sentence.
#pragma once

#include <string>

#include <imgui.h>

#include "viewer/backend/surface.h"

namespace shardscope::viewer::app {

// Writes the latest frame, whole or between two corners on the screen.
void write_picture(const std::string& path, backend::Surface& surface);
void write_picture(const std::string& path, backend::Surface& surface, ImVec2 min, ImVec2 max);

// Writes one of shown_tables(), chosen by its name (empty: the first): JSON if the path ends in .json, else
// CSV.
void write_shown_table(const std::string& name, const std::string& path);

// Writes a text unchanged; an existing file is replaced only when the new one is complete.
void write_text(const std::string& path, const std::string& text);

}  // namespace shardscope::viewer::app
