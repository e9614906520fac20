// The state of a DatabaseWriter, for the files that implement it: writer.cpp (from creation to the end) and
// writer_rows.cpp (how a row is stored). Internal to the store.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>

#include "traces/schema/stored_rows.h"
#include "traces/store/columns/trace.h"
#include "traces/store/sqlite/disk_reserve.h"
#include "traces/store/sqlite/no_space.h"
#include "traces/store/sqlite/row_insert.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/size_limit.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {

// Prepared statements: one insert for each kind of row that has a table, made when its first row arrives, and
// those of tables whose rows are parts of a kind.
class Inserts {
  public:
    explicit Inserts(Database& database) : database_(database) {}

    template <typename Row>
    RowInsert<Row>& of() {
        auto& insert = std::get<Place<Row>>(rows_);
        if (!insert) insert.emplace(database_);
        return *insert;
    }
    void flush();

  private:
    template <typename Row>
    struct NoTable {};
    template <typename Row, bool HasTable = requires { Row::kTable; }
    > struct PlaceOf { using type = NoTable<Row>; };
    template <typename Row>
    struct PlaceOf<Row, true> {
        using type = std::optional<RowInsert<Row>>;
    };
    template <typename Row>
    using Place = typename PlaceOf<Row>::type;
    template <typename Rows, typename... More>
    struct Places;
    template <typename... Rows, typename... More>
    struct Places<std::variant<Rows...>, More...> {
        using type = std::tuple<Place<Rows>..., Place<More>...>;
    };

    Database& database_;
    Places<schema::AnyRow, schema::NvtxRow, schema::MemoryUsageRow, schema::DeviceDetailRow,
           schema::ThreadNameRow, schema::RankThreadRow, schema::CudaDeviceRow, schema::StringRow,
           schema::StoredSchemaRow, schema::SchemaEntryRow, schema::StoredEnumRow, schema::EnumEntryRow,
           schema::StoredScopeRow>::type rows_;
};

struct DatabaseWriter::Impl {
    explicit Impl(const WriterOptions& options);

    Database database;
    DiskReserve reserve;
    std::optional<Inserts> inserts;  // gone once the file is finished
    StringTable strings;
    std::size_t strings_written = 0;
    std::int64_t first_ns = 0;  // WriterOptions::first_ns
    SizeLimit limit;
    std::int64_t first_pages = 0;  // of the file without events
    bool in_transaction = false;
    std::string failure;  // the first one; nothing is written after it

    std::map<int, bool> gpus;  // devices in TARGET_INFO_GPU, and whether from a GpuRow
    // Keys of rows that are written once: (device, process), (process, context), (context, stream) of a
    // process ...
    std::set<std::pair<std::int64_t, std::int64_t>> cuda_devices, contexts, domains;
    std::set<std::pair<std::pair<std::int64_t, std::int64_t>, std::int64_t>> cuda_streams;
    std::set<std::pair<std::int64_t, std::uint64_t>> payload_schemas, payload_enums, scopes;  // (domain, id)

    std::unordered_map<schema::StringId, std::int64_t> domain_ids;
    std::int64_t next_domain = 2;  // NCCL is 1 in every file
    std::int64_t next_range_id = 1;
    struct {
        schema::StringId domain = schema::StringId::empty;
        std::int64_t pid = 0, id = 0;
    } last_domain;  // the latest result of domain_of()

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
        } catch (const NoSpaceError& error) {
            failure = error.what();
            say_that_disk_was_full();
            throw;
        } catch (const StoreError& error) {
            failure = error.what();
            throw;
        }
    }

    void commit();
    void say_that_disk_was_full();
    std::int64_t finished_bytes();
    // Whether `bytes` more fit; if not, the limit is reached from now on.
    bool has_room_for(std::int64_t bytes);
    template <typename Row>
    bool has_room_for_event(const Row& row);
    schema::StringId intern_within_limit(std::string_view text);
    std::int64_t domain_id(schema::StringId domain);  // its number; 0 is the default domain
    // The same for a range; the domain's name is written once for each process that uses it.
    std::int64_t domain_of(const schema::RangeRow& row);
    void write_cuda_device(const schema::GpuRow& row);
};

}  // namespace shardscope::traces::store
