// Rows into batched inserts. One transaction from commit to commit.
#include "traces/store/writer.h"

#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "traces/schema/schema.h"
#include "traces/store/create.h"
#include "traces/store/sqlite.h"
#include "traces/store/table_inserts.h"
#include "traces/store/trace.h"

namespace shardscope::traces {

namespace {

constexpr std::int64_t kNotApplicable = 4294967295;  // Nsight's "no stream", "no event"
constexpr std::int64_t kVmId = std::int64_t{1} << 48;
constexpr std::int64_t kPageSize = 16384;         // as create_database() chose
constexpr std::int64_t kCompactBelow = 32 << 20;  // bytes
constexpr std::int64_t kPidMask = ~std::int64_t{0xFFFFFF};

// Opened once the file exists, with a journal that readers can follow while it is written.
Database open_for_writing(const std::string& path) {
    Database database(path, Database::Mode::read_write);
    database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384;");
    return database;
}

}  // namespace

struct DatabaseWriter::Impl {
    explicit Impl(const WriterOptions& options)
        : database(open_for_writing(create_database(options))), inserts(std::in_place, database) {}

    Database database;
    std::optional<TableInserts> inserts;  // gone once the file is finished
    StringTable strings;
    std::size_t strings_written = 0;
    std::map<int, RankRow> ranks;
    std::set<int> devices;
    std::unordered_map<StringId, std::int64_t> domain_ids;
    std::set<std::pair<std::int64_t, std::int64_t>> domains_written;  // (domain, process)
    std::int64_t next_range_id = 1;
    bool in_transaction = false;
    std::string failure;  // the first one; nothing is written after it

    // Runs `body` within a transaction. The first failure ends all writing.
    template <typename Body>
    void write(Body body) {
        if (!failure.empty()) throw StoreError(failure);
        if (!inserts) throw StoreError(database.path() + " is finished; open another trace to write to");
        try {
            if (!in_transaction) {
                database.execute("BEGIN");
                in_transaction = true;
            }
            body(*inserts);
        } catch (const StoreError& error) {
            failure = error.what();
            throw;
        }
    }

    void write_strings(TableInserts& into) {
        for (; strings_written < strings.size(); ++strings_written) {
            into.strings.integer(static_cast<std::int64_t>(strings_written))
                .text(strings[static_cast<StringId>(strings_written)])
                .end_row();
        }
    }

    void commit() {
        write([this](TableInserts& into) {
            write_strings(into);
            into.flush();
            database.execute("COMMIT");
            in_transaction = false;
        });
    }

    // The domain's number; its name is written once for each process that uses it.
    std::int64_t domain_id(const RangeRow& row) {
        if (row.domain == StringId::empty) return 0;
        auto it = domain_ids.find(row.domain);
        if (it == domain_ids.end()) {
            // NCCL is 1 in every file, the others follow.
            const bool nccl = strings[row.domain] == "NCCL";
            it = domain_ids.emplace(row.domain, nccl ? 1 : next_domain++).first;
        }
        const std::int64_t pid = row.global_tid & kPidMask;
        if (domains_written.emplace(it->second, pid).second) {
            inserts->nvtx.integer(row.start)
                .null()
                .integer(kNvtxDomainCreate)
                .null()
                .null()
                .null()
                .text(strings[row.domain])
                .integer(row.global_tid)
                .integer(text_id(row.domain))
                .integer(it->second)
                .null()
                .end_row();
        }
        return it->second;
    }
    std::int64_t next_domain = 2;

    // Large pages are fast to write, but most tables of a small run fill little of theirs.
    void compact() {
        if (database.integer("PRAGMA page_count") * kPageSize > kCompactBelow) return;
        database.execute("PRAGMA page_size = 4096; VACUUM;");
    }

