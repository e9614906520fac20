// What happened: rows into the arrays of their tables.
#include "traces/store/write/writer_impl.h"

namespace shardscope::traces {

namespace {

template <typename Row>
void add_external_id(Inserts& into, const Row& row) {
    if (row.external_id == 0) return;
    into.events.device_details.add({.start = row.start,
                                    .device = row.device,
                                    .stream = row.stream,
                                    .correlation = row.correlation,
                                    .external_id = row.external_id});
}
}  // namespace

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
        NvtxRow& name = inserts->events.nvtx.next();
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

void DatabaseWriter::add(const KernelRow& row) {
    impl_->write([&](Inserts& into) {
        into.events.kernels.add(row);
        if (row.external_id != 0 || row.blocks_per_sm >= 0 || row.occupancy >= 0) {
            into.events.device_details.add({.start = row.start,
                                            .device = row.device,
                                            .stream = row.stream,
                                            .correlation = row.correlation,
                                            .external_id = row.external_id,
                                            .blocks_per_sm = row.blocks_per_sm,
                                            .occupancy = row.occupancy});
        }
    });
}

void DatabaseWriter::add(const MemcpyRow& row) {
    impl_->write([&](Inserts& into) {
        into.events.memcpys.add(row);
        add_external_id(into, row);
    });
}

void DatabaseWriter::add(const MemsetRow& row) {
    impl_->write([&](Inserts& into) {
        into.events.memsets.add(row);
        add_external_id(into, row);
    });
}

void DatabaseWriter::add(const RuntimeRow& row) {
    impl_->write([&](Inserts& into) { into.events.runtime.add(row); });
}

void DatabaseWriter::add(const SynchronizationRow& row) {
    impl_->write([&](Inserts& into) { into.events.synchronizations.add(row); });
}

void DatabaseWriter::add(const CudaEventRow& row) {
    impl_->write([&](Inserts& into) { into.events.cuda_events.add(row); });
}

void DatabaseWriter::add(const OverheadRow& row) {
    impl_->write([&](Inserts& into) { into.events.overheads.add(row); });
}

void DatabaseWriter::add(const GraphTraceRow& row) {
    impl_->write([&](Inserts& into) { into.events.graph_traces.add(row); });
}

void DatabaseWriter::add(const CudaPoolRow& row) {
    impl_->write([&](Inserts& into) { into.events.memory_pools.add(row); });
}

void DatabaseWriter::add(const CollectiveRow& row) {
    impl_->write([&](Inserts& into) { into.events.collectives.add(row); });
}

void DatabaseWriter::add(const CounterRow& row) {
    impl_->write([&](Inserts& into) { into.events.counters.add(row); });
}

void DatabaseWriter::add(const CudaMemoryRow& row) {
    impl_->write(
        [&](Inserts& into) { into.events.memory_usage.add({.row = row, .name = impl_->strings[row.name]}); });
}

void DatabaseWriter::add(const RangeRow& row) {
    impl_->write([&](Inserts& into) {
        const std::int64_t domain = impl_->domain_of(row);
        NvtxRow& nvtx = into.events.nvtx.next();
        nvtx.range = row;
        nvtx.text = impl_->strings[row.text];
        nvtx.domain = domain;
        nvtx.range_id = row.event_type == kNvtxStartEnd ? impl_->next_range_id++ : -1;
    });
}

// Nsight's table of the same is made when the run ends (memory_usage.h).
void DatabaseWriter::add(const MemoryRow& row) {
    impl_->write([&](Inserts& into) { into.events.memory.add(row); });
}

void DatabaseWriter::add(const LinkRow& row) {
    impl_->write([&](Inserts& into) { into.events.links.add(row); });
}

void DatabaseWriter::add(const SegmentRow& row) {
    impl_->write([&](Inserts& into) { into.events.segments.add(row); });
}

void DatabaseWriter::add(const FlightRow& row) {
    impl_->write([&](Inserts& into) { into.events.flight_records.add(row); });
}

void DatabaseWriter::add(const StepRow& row) {
    impl_->write([&](Inserts& into) {
        into.tables.steps.integer(row.rank)
            .integer(row.step)
            .integer(row.start)
            .integer(row.end)
            .integer(row.global_tid)
            .end_row();
    });
}

void DatabaseWriter::add(const LossRow& row) {
    impl_->write([&](Inserts& into) { into.tables.losses.integer(row.step).real(row.loss).end_row(); });
}

void DatabaseWriter::add(const NcclOperationRow& row) {
    impl_->write([&](Inserts& into) {
        BatchInsert& to = into.tables.nccl_operations;
        const auto text = [&](const std::string& value) { value.empty() ? to.null() : to.text(value); };
        to.integer(static_cast<std::int64_t>(row.communicator)).integer(row.global_pid);
        row.global_tid != 0 ? to.integer(row.global_tid) : to.null();
        to.integer(row.rank).integer(static_cast<int>(row.operation)).id(row.sequence).integer(row.start);
        row.end ? to.integer(*row.end) : to.null();
        to.id(row.count);
        text(row.data_type);
        to.id(row.root);
        text(row.algorithm);
        text(row.protocol);
        to.id(row.channels).id(row.warps).end_row();
    });
}

}  // namespace shardscope::traces
