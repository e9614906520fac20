// How each kind of row is stored: mostly as a row of its table, according to the schema.
#include <fmt/core.h>

#include "traces/store/write/writer_impl.h"

namespace shardscope::traces {

std::int64_t DatabaseWriter::Impl::domain_id(StringId domain) {
    if (domain == StringId::empty) return 0;
    auto it = domain_ids.find(domain);
    if (it == domain_ids.end()) {
        it = domain_ids.emplace(domain, strings[domain] == "NCCL" ? 1 : next_domain++).first;
    }
    return it->second;
}

std::int64_t DatabaseWriter::Impl::domain_of(const RangeRow& row) {
    if (row.domain == StringId::empty) return 0;
    const std::int64_t pid = row.global_tid & kPidMask;
    if (last_domain.domain == row.domain && last_domain.pid == pid) return last_domain.id;
    const std::int64_t id = domain_id(row.domain);
    last_domain = {row.domain, pid, id};
    if (domains.emplace(id, pid).second) {
        NvtxRow& name = inserts->of<NvtxRow>().next();
        name = {.range = {.start = row.start,
                          .end = {},
                          .event_type = kNvtxDomainCreate,
                          .text = row.domain,
                          .global_tid = row.global_tid,
                          .color = {},
                          .category = {},
                          .end_global_tid = {},
                          .payload = {},
                          .binary = {}},
                .text = strings[row.domain],
                .domain = id};
    }
    return id;
}

void DatabaseWriter::Impl::write_cuda_device(const GpuRow& row) {
    if (!cuda_devices.emplace(row.device, row.pid).second) return;
    inserts->of<CudaDeviceRow>().add({.device = row.device,
                                      .cuda_device = row.cuda_device,
                                      .pid = row.pid,
                                      .uuid = row.uuid,
                                      .multiprocessors = row.multiprocessors});
}

struct DatabaseWriter::Storing {
    using Writer = DatabaseWriter::Impl;

    template <typename Row>
    static void store(Writer&, Inserts& into, const Row& row) {
        into.of<Row>().add(row);
    }

    // --- events --------------------------------------------------------------------------------------------

    static void store(Writer&, Inserts& into, const KernelRow& row) {
        into.of<KernelRow>().add(row);
        detail(into, row, row.blocks_per_sm, row.occupancy);
    }
    static void store(Writer&, Inserts& into, const MemcpyRow& row) {
        into.of<MemcpyRow>().add(row);
        detail(into, row);
    }
    static void store(Writer&, Inserts& into, const MemsetRow& row) {
        into.of<MemsetRow>().add(row);
        detail(into, row);
    }
    template <typename Row>
    static void detail(Inserts& into, const Row& row, float blocks_per_sm = -1, float occupancy = -1) {
        if (row.external_id == 0 && blocks_per_sm < 0 && occupancy < 0) return;
        into.of<DeviceDetailRow>().add({.start = row.start,
                                        .device = row.device,
                                        .stream = row.stream,
                                        .correlation = row.correlation,
                                        .external_id = row.external_id,
                                        .blocks_per_sm = blocks_per_sm,
                                        .occupancy = occupancy});
    }

    static void store(Writer& writer, Inserts& into, const CudaMemoryRow& row) {
        into.of<MemoryUsageRow>().add({.memory = row, .name = writer.strings[row.name]});
    }

    static void store(Writer& writer, Inserts& into, const RangeRow& row) {
        const std::int64_t domain = writer.domain_of(row);
        NvtxRow& nvtx = into.of<NvtxRow>().next();
        nvtx.range = row;
        nvtx.text = writer.strings[row.text];
        nvtx.domain = domain;
        nvtx.range_id = row.event_type == kNvtxStartEnd ? writer.next_range_id++ : -1;
    }

    // --- participants: each one once -----------------------------------------------------------------------

    static void store(Writer& writer, Inserts& into, const ThreadRow& row) {
        into.of<ThreadNameRow>().add({writer.strings.intern(row.name), row.global_tid});
        if (row.rank >= 0) into.of<RankThreadRow>().add({row.global_tid, row.rank});
    }

    static void store(Writer& writer, Inserts& into, const RankRow& row) {
        into.of<RankRow>().add(row);
        if (row.global_tid != 0) into.of<RankThreadRow>().add({row.global_tid, row.rank});
        GpuRow gpu{.device = row.device, .cuda_device = row.device, .pid = row.global_pid >> 24 & 0xFFFFFF};
        gpu.name = row.device_name;
        gpu.memory = row.device_memory;
        if (writer.gpus.emplace(row.device, false).second) into.of<GpuRow>().add(gpu);
        writer.write_cuda_device(gpu);
    }

