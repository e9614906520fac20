// Which key a text is: a hash table that is made when the program is compiled, since each event has some ten.
#include <array>

#include "traces/import/trace_event.h"

namespace shardscope::traces {

namespace {

struct Spelling {
    std::string_view text;
    EventKey key;
};

constexpr std::array kEventSpellings = {
    Spelling{"ph", EventKey::ph},     Spelling{"cat", EventKey::cat}, Spelling{"name", EventKey::name},
    Spelling{"pid", EventKey::pid},   Spelling{"tid", EventKey::tid}, Spelling{"ts", EventKey::ts},
    Spelling{"dur", EventKey::dur},   Spelling{"id", EventKey::id},   Spelling{"id2", EventKey::id2},
    Spelling{"args", EventKey::args}, Spelling{"bp", EventKey::bp},
};

constexpr std::array kArgSpellings = {
    Spelling{"correlation", EventKey::correlation},
    Spelling{"External id", EventKey::external_id},
    Spelling{"external id", EventKey::external_id},
    Spelling{"device", EventKey::device},
    Spelling{"stream", EventKey::stream},
    Spelling{"context", EventKey::context},
    Spelling{"bytes", EventKey::bytes},
    Spelling{"grid", EventKey::grid},
    Spelling{"block", EventKey::block},
    Spelling{"registers per thread", EventKey::registers},
    Spelling{"shared memory", EventKey::shared_memory},
    Spelling{"blocks per SM", EventKey::blocks_per_sm},
    Spelling{"est. achieved occupancy %", EventKey::occupancy},
    Spelling{"theoretical occupancy %", EventKey::occupancy},
    Spelling{"graph id", EventKey::graph_id},
    Spelling{"graph node id", EventKey::graph_node},
    Spelling{"fromDevice", EventKey::from_device},
    Spelling{"toDevice", EventKey::to_device},
    Spelling{"fromContext", EventKey::from_context},
    Spelling{"toContext", EventKey::to_context},
    Spelling{"Input Dims", EventKey::input_dims},
    Spelling{"Input dims", EventKey::input_dims},
    Spelling{"Input type", EventKey::input_type},
    Spelling{"Concrete Inputs", EventKey::concrete_inputs},
    Spelling{"Python module id", EventKey::module_id},
    Spelling{"Device Type", EventKey::device_type},
    Spelling{"Device Id", EventKey::device_id},
    Spelling{"Addr", EventKey::address},
    Spelling{"Bytes", EventKey::size},
    Spelling{"Total Allocated", EventKey::total_allocated},
    Spelling{"Total Reserved", EventKey::total_reserved},
    Spelling{"Collective name", EventKey::collective},
    Spelling{"dtype", EventKey::data_type},
    Spelling{"In msg nelems", EventKey::in_elements},
    Spelling{"In msg size", EventKey::in_elements},
    Spelling{"Out msg nelems", EventKey::out_elements},
    Spelling{"Out msg size", EventKey::out_elements},
    Spelling{"Group size", EventKey::group_size},
    Spelling{"Process Group Name", EventKey::group_name},
    Spelling{"Process Group ID", EventKey::group_name},
    Spelling{"Process Group Description", EventKey::group_description},
    Spelling{"Process Group Ranks", EventKey::group_ranks},
    Spelling{"Rank", EventKey::rank},
    Spelling{"Seq", EventKey::sequence},
    Spelling{"cuda_sync_kind", EventKey::sync_kind},
    Spelling{"wait_on_stream", EventKey::wait_on_stream},
    Spelling{"wait_on_cuda_event_id", EventKey::wait_on_event},
    Spelling{"wait_on_cuda_event_record_corr_id", EventKey::wait_on_correlation},
    Spelling{"name", EventKey::arg_name},
    Spelling{"labels", EventKey::labels},
    Spelling{"shardscope", EventKey::shardscope},
};

constexpr std::size_t kSlots = 512;

constexpr std::size_t slot_of(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    return (text.size() * 131 + at(0) * 31 + at(text.size() / 2) * 7 + at(text.size() - 1) * 57) % kSlots;
}

// Open addressing; a slot holds the spelling's number + 1.
template <std::size_t size>
constexpr std::array<std::uint8_t, kSlots> make_table(const std::array<Spelling, size>& spellings) {
    std::array<std::uint8_t, kSlots> table{};
    for (std::size_t i = 0; i < size; ++i) {
        std::size_t slot = slot_of(spellings[i].text);
        while (table[slot] != 0) slot = (slot + 1) % kSlots;
        table[slot] = static_cast<std::uint8_t>(i + 1);
    }
    return table;
}

constexpr auto kEventTable = make_table(kEventSpellings);
constexpr auto kArgTable = make_table(kArgSpellings);

template <std::size_t size>
EventKey find(const std::array<std::uint8_t, kSlots>& table, const std::array<Spelling, size>& spellings,
              std::string_view text) {
    if (text.empty()) return EventKey::count;
    for (std::size_t slot = slot_of(text); table[slot] != 0; slot = (slot + 1) % kSlots) {
        const Spelling& spelling = spellings[table[slot] - std::size_t{1}];
        if (spelling.text == text) return spelling.key;
    }
    return EventKey::count;
}

}  // namespace

EventKey event_key(std::string_view text) {
    return find(kEventTable, kEventSpellings, text);
}
EventKey arg_key(std::string_view text) {
    return find(kArgTable, kArgSpellings, text);
}

}  // namespace shardscope::traces
