// Device events: kernels, memcpys, memsets, synchronization.
#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "traces/import/kineto/kineto_rows.h"
#include "traces/import/kineto/scalar_values.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::importer {

namespace {

// The stream number of "stream 7" or 7.
int stream_number(JsonScalar tid) {
    if (const auto number = parse_integer(tid.text))
        return *number >= 0 && *number <= std::numeric_limits<int>::max() ? static_cast<int>(*number) : 0;
    const auto digit = tid.text.find_first_of("0123456789");
    if (digit == std::string_view::npos) return 0;
    std::string_view digits = tid.text.substr(digit);
    digits = digits.substr(0, digits.find_first_not_of("0123456789"));
    return int_or({JsonKind::number, digits}, 0);
}

// Reads three numbers such as "[17888, 1, 1]".
void read_three(JsonScalar value, int (&into)[3]) {
    if (value.kind != JsonKind::array) return;
    std::size_t at = 0, i = 0;
    const std::string_view text = value.text;
    while (at < text.size() && i < 3) {
        if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) {
            ++at;
            continue;
        }
        std::int64_t number = 0;
        for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0; ++at)
            number = std::min<std::int64_t>(number * 10 + (text[at] - '0'), std::numeric_limits<int>::max());
        into[i++] = static_cast<int>(number);
    }
}

float float_or(JsonScalar value, float otherwise) {
    if (value.kind != JsonKind::number && value.kind != JsonKind::string) return otherwise;
    const auto number = parse_double(value.text);
    return number && *number >= 0 && *number < 1e30 ? static_cast<float>(*number) : otherwise;
}

}  // namespace

// A row with the fields filled that all device rows share.
template <typename Row>
Row KinetoRows::device_row(const TraceEvent& event, const Times& times, const DeviceFacts& facts) const {
    Row row{.start = times.start, .end = times.end};
    row.device = facts.place.device;
    row.stream = facts.place.stream;
    row.correlation = facts.correlation;
    row.global_pid = facts.global_pid;
    row.context = int_or(event[EventKey::context], 1);
    if constexpr (requires { row.graph_node; }) {
        row.graph_node = std::max<std::int64_t>(integer_or(event[EventKey::graph_node], -1), -1);
        row.external_id = rank_id(facts.place.rank, facts.external_id);
    }
    return row;
}

KinetoRows::DeviceFacts KinetoRows::device_facts(const TraceEvent& event) {
    DeviceFacts facts;
    int device = int_or(event[EventKey::device], -1);
    if (device < 0) device = std::max(int_or(event[EventKey::pid], 0), 0);
    const JsonScalar stream = event[EventKey::stream];
    facts.place = actors_.device_place(device, stream_number(stream ? stream : event[EventKey::tid]));
    facts.correlation = rank_id(facts.place.rank, plain_id(event[EventKey::correlation]));
    facts.external_id = external_id(event);
    facts.global_pid = ours_ ? actors_.process_of_device(facts.place.device) : many_processes_ ? 0 : process_;
    return facts;
}

void KinetoRows::kernel(const TraceEvent& event, const Times& times) {
    const DeviceFacts facts = device_facts(event);
    auto row = device_row<schema::KernelRow>(event, times, facts);
    row.short_name = sink_.intern(event.text(EventKey::name));
    read_three(event[EventKey::grid], row.grid);
    read_three(event[EventKey::block], row.block);
    row.registers = std::max(int_or(event[EventKey::registers], 0), 0);
    row.static_shared_memory = std::max(int_or(event[EventKey::shared_memory], 0), 0);
    row.graph = std::max<std::int64_t>(integer_or(event[EventKey::graph_id], -1), -1);
    row.blocks_per_sm = float_or(event[EventKey::blocks_per_sm], -1);
    row.occupancy = float_or(event[EventKey::occupancy], -1);
    if (ours_ && event.has(EventKey::shardscope)) {
        const OurKernel details = read_our_kernel(event.text(EventKey::shardscope));
        if (!details.short_name.empty()) {
            row.demangled_name = row.short_name;
            row.short_name = sink_.intern(details.short_name);
        }
        sink_.add(row);
        if (details.collective) {
            schema::CollectiveRow collective = *details.collective;
            collective.rank = facts.place.rank;
            collective.correlation = row.correlation;
            sink_.add(collective);
        }
        return;
    }
    sink_.add(row);
    const auto [communication, is_new] = communication_.try_emplace(row.short_name, false);
    if (is_new) communication->second = schema::is_communication_kernel(event.text(EventKey::name));
    if (communication->second || event.has(EventKey::collective))
        collectives_.kernel(event, row.correlation, facts.external_id, facts.place.rank);
}

void KinetoRows::copy(const TraceEvent& event, const Times& times) {
    const DeviceFacts facts = device_facts(event);
    const CopyKinds kinds = copy_kinds(event.text(EventKey::name));
    auto row = device_row<schema::MemcpyRow>(event, times, facts);
    row.bytes = std::max<std::int64_t>(integer_or(event[EventKey::bytes], 0), 0);
    row.copy_kind = kinds.copy;
    row.src_kind = kinds.source;
    row.dst_kind = kinds.destination;
    row.src_device = int_or(event[EventKey::from_device], -1);
    row.dst_device = int_or(event[EventKey::to_device], -1);
    row.src_context = int_or(event[EventKey::from_context], -1);
    row.dst_context = int_or(event[EventKey::to_context], -1);
    sink_.add(row);
}

void KinetoRows::set(const TraceEvent& event, const Times& times) {
    const DeviceFacts facts = device_facts(event);
    auto row = device_row<schema::MemsetRow>(event, times, facts);
    row.bytes = std::max<std::int64_t>(integer_or(event[EventKey::bytes], 0), 0);
    row.mem_kind = memset_kind(event.text(EventKey::name));
    sink_.add(row);
}

void KinetoRows::synchronization(const TraceEvent& event, const Times& times) {
    const DeviceFacts facts = device_facts(event);
    auto row = device_row<schema::SynchronizationRow>(event, times, facts);
    const JsonScalar kind = event[EventKey::sync_kind];
    row.sync_type = sync_type(kind.is_text() && !kind.text.empty() ? kind.text : event.text(EventKey::name));
    if (row.sync_type == schema::kSyncContext) row.stream = -1;
    row.event_id = std::max<std::int64_t>(integer_or(event[EventKey::wait_on_event], -1), -1);
    sink_.add(row);
}

void KinetoRows::overhead(const TraceEvent& event, const Times& times) {
    schema::OverheadRow row{.start = times.start, .end = times.end};
    row.name = sink_.intern(event.text(EventKey::name));
    row.overhead_type = overhead_type(event.text(EventKey::name));
    sink_.add(row);
}

}  // namespace shardscope::traces::importer
