// What is on the screen, as files: pictures of the window or a part of it, tables as they are sorted and
// filtered, texts. Drawing layer (Dear ImGui); frame thread only. Each throws std::runtime_error with one
// sentence.
#pragma once

#include <string>

#include <imgui.h>

#include "viewer/backend/surface.h"

namespace shardscope::viewer {

// Of the frame that was built last, whole or between two corners on the screen.
void write_picture(const std::string& path, Surface& surface);
void write_picture(const std::string& path, Surface& surface, ImVec2 min, ImVec2 max);

// One of shown_tables(), by its name; .json where the path ends so, else CSV. An empty name: the first.
void write_shown_table(const std::string& name, const std::string& path);

// A text as it stands; an existing file is replaced once the new one is whole.
void write_text(const std::string& path, const std::string& text);

}  // namespace shardscope::viewer
