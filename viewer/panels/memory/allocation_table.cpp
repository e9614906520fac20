// See allocation_table.h.
#include "viewer/panels/memory/allocation_table.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "traces/store/stack_text.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer {
namespace {

using Kind = TableColumn::Kind;

template <class Row>
std::vector<std::string_view> names_by_id(const std::vector<Row>& rows) {
    std::vector<std::string_view> names;
    for (const Row& row : rows) {
        if (row.id < 0 || row.id > 10'000'000) continue;  // in damaged files
        const auto id = static_cast<std::size_t>(row.id);
        if (names.size() <= id) names.resize(id + 1);
        names[id] = row.name;
    }
    return names;
}

}  // namespace

AllocationTable::AllocationTable(TracePtr trace, std::shared_ptr<const traces::Allocations> allocations)
    : trace_(std::move(trace)),
      allocations_(std::move(allocations)),
      units_(names_by_id(trace_->units)),
      modules_(names_by_id(trace_->modules)) {
    const traces::MemoryEvents& memory = trace_->memory;
    const auto told = [&](const auto& column, auto none) {
        return std::any_of(allocations_->row.begin(), allocations_->row.end(),
                           [&](std::uint32_t row) { return column[row] != none; });
    };
    const auto text = [](std::string id, std::string title, float width, int priority) {
        return TableColumn{.id = std::move(id),
                           .title = std::move(title),
                           .kind = Kind::text,
                           .width = width,
                           .priority = priority};
    };
    add(Field::time, {.id = "time_ms", .title = "Allocated at", .unit = "ms", .width = 8});
    add(Field::bytes, {.id = "bytes", .title = "Size", .unit = "bytes", .width = 7.5F});
    add(Field::lifetime, {.id = "lifetime_ms",
                          .title = "Lived",
                          .unit = "ms",
                          .width = 6.5F,
                          .help = "until its address was freed or given again; - : to the end of the trace"});
    add(Field::category, text("category", "Category", 11, 10));
    if (told(memory.unit, -1)) add(Field::unit, text("unit", "FSDP unit", 8, 9));
    if (told(memory.module, -1)) add(Field::module, text("module", "Module", 14, 8));
    if (told(memory.name, traces::StringId::empty)) {
        add(Field::buffer, text("buffer", "Buffer", 0, 7));
        columns_.back().least = 12;
    }
    if (!memory.annotation.empty() && told(memory.annotation, traces::StringId::empty))
        add(Field::annotation, text("annotation", "Annotation", 16, 7));
    if (!memory.stack.empty() && told(memory.stack, traces::StringId::empty)) {
        add(Field::stack, text("stack", "Allocated by", 0, 7));
        columns_.back().least = 12;
    }
    if (told(memory.phase, traces::Phase::none)) add(Field::phase, text("phase", "Phase", 6, 5));
    if (told(memory.space, traces::MemorySpace::device)) add(Field::space, text("space", "Space", 5, 5));
    add(Field::address, text("address", "Address", 9, 4));
}

void AllocationTable::add(Field field, TableColumn column) {
    fields_.push_back(field);
    columns_.push_back(std::move(column));
}

std::string_view AllocationTable::name_of(const std::vector<std::string_view>& names, int id) const {
    return id >= 0 && static_cast<std::size_t>(id) < names.size() ? names[static_cast<std::size_t>(id)]
                                                                  : std::string_view();
}

Color AllocationTable::swatch(std::size_t row) const {
    return category_color(trace_->memory.category[memory_row(row)]);
}

double AllocationTable::number(std::size_t row, std::size_t column) const {
    const traces::MemoryEvents& memory = trace_->memory;
    const std::uint32_t i = memory_row(row);
    switch (fields_[column]) {
        case Field::time:
            return static_cast<double>(memory.time[i]) * 1e-6;
        case Field::bytes:
            return static_cast<double>(memory.bytes[i]);
        case Field::lifetime:
            return freed_ns(row) == traces::kNeverFreed
                       ? kNoNumber
                       : static_cast<double>(freed_ns(row) - memory.time[i]) * 1e-6;
        default:
            return kNoNumber;
    }
}

std::string AllocationTable::text(std::size_t row, std::size_t column) const {
    const traces::MemoryEvents& memory = trace_->memory;
    const std::uint32_t i = memory_row(row);
    switch (fields_[column]) {
        case Field::time:
        case Field::lifetime:
            return decimal_cell(number(row, column), 3).text;
        case Field::bytes:
            return format_count(memory.bytes[i]);
        case Field::category:
            return spaced(traces::kMemoryCategoryNames[static_cast<std::size_t>(memory.category[i])]);
        case Field::unit:
            return std::string(name_of(units_, memory.unit[i]));
        case Field::module:
            return std::string(name_of(modules_, memory.module[i]));
        case Field::buffer:
            return std::string(trace_->strings[memory.name[i]]);
        case Field::phase:
            return memory.phase[i] == traces::Phase::none ? std::string()
                                                          : std::string(traces::name(memory.phase[i]));
        case Field::space:
            return std::string(traces::name(memory.space[i]));
        case Field::address:
            return fmt::format("{:#x}", memory.address[i]);
        case Field::annotation:
            return std::string(trace_->strings[memory.annotation[i]]);
        case Field::stack: {
            const std::string_view frame = traces::asking_frame(trace_->strings[memory.stack[i]]);
            return frame.empty() ? std::string() : traces::short_frame(frame);
        }
    }
    return {};
}

}  // namespace shardscope::viewer
