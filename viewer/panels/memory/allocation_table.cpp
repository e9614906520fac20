// See allocation_table.h.
#include "viewer/panels/memory/allocation_table.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "traces/store/stack_text.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace {

template <class Row>
std::vector<std::string_view> names_by_id(const std::vector<Row>& rows) {
    std::vector<std::string_view> names;
    for (const Row& row : rows) {
        if (row.id < 0 || row.id > 10'000'000) continue;  // only damaged files have such ids
        const auto id = static_cast<std::size_t>(row.id);
        if (names.size() <= id) names.resize(id + 1);
        names[id] = row.name;
    }
    return names;
}

std::string name_of(const std::vector<std::string_view>& names, int id) {
    return id >= 0 && static_cast<std::size_t>(id) < names.size()
               ? std::string(names[static_cast<std::size_t>(id)])
               : std::string();
}

}  // namespace

AllocationTable::AllocationTable(model::TracePtr trace,
                                 std::shared_ptr<const traces::analysis::Allocations> allocations)
    : tables::LazyTable(allocations->size()),
      trace_(std::move(trace)),
      allocations_(std::move(allocations)),
      units_(names_by_id(trace_->units)),
      modules_(names_by_id(trace_->modules)) {
    const traces::store::MemoryEvents& memory = trace_->memory;
    const auto known = [&](const auto& column, auto none) {
        return !column.empty() && std::any_of(allocations_->row.begin(), allocations_->row.end(),
                                              [&](std::uint32_t row) { return column[row] != none; });
    };
    // `of`: the text of a row of Trace::memory. `least`: minimum width of a column that shares the rest.
    const auto text = [&](const char* id, const char* title, float width, int priority, auto of,
                          float least = 0) {
        tables::TableColumn column = tables::text_column(id, title, width, priority);
        column.least = least;
        cells_.add(std::move(column),
                   [this, of](std::size_t row) { return std::string(of(memory_row(row))); });
    };
    const auto string_of = [&memory, this](const auto& column) {
        return [&column, this](std::uint32_t i) { return trace_->strings[column[i]]; };
    };
    cells_.add(tables::number_column("time_ms", "Allocated at", "ms", 8, 10), 3,
               [&memory, this](std::size_t row) {
                   return static_cast<double>(memory.time[memory_row(row)]) * 1e-6;
               });
    cells_.add(
        tables::number_column("bytes", "Size", "bytes", 7.5F, 10), 0,
        [&memory, this](std::size_t row) { return static_cast<double>(memory.bytes[memory_row(row)]); });
    cells_.add(tables::number_column("lifetime_ms", "Lived", "ms", 6.5F, 10, 0,
                                     "until its address was freed or reused; - : to the end of the trace"),
               3, [&memory, this](std::size_t row) {
                   return freed_ns(row) == traces::analysis::kNeverFreed
                              ? tables::kNoNumber
                              : static_cast<double>(freed_ns(row) - memory.time[memory_row(row)]) * 1e-6;
               });
    text("category", "Category", 11, 10, [&memory](std::uint32_t i) {
        return draw::spaced(
            traces::schema::kMemoryCategoryNames[static_cast<std::size_t>(memory.category[i])]);
    });
    if (known(memory.unit, -1))
        text("unit", "FSDP unit", 8, 9,
             [&memory, this](std::uint32_t i) { return name_of(units_, memory.unit[i]); });
    if (known(memory.module, -1))
        text("module", "Module", 14, 8,
             [&memory, this](std::uint32_t i) { return name_of(modules_, memory.module[i]); });
    if (known(memory.name, traces::schema::StringId::empty))
        text("buffer", "Buffer", 0, 7, string_of(memory.name), 12);
    if (known(memory.annotation, traces::schema::StringId::empty))
        text("annotation", "Annotation", 16, 7, string_of(memory.annotation));
    if (known(memory.stack, traces::schema::StringId::empty)) {
        text(
            "stack", "Requested by", 0, 7,
            [&memory, this](std::uint32_t i) {
                const std::string_view frame = traces::store::asking_frame(trace_->strings[memory.stack[i]]);
                return frame.empty() ? std::string() : traces::store::short_frame(frame);
            },
            12);
    }
    if (known(memory.phase, traces::schema::Phase::none))
        text("phase", "Phase", 6, 5, [&memory](std::uint32_t i) {
            return memory.phase[i] == traces::schema::Phase::none ? std::string_view()
                                                                  : traces::schema::name(memory.phase[i]);
        });
    if (known(memory.space, traces::schema::MemorySpace::device))
        text("space", "Space", 5, 5,
             [&memory](std::uint32_t i) { return traces::schema::name(memory.space[i]); });
    text("address", "Address", 9, 4,
         [&memory](std::uint32_t i) { return fmt::format("{:#x}", memory.address[i]); });
}

}  // namespace shardscope::viewer::panels
