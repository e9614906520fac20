// How each kind of row is stored: mostly as a row of its table, according to the schema.
#include <fmt/core.h>

#include "traces/store/write/writer_impl.h"

namespace shardscope::traces::store {

std::int64_t DatabaseWriter::Impl::domain_id(schema::StringId domain) {
    if (domain == schema::StringId::empty) return 0;
    auto it = domain_ids.find(domain);
    if (it == domain_ids.end()) {
        it = domain_ids.emplace(domain, strings[domain] == "NCCL" ? 1 : next_domain++).first;
    }
    return it->second;
}

std::int64_t DatabaseWriter::Impl::domain_of(const schema::RangeRow& row) {
    if (row.domain == schema::StringId::empty) return 0;
    const std::int64_t pid = row.global_tid & schema::kPidMask;
    if (last_domain.domain == row.domain && last_domain.pid == pid) return last_domain.id;
    const std::int64_t id = domain_id(row.domain);
    last_domain = {row.domain, pid, id};
    if (domains.emplace(id, pid).second) {
        schema::NvtxRow& name = inserts->of<schema::NvtxRow>().next();
        name = {.range = {.start = row.start,
                          .end = {},
                          .event_type = schema::kNvtxDomainCreate,
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

void DatabaseWriter::Impl::write_cuda_device(const schema::GpuRow& row) {
    if (!cuda_devices.emplace(row.device, row.pid).second) return;
    inserts->of<schema::CudaDeviceRow>().add({.device = row.device,
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

    static void store(Writer&, Inserts& into, const schema::KernelRow& row) {
        into.of<schema::KernelRow>().add(row);
        detail(into, row, row.blocks_per_sm, row.occupancy);
    }
    static void store(Writer&, Inserts& into, const schema::MemcpyRow& row) {
        into.of<schema::MemcpyRow>().add(row);
        detail(into, row);
    }
    static void store(Writer&, Inserts& into, const schema::MemsetRow& row) {
        into.of<schema::MemsetRow>().add(row);
        detail(into, row);
    }
    template <typename Row>
    static void detail(Inserts& into, const Row& row, float blocks_per_sm = -1, float occupancy = -1) {
        if (row.external_id == 0 && blocks_per_sm < 0 && occupancy < 0) return;
        into.of<schema::DeviceDetailRow>().add({.start = row.start,
                                                .device = row.device,
                                                .stream = row.stream,
                                                .correlation = row.correlation,
                                                .external_id = row.external_id,
                                                .blocks_per_sm = blocks_per_sm,
                                                .occupancy = occupancy});
    }

    static void store(Writer& writer, Inserts& into, const schema::CudaMemoryRow& row) {
        into.of<schema::MemoryUsageRow>().add({.memory = row, .name = writer.strings[row.name]});
    }

    static void store(Writer& writer, Inserts& into, const schema::RangeRow& row) {
        const std::int64_t domain = writer.domain_of(row);
        schema::NvtxRow& nvtx = into.of<schema::NvtxRow>().next();
        nvtx.range = row;
        nvtx.text = writer.strings[row.text];
        nvtx.domain = domain;
        nvtx.range_id = row.event_type == schema::kNvtxStartEnd ? writer.next_range_id++ : -1;
    }

    // --- participants: each one once -----------------------------------------------------------------------

    static void store(Writer& writer, Inserts& into, const schema::ThreadRow& row) {
        into.of<schema::ThreadNameRow>().add({writer.strings.intern(row.name), row.global_tid});
        if (row.rank >= 0) into.of<schema::RankThreadRow>().add({row.global_tid, row.rank});
    }

    static void store(Writer& writer, Inserts& into, const schema::RankRow& row) {
        into.of<schema::RankRow>().add(row);
        if (row.global_tid != 0) into.of<schema::RankThreadRow>().add({row.global_tid, row.rank});
        schema::GpuRow gpu{
            .device = row.device, .cuda_device = row.device, .pid = row.global_pid >> 24 & 0xFFFFFF};
        gpu.name = row.device_name;
        gpu.memory = row.device_memory;
        if (writer.gpus.emplace(row.device, false).second) into.of<schema::GpuRow>().add(gpu);
        writer.write_cuda_device(gpu);
    }

    static void store(Writer& writer, Inserts& into, const schema::GpuRow& row) {
        const auto [known_gpu, is_new] = writer.gpus.emplace(row.device, true);
        if (is_new || !known_gpu->second) {
            if (!is_new) {  // an earlier RankRow added it with fewer facts
                into.flush();
                writer.database.execute(fmt::format("DELETE FROM TARGET_INFO_GPU WHERE id = {}", row.device));
                known_gpu->second = true;
            }
            into.of<schema::GpuRow>().add(row);
        }
        writer.write_cuda_device(row);
    }

    static void store(Writer& writer, Inserts& into, const schema::CudaContextRow& row) {
        if (writer.contexts.emplace(row.pid, row.context).second) into.of<schema::CudaContextRow>().add(row);
    }

    static void store(Writer& writer, Inserts& into, const schema::CudaStreamRow& row) {
        if (writer.cuda_streams.emplace(std::pair(row.pid, row.context), row.stream).second)
            into.of<schema::CudaStreamRow>().add(row);
    }

    static void store(Writer& writer, Inserts& into, const schema::PayloadSchemaRow& row) {
        const std::int64_t domain = writer.domain_id(row.domain);
        if (!writer.payload_schemas.emplace(domain, row.id).second) return;
        into.of<schema::StoredSchemaRow>().add({domain, row});
        for (std::size_t i = 0; i < row.entries.size(); ++i)
            into.of<schema::SchemaEntryRow>().add({domain, row.id, i, row.entries[i]});
    }

    static void store(Writer& writer, Inserts& into, const schema::PayloadEnumRow& row) {
        const std::int64_t domain = writer.domain_id(row.domain);
        if (!writer.payload_enums.emplace(domain, row.id).second) return;
        into.of<schema::StoredEnumRow>().add({domain, row});
        for (std::size_t i = 0; i < row.entries.size(); ++i)
            into.of<schema::EnumEntryRow>().add({domain, row.id, i, row.entries[i]});
    }

    static void store(Writer& writer, Inserts& into, const schema::ScopeRow& row) {
        const std::int64_t domain = writer.domain_id(row.domain);
        if (writer.scopes.emplace(domain, row.id).second)
            into.of<schema::StoredScopeRow>().add({domain, row});
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
    schema::visit_names(row,
                        [&](schema::StringId id) { texts += static_cast<std::int64_t>(strings[id].size()); });
    if constexpr (std::is_same_v<Row, schema::RangeRow>) {
        texts += static_cast<std::int64_t>(row.binary.size());
        finishing += page_waste(texts);
    }
    if constexpr (std::is_same_v<Row, schema::KernelRow>) {
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
[[maybe_unused]] const auto kTakes = takes(static_cast<const schema::AnyRow*>(nullptr));

}  // namespace

}  // namespace shardscope::traces::store
