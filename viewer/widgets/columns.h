// Columns as the tables of units and collectives declare them.
#pragma once

#include <cstdint>

#include "viewer/tables/table_model.h"

namespace shardscope::viewer {

inline constexpr char kMicro[] = "\u00b5s";

inline double us(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-3;
}

inline TableColumn text_column(const char* id, const char* title, float width, int priority = 10) {
    return {id, title, "", TableColumn::Kind::text, width, priority, 0, {}};
}
inline TableColumn number_column(const char* id, const char* title, const char* unit, float width,
                                 int priority, Color bar = 0, const char* help = "") {
    return {id, title, unit, TableColumn::Kind::number, width, priority, bar, help};
}

}  // namespace shardscope::viewer
