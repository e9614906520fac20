// Who and what took part: rows into the small tables, each thing once.
#include <fmt/core.h>

#include "traces/store/plan/plan_rows.h"
#include "traces/store/write/writer_impl.h"

namespace shardscope::traces {

namespace {

std::int64_t as_integer(std::uint64_t value) {
    return static_cast<std::int64_t>(value);
}

// NULL where it is not known, or 0 where Nsight's exports have NULL for 0.
void known(BatchInsert& to, std::int64_t value) {
    value != 0 ? to.integer(value) : to.null();
}
void known(BatchInsert& to, const std::string& value) {
    value.empty() ? to.null() : to.text(value);
}

}  // namespace

void DatabaseWriter::add(const RunInfoRow& row) {
    impl_->write([&](Inserts& into) { into.tables.run.text(row.key).text(row.value).end_row(); });
}

void DatabaseWriter::add(const ProcessRow& row) {
    impl_->write([&](Inserts& into) {
        into.tables.processes.integer(row.global_pid).integer(row.pid).text(row.name).end_row();
    });
}

void DatabaseWriter::add(const ThreadRow& row) {
    impl_->write([&](Inserts& into) {
        const StringId name = impl_->strings.intern(row.name);
        into.tables.thread_names.integer(text_id(name)).integer(row.global_tid).end_row();
        if (row.rank >= 0) into.tables.threads.integer(row.global_tid).integer(row.rank).end_row();
    });
}

void DatabaseWriter::add(const StreamRow& row) {
    impl_->write([&](Inserts& into) {
        into.tables.streams.integer(row.rank).integer(row.stream).text(row.name).end_row();
    });
}

void DatabaseWriter::add(const ModuleRow& row) {
    impl_->write([&](Inserts& into) {
        into.tables.modules.integer(row.id)
            .id(row.parent)
            .text(row.name)
            .text(row.class_name)
            .text(row.path)
            .id(row.unit);
        into.tables.modules.integer(row.parameters).end_row();
    });
}

void DatabaseWriter::add(const UnitRow& row) {
    impl_->write([&](Inserts& into) {
        into.tables.units.integer(row.id)
            .id(row.module)
            .text(row.name)
            .integer(row.elements)
            .integer(row.padded_elements);
        into.tables.units.integer(row.shard_bytes).integer(row.bytes).end_row();
    });
}

void DatabaseWriter::add(const PredictionRow& row) {
    impl_->write([&](Inserts& into) {
        into.tables.predictions.integer(row.rank).integer(row.peak_bytes).text(row.where);
        for (const std::int64_t bytes : row.at_peak) into.tables.predictions.integer(bytes);
        into.tables.predictions.end_row();
    });
}

void DatabaseWriter::add(const PredictionPartRow& row) {
    impl_->write([&](Inserts& into) {
        into.tables.parts.integer(row.rank)
            .integer(static_cast<int>(row.kind))
            .id(row.id)
            .text(row.name)
            .integer(row.bytes)
            .end_row();
    });
}

void DatabaseWriter::add(const DiagnosticRow& row) {
    impl_->write([&](Inserts& into) {
        into.tables.diagnostics.integer(row.time)
            .integer(static_cast<int>(row.severity))
            .text(row.text)
            .end_row();
    });
}

void DatabaseWriter::add(const RankRow& row) {
    impl_->write([&](Inserts& into) {
        BatchInsert& ranks = into.tables.ranks;
        ranks.integer(row.rank).integer(row.device).integer(row.global_pid).integer(row.global_tid);
        ranks.text(row.host).integer(row.data).integer(row.shard).integer(row.tensor).integer(row.pipeline);
        ranks.id(row.local_rank);
        known(ranks, row.cpus);
        ranks.end_row();
        if (row.global_tid != 0) into.tables.threads.integer(row.global_tid).integer(row.rank).end_row();

        GpuRow gpu{.device = row.device, .cuda_device = row.device, .pid = row.global_pid >> 24 & 0xFFFFFF};
        gpu.name = row.device_name;
        gpu.memory = row.device_memory;
        if (impl_->gpus.emplace(row.device, false).second) impl_->write_gpu(gpu);
        impl_->write_cuda_device(gpu);
    });
}

void DatabaseWriter::add(const ClockRow& row) {
    impl_->write([&](Inserts& into) {
        into.tables.clocks.integer(row.rank)
            .integer(row.at_ns)
            .integer(row.offset_ns)
            .integer(row.uncertainty_ns)
            .end_row();
    });
}

void DatabaseWriter::add(const StopRow& row) {
    impl_->write([&](Inserts& into) {
        BatchInsert& to = into.tables.stops;
        to.integer(row.rank).integer(row.at_ns).id(row.first_rank).integer(row.lost ? 1 : 0);
        to.text(row.reason).text(row.waiting).end_row();
    });
}

void DatabaseWriter::add(const PlanRow& row) {
    impl_->write([&](Inserts& into) { insert_plan(into.tables.plans, row); });
}

void DatabaseWriter::add(const GpuRow& row) {
    impl_->write([&](Inserts& into) {
        const auto [known_gpu, is_new] = impl_->gpus.emplace(row.device, true);
        if (is_new || !known_gpu->second) {
            if (!is_new) {  // a RankRow told of it before, but less
                into.tables.flush();
                impl_->database.execute(fmt::format("DELETE FROM TARGET_INFO_GPU WHERE id = {}", row.device));
                known_gpu->second = true;
            }
            impl_->write_gpu(row);
        }
        impl_->write_cuda_device(row);
    });
}

void DatabaseWriter::Impl::write_gpu(const GpuRow& row) {
    BatchInsert& to = inserts->tables.gpus;
    const bool is_cuda = row.compute_major != 0;
    to.integer(kVmId).integer(row.device).text(row.name);
    known(to, row.bus_location);
    is_cuda ? to.integer(1) : to.null();
    known(to, row.l2_bytes);
    to.integer(row.memory);
    known(to, row.memory_bandwidth);
    known(to, row.clock_hz);
    known(to, row.multiprocessors);
    known(to, row.uuid);
    known(to, row.chip);
    to.integer(row.cuda_device);
    known(to, row.constant_bytes);
    known(to, row.max_registers_per_block);
    known(to, row.max_shared_per_block);
    known(to, row.max_shared_per_multiprocessor);
    known(to, row.max_registers_per_multiprocessor);
    known(to, row.warp_threads);
    known(to, row.copy_engines);
    known(to, row.max_warps_per_multiprocessor);
    known(to, row.max_blocks_per_multiprocessor);
    known(to, row.max_threads_per_block);
    for (int i = 0; i < 2; ++i) {  // the compute capability is the multiprocessor's version
        is_cuda ? to.integer(row.compute_major).integer(row.compute_minor) : to.null().null();
    }
    to.end_row();
}

void DatabaseWriter::Impl::write_cuda_device(const GpuRow& row) {
    if (!cuda_devices.emplace(row.device, row.pid).second) return;
    BatchInsert& to = inserts->tables.cuda_devices;
    to.integer(row.device).integer(row.cuda_device).integer(row.pid);
    known(to, row.uuid);
    known(to, row.multiprocessors);
    to.end_row();
}

void DatabaseWriter::add(const CudaContextRow& row) {
    impl_->write([&](Inserts& into) {
        if (!impl_->contexts.emplace(row.pid, row.context).second) return;
        into.tables.cuda_contexts.integer(row.null_stream)
            .integer(row.pid)
            .integer(row.device)
            .integer(row.context)
            .end_row();
    });
}

void DatabaseWriter::add(const CudaStreamRow& row) {
    impl_->write([&](Inserts& into) {
        if (!impl_->cuda_streams.emplace(std::pair(row.pid, row.context), row.stream).second) return;
        into.tables.cuda_streams.integer(row.stream)
            .integer(row.pid)
            .integer(row.context)
            .integer(row.priority)
            .integer(row.flag)
            .end_row();
    });
}

void DatabaseWriter::add(const NcclCommunicatorRow& row) {
    impl_->write([&](Inserts& into) {
        BatchInsert& to = into.tables.communicators;
        to.integer(as_integer(row.communicator)).integer(row.global_pid).integer(row.rank).integer(row.ranks);
        known(to, row.nodes);
        known(to, row.name);
        to.end_row();
    });
}

void DatabaseWriter::add(const PayloadSchemaRow& row) {
    impl_->write([&](Inserts& into) {
        const std::int64_t domain = impl_->domain_id(row.domain), id = as_integer(row.id);
        if (!impl_->payload_schemas.emplace(domain, row.id).second) return;
        BatchInsert& schema = into.tables.payload_schemas;
        schema.integer(domain).integer(id);
        known(schema, row.name);
        schema.integer(as_integer(row.type));
        known(schema, as_integer(row.flags));
        schema.integer(static_cast<std::int64_t>(row.entries.size())).integer(as_integer(row.size));
        known(schema, as_integer(row.align));
        schema.end_row();
        BatchInsert& to = into.tables.payload_entries;
        for (std::size_t i = 0; i < row.entries.size(); ++i) {
            const PayloadSchemaRow::Entry& entry = row.entries[i];
            to.integer(domain).integer(id).integer(static_cast<std::int64_t>(i));
            known(to, as_integer(entry.flags));
            to.integer(as_integer(entry.type));
            known(to, entry.name);
            known(to, entry.description);
            known(to, as_integer(entry.detail));
            known(to, as_integer(entry.offset));
            to.end_row();
        }
    });
}

void DatabaseWriter::add(const PayloadEnumRow& row) {
    impl_->write([&](Inserts& into) {
        const std::int64_t domain = impl_->domain_id(row.domain), id = as_integer(row.id);
        if (!impl_->payload_enums.emplace(domain, row.id).second) return;
        BatchInsert& enumeration = into.tables.payload_enums;
        enumeration.integer(domain).integer(id);
        known(enumeration, row.name);
        enumeration.integer(static_cast<std::int64_t>(row.entries.size())).integer(as_integer(row.size));
        enumeration.end_row();
        BatchInsert& to = into.tables.payload_values;
        for (std::size_t i = 0; i < row.entries.size(); ++i) {
            const PayloadEnumRow::Entry& entry = row.entries[i];
            to.integer(domain).integer(id).integer(static_cast<std::int64_t>(i));
            known(to, entry.name);
            known(to, as_integer(entry.value));
            to.integer(entry.is_flag ? 1 : 0).end_row();
        }
    });
}

void DatabaseWriter::add(const ScopeRow& row) {
    impl_->write([&](Inserts& into) {
        const std::int64_t domain = impl_->domain_id(row.domain);
        if (!impl_->scopes.emplace(domain, row.id).second) return;
        into.tables.scopes.integer(domain)
            .integer(as_integer(row.id))
            .integer(as_integer(row.parent))
            .text(row.path)
            .end_row();
    });
}

}  // namespace shardscope::traces
