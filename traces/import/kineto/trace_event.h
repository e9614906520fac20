// One event of a Chrome trace as in its JSON, and the keys that importers use. Its values are views into the
// read buffer, valid until the next event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/import/json/json_scan.h"

namespace shardscope::traces::importer {

// Members of the event itself, then those of its `args`. Source of the names: PyTorch's libkineto
// (output_json.cpp) and the Trace Event Format, over the years.
enum class EventKey : std::uint8_t {
    ph,
    cat,
    name,
    pid,
    tid,
    ts,
    dur,
    id,
    id2,
    bp,
    args,
    // of args
    correlation,
    external_id,
    device,
    stream,
    context,
    bytes,
    grid,
    block,
    registers,
    shared_memory,
    blocks_per_sm,
    occupancy,
    graph_id,
    graph_node,
    from_device,
    to_device,
    from_context,
    to_context,
    input_dims,
    input_type,
    concrete_inputs,
    module_id,
    device_type,
    device_id,
    address,
    size,
    total_allocated,
    total_reserved,
    collective,
    data_type,
    in_elements,
    out_elements,
    group_size,
    group_name,
    group_description,
    group_ranks,
    rank,
    sequence,
    sync_kind,
    wait_on_stream,
    wait_on_event,
    wait_on_correlation,
    arg_name,
    labels,
    shardscope,
    count,  // no key
};
inline constexpr std::size_t kEventKeys = static_cast<std::size_t>(EventKey::count);
static_assert(kEventKeys <= 64);

// EventKey::count if it is not a known key.
EventKey event_key(std::string_view text);
EventKey arg_key(std::string_view text);
// The same, but faster: eight bytes from the text's start must be readable.
EventKey padded_event_key(std::string_view text);
EventKey padded_arg_key(std::string_view text);

struct TraceEvent {
    std::uint64_t offset = 0;  // of its first byte in the file
    // Every member of args with a number, for counters (ph C) only.
    std::vector<std::pair<std::string_view, std::string_view>> numbers;

    void clear() {
        present_ = 0;
        numbers.clear();
    }
    void set(EventKey key, JsonScalar value) {
        values_[static_cast<std::size_t>(key)] = value;
        present_ |= bit(key);
    }
    bool has(EventKey key) const { return (present_ & bit(key)) != 0; }
    JsonScalar operator[](EventKey key) const {
        return has(key) ? values_[static_cast<std::size_t>(key)] : JsonScalar();
    }
    std::string_view text(EventKey key) const { return (*this)[key].text; }

  private:
    static constexpr std::uint64_t bit(EventKey key) {
        return std::uint64_t{1} << static_cast<unsigned>(key);
    }
    std::uint64_t present_ = 0;
    std::array<JsonScalar, kEventKeys> values_;
};

class EventHandler {
  public:
    virtual ~EventHandler() = default;
    virtual void event(const TraceEvent& event) = 0;
    // Takes a member of the object around traceEvents, as it is written.
    virtual void metadata(std::string_view key, JsonScalar value) = 0;
};

}  // namespace shardscope::traces::importer
