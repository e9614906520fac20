// Finds the key of a text in a hash table that is built at compile time; each event has some ten keys.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "traces/import/kineto/trace_event.h"

namespace shardscope::traces::importer {

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

// The first eight characters, the first of them lowest; shorter texts are filled up with zeros.
constexpr std::uint64_t head_of(std::string_view text) {
    std::uint64_t head = 0;
    for (std::size_t i = 0; i < text.size() && i < sizeof(head); ++i)
        head |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])) << 8 * i;
    return head;
}

// The same with one load; eight bytes from the text's start must be readable.
std::uint64_t padded_head_of(std::string_view text) {
    if constexpr (std::endian::native != std::endian::little) return head_of(text);
    std::uint64_t head = 0;
    std::memcpy(&head, text.data(), sizeof(head));
    const std::size_t beyond = sizeof(head) - std::min(text.size(), sizeof(head));
    return head & ~std::uint64_t{0} >> 8 * beyond;
}

constexpr std::size_t kSlotBits = 9;
constexpr std::size_t kSlots = std::size_t{1} << kSlotBits;

constexpr std::size_t slot_of(std::uint64_t head, std::size_t size) {
    return ((head ^ size << 56) * 0x9E3779B97F4A7C15) >> (64 - kSlotBits);
}

struct Slot {
    std::uint64_t head = 0;
    std::string_view text;  // empty: a free slot
    EventKey key = EventKey::count;
};
using Table = std::array<Slot, kSlots>;

// Open addressing.
template <std::size_t size>
constexpr Table make_table(const std::array<Spelling, size>& spellings) {
    Table table{};
    for (const Spelling& spelling : spellings) {
        const std::uint64_t head = head_of(spelling.text);
        std::size_t slot = slot_of(head, spelling.text.size());
        while (!table[slot].text.empty()) slot = (slot + 1) % kSlots;
        table[slot] = {head, spelling.text, spelling.key};
    }
    return table;
}

constexpr Table kEventTable = make_table(kEventSpellings);
constexpr Table kArgTable = make_table(kArgSpellings);

EventKey find(const Table& table, std::string_view text, std::uint64_t head) {
    if (text.empty()) return EventKey::count;
    for (std::size_t slot = slot_of(head, text.size());; slot = (slot + 1) % kSlots) {
        const Slot& known = table[slot];
        if (known.text.empty()) return EventKey::count;
        if (known.head != head || known.text.size() != text.size()) continue;
        if (text.size() <= sizeof(head) || known.text.substr(sizeof(head)) == text.substr(sizeof(head)))
            return known.key;
    }
}

}  // namespace

EventKey event_key(std::string_view text) {
    return find(kEventTable, text, head_of(text));
}
EventKey arg_key(std::string_view text) {
    return find(kArgTable, text, head_of(text));
}
EventKey padded_event_key(std::string_view text) {
    return find(kEventTable, text, text.empty() ? 0 : padded_head_of(text));
}
EventKey padded_arg_key(std::string_view text) {
    return find(kArgTable, text, text.empty() ? 0 : padded_head_of(text));
}

}  // namespace shardscope::traces::importer