    static void store(Writer& writer, Inserts& into, const GpuRow& row) {
        const auto [known_gpu, is_new] = writer.gpus.emplace(row.device, true);
        if (is_new || !known_gpu->second) {
            if (!is_new) {  // an earlier RankRow added it with fewer facts
                into.flush();
                writer.database.execute(fmt::format("DELETE FROM TARGET_INFO_GPU WHERE id = {}", row.device));
                known_gpu->second = true;
            }
            into.of<GpuRow>().add(row);
        }
        writer.write_cuda_device(row);
    }

    static void store(Writer& writer, Inserts& into, const CudaContextRow& row) {
        if (writer.contexts.emplace(row.pid, row.context).second) into.of<CudaContextRow>().add(row);
    }

    static void store(Writer& writer, Inserts& into, const CudaStreamRow& row) {
        if (writer.cuda_streams.emplace(std::pair(row.pid, row.context), row.stream).second)
            into.of<CudaStreamRow>().add(row);
    }

    static void store(Writer& writer, Inserts& into, const PayloadSchemaRow& row) {
        const std::int64_t domain = writer.domain_id(row.domain);
        if (!writer.payload_schemas.emplace(domain, row.id).second) return;
        into.of<StoredSchemaRow>().add({domain, row});
        for (std::size_t i = 0; i < row.entries.size(); ++i)
            into.of<SchemaEntryRow>().add({domain, row.id, i, row.entries[i]});
    }

    static void store(Writer& writer, Inserts& into, const PayloadEnumRow& row) {
        const std::int64_t domain = writer.domain_id(row.domain);
        if (!writer.payload_enums.emplace(domain, row.id).second) return;
        into.of<StoredEnumRow>().add({domain, row});
        for (std::size_t i = 0; i < row.entries.size(); ++i)
            into.of<EnumEntryRow>().add({domain, row.id, i, row.entries[i]});
    }

    static void store(Writer& writer, Inserts& into, const ScopeRow& row) {
        const std::int64_t domain = writer.domain_id(row.domain);
        if (writer.scopes.emplace(domain, row.id).second) into.of<StoredScopeRow>().add({domain, row});
    }
};

void Inserts::flush() {
    const auto flush_one = [](auto& insert) {
        if constexpr (requires { insert->flush(); }) {
            if (insert) insert->flush();
        }
    };
    std::apply([&](auto&... inserts) { (flush_one(inserts), ...); }, rows_);
}

template <typename Row>
bool DatabaseWriter::Impl::has_room_for_event(const Row& row) {
    static const std::int64_t kEntries = bytes_of_index_entries(table_of<Row>());
    std::int64_t finishing = kEntries;
    if (const std::uint64_t sum = sum_of(row); limit.sums.insert(sum).second)
        finishing += SizeLimit::kNameSum;
    std::int64_t texts = 0;
    visit_names(row, [&](StringId id) { texts += static_cast<std::int64_t>(strings[id].size()); });
    if constexpr (std::is_same_v<Row, RangeRow>) {
        texts += static_cast<std::int64_t>(row.binary.size());
        finishing += page_waste(texts);
    }
    if constexpr (std::is_same_v<Row, KernelRow>) {
        if (strings[row.short_name].starts_with("nccl")) finishing += SizeLimit::kJoinedCollective;
    }
    // Without its texts a stored row is smaller than its struct.
    const std::int64_t bytes = static_cast<std::int64_t>(sizeof(Row)) + texts + finishing;
    if (!has_room_for(bytes)) {
        ++limit.refused;
        return false;
    }
    limit.added += bytes;
    limit.finishing += finishing;
    return true;
}

template <typename Row>
void DatabaseWriter::take(const Row& row) {
    if constexpr (kIsEvent<Row>) {
        if (impl_->limit.most > 0 && !impl_->has_room_for_event(row)) return;
    }
    impl_->write([&](Inserts& into) { Storing::store(*impl_, into, row); });
}

namespace {

template <typename... Rows>
auto takes(const std::variant<Rows...>*) {
    return std::tuple(static_cast<void (DatabaseWriter::*)(const Rows&)>(&DatabaseWriter::take<Rows>)...);
}
// Instantiates take() for every kind.
[[maybe_unused]] const auto kTakes = takes(static_cast<const AnyRow*>(nullptr));

}  // namespace

}  // namespace shardscope::traces