    static std::int64_t text_id(StringId id) { return static_cast<std::int64_t>(id); }
};

DatabaseWriter::DatabaseWriter(const WriterOptions& options) : impl_(std::make_unique<Impl>(options)) {
    commit();  // a reader of the first moment finds the journal in order
}
DatabaseWriter::~DatabaseWriter() = default;

StringId DatabaseWriter::intern(std::string_view text) {
    return impl_->strings.intern(text);
}

void DatabaseWriter::add(const KernelRow& row) {
    impl_->write([&](TableInserts& into) {
        const StringId full = row.demangled_name != StringId::empty ? row.demangled_name : row.short_name;
        auto& k = into.kernels;
        k.integer(row.start)
            .integer(row.end)
            .integer(row.device)
            .integer(row.stream)
            .integer(row.correlation);
        k.integer(row.global_pid).integer(Impl::text_id(full)).integer(Impl::text_id(row.short_name));
        for (const int size : row.grid) k.integer(size);
        for (const int size : row.block) k.integer(size);
        k.end_row();
    });
}

void DatabaseWriter::add(const MemcpyRow& row) {
    impl_->write([&](TableInserts& into) {
        into.memcpys.integer(row.start)
            .integer(row.end)
            .integer(row.device)
            .integer(row.stream)
            .integer(row.correlation)
            .integer(row.global_pid)
            .integer(row.bytes)
            .integer(row.copy_kind)
            .integer(row.src_kind)
            .integer(row.dst_kind)
            .end_row();
    });
}

void DatabaseWriter::add(const MemsetRow& row) {
    impl_->write([&](TableInserts& into) {
        into.memsets.integer(row.start)
            .integer(row.end)
            .integer(row.device)
            .integer(row.stream)
            .integer(row.correlation)
            .integer(row.global_pid)
            .integer(row.value)
            .integer(row.bytes)
            .integer(row.mem_kind)
            .end_row();
    });
}

void DatabaseWriter::add(const RuntimeRow& row) {
    impl_->write([&](TableInserts& into) {
        into.runtime.integer(row.start)
            .integer(row.end)
            .integer(row.driver ? 1 : 0)
            .integer(row.global_tid)
            .integer(row.correlation)
            .integer(Impl::text_id(row.name))
            .integer(row.return_value)
            .end_row();
    });
}

void DatabaseWriter::add(const SynchronizationRow& row) {
    impl_->write([&](TableInserts& into) {
        into.synchronizations.integer(row.start)
            .integer(row.end)
            .integer(row.device)
            .integer(row.stream < 0 ? kNotApplicable : row.stream)
            .integer(row.correlation)
            .integer(row.global_pid)
            .integer(row.sync_type)
            .integer(row.event_id < 0 ? kNotApplicable : row.event_id)
            .end_row();
    });
}

void DatabaseWriter::add(const RangeRow& row) {
    impl_->write([&](TableInserts& into) {
        const std::int64_t domain = impl_->domain_id(row);
        auto& n = into.nvtx;
        n.integer(row.start);
        row.end ? n.integer(*row.end) : n.null();
        n.integer(row.event_type);
        row.event_type == kNvtxStartEnd ? n.integer(impl_->next_range_id++) : n.null();
        row.category ? n.integer(*row.category) : n.null();
        row.color ? n.integer(*row.color) : n.null();
        n.text(impl_->strings[row.text]).integer(row.global_tid).integer(Impl::text_id(row.text));
        n.integer(domain).id(row.module).end_row();
    });
}

void DatabaseWriter::add(const CollectiveRow& row) {
    impl_->write([&](TableInserts& into) {
        into.collectives.integer(row.rank)
            .integer(row.correlation)
            .integer(static_cast<int>(row.operation))
            .integer(row.bytes)
            .integer(row.padding)
            .integer(row.group)
            .integer(row.group_size)
            .integer(row.sequence)
            .id(row.unit)
            .integer(static_cast<int>(row.phase))
            .end_row();
    });
}

void DatabaseWriter::add(const MemoryRow& row) {
    impl_->write([&](TableInserts& into) {
        const auto address = static_cast<std::int64_t>(row.address);
        into.memory.integer(row.time)
            .integer(row.rank)
            .integer(address)
            .integer(row.bytes)
            .integer(static_cast<int>(row.category))
            .integer(static_cast<int>(row.space))
            .integer(static_cast<int>(row.phase))
            .id(row.unit)
            .id(row.module)
            .id(row.stream)
            .integer(Impl::text_id(row.name))
            .end_row();
        if (row.space == MemorySpace::host) return;  // Nsight's table knows what CUDA allocates only
        const auto rank = impl_->ranks.find(row.rank);
        const bool known = rank != impl_->ranks.end();
        into.memory_usage.integer(row.time)
            .integer(known ? rank->second.global_pid : 0)
            .integer(known ? rank->second.device : row.rank)
            .integer(address)
            .integer(row.bytes < 0 ? -row.bytes : row.bytes)
            .integer(row.space == MemorySpace::device ? kMemKindDevice : kMemKindPinned)
            .integer(row.bytes < 0 ? 1 : 0)
            .text(impl_->strings[row.name])
            .id(row.stream)
            .end_row();
    });
}

void DatabaseWriter::add(const CounterRow& row) {
    impl_->write([&](TableInserts& into) {
        into.counters.integer(row.time)
            .integer(row.rank)
            .integer(Impl::text_id(row.name))
            .real(row.value)
            .end_row();
    });
}

void DatabaseWriter::add(const StepRow& row) {
    impl_->write([&](TableInserts& into) {
        into.steps.integer(row.rank)
            .integer(row.step)
            .integer(row.start)
            .integer(row.end)
            .integer(row.global_tid)
            .end_row();
    });
}

void DatabaseWriter::add(const LossRow& row) {
    impl_->write([&](TableInserts& into) { into.losses.integer(row.step).real(row.loss).end_row(); });
}

void DatabaseWriter::add(const RunInfoRow& row) {
    impl_->write([&](TableInserts& into) { into.run.text(row.key).text(row.value).end_row(); });
}

void DatabaseWriter::add(const RankRow& row) {
    impl_->write([&](TableInserts& into) {
        impl_->ranks[row.rank] = row;
        into.ranks.integer(row.rank)
            .integer(row.device)
            .integer(row.global_pid)
            .integer(row.global_tid)
            .text(row.host);
        into.ranks.integer(row.data).integer(row.shard).integer(row.tensor).integer(row.pipeline).end_row();
        if (row.global_tid != 0) into.threads.integer(row.global_tid).integer(row.rank).end_row();
        if (!impl_->devices.insert(row.device).second) return;
        into.gpus.integer(kVmId).integer(row.device).text(row.device_name).integer(row.device_memory);
        into.gpus.integer(row.device).end_row();
        into.cuda_devices.integer(row.device)
            .integer(row.device)
            .integer(row.global_pid >> 24 & 0xFFFFFF)
            .end_row();
    });
}

void DatabaseWriter::add(const ProcessRow& row) {
    impl_->write([&](TableInserts& into) {
        into.processes.integer(row.global_pid).integer(row.pid).text(row.name).end_row();
    });
}

void DatabaseWriter::add(const ThreadRow& row) {
    impl_->write([&](TableInserts& into) {
        const StringId name = impl_->strings.intern(row.name);
        into.thread_names.integer(Impl::text_id(name)).integer(row.global_tid).end_row();
        if (row.rank >= 0) into.threads.integer(row.global_tid).integer(row.rank).end_row();
    });
}

void DatabaseWriter::add(const StreamRow& row) {
    impl_->write([&](TableInserts& into) {
        into.streams.integer(row.rank).integer(row.stream).text(row.name).end_row();
    });
}

void DatabaseWriter::add(const ModuleRow& row) {
    impl_->write([&](TableInserts& into) {
        into.modules.integer(row.id)
            .id(row.parent)
            .text(row.name)
            .text(row.class_name)
            .text(row.path)
            .id(row.unit);
        into.modules.integer(row.parameters).end_row();
    });
}

void DatabaseWriter::add(const UnitRow& row) {
    impl_->write([&](TableInserts& into) {
        into.units.integer(row.id)
            .id(row.module)
            .text(row.name)
            .integer(row.elements)
            .integer(row.padded_elements);
        into.units.integer(row.shard_bytes).integer(row.bytes).end_row();
    });
}

void DatabaseWriter::add(const PredictionRow& row) {
    impl_->write([&](TableInserts& into) {
        into.predictions.integer(row.rank).integer(row.peak_bytes).text(row.where);
        for (const std::int64_t bytes : row.at_peak) into.predictions.integer(bytes);
        into.predictions.end_row();
    });
}

void DatabaseWriter::add(const PredictionPartRow& row) {
    impl_->write([&](TableInserts& into) {
        into.parts.integer(row.rank)
            .integer(static_cast<int>(row.kind))
            .id(row.id)
            .text(row.name)
            .integer(row.bytes)
            .end_row();
    });
}

void DatabaseWriter::add(const DiagnosticRow& row) {
    impl_->write([&](TableInserts& into) {
        into.diagnostics.integer(row.time).integer(static_cast<int>(row.severity)).text(row.text).end_row();
    });
}

void DatabaseWriter::commit() {
    impl_->commit();
}

void DatabaseWriter::finish(std::int64_t duration_ns, std::int64_t dropped) {
    if (dropped > 0) {
        add(DiagnosticRow{.time = duration_ns,
                          .severity = Severity::warning,
                          .text = fmt::format("{} events were dropped because a buffer was full", dropped)});
    }
    impl_->write([&](TableInserts&) {
        impl_->database.execute(
            fmt::format("INSERT INTO ANALYSIS_DETAILS VALUES ({0}, {1}, 0, {1});"
                        "UPDATE SHARD_STATE SET ended = 1, dropped = {2};",
                        kVmId, duration_ns, dropped));
    });
    impl_->commit();
    impl_->write([&](TableInserts&) {
        impl_->database.execute(indexing_sql() + "PRAGMA analysis_limit = 1000; ANALYZE;");
    });
    impl_->commit();
    impl_->inserts.reset();
    try {
        impl_->database.execute("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;");
        impl_->compact();
    } catch (const StoreError&) {
        // Someone reads the file just now. All is written; whoever closes it last removes the journal.
    }
    impl_->database.close();
}

}  // namespace shardscope::traces
