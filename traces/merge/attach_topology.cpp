#include "traces/merge/attach_topology.h"

#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>

#include "traces/merge/merge.h"
#include "traces/store/apart.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/sqlite/row_insert.h"
#include "traces/store/sqlite/temporary_file.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::merge {

namespace fs = std::filesystem;

namespace {

using DeviceKey = std::tuple<std::string, std::string, int>;                     // host, kind, number
using PairKey = std::tuple<std::string, std::string, std::string, std::string>;  // host, from, host, to

DeviceKey key_of(const schema::DeviceRow& row) {
    return {row.host, row.kind, row.number};
}
PairKey key_of(const schema::TopologyRow& row) {
    return {row.host, row.from, row.to_host, row.to};
}
PairKey back_of(const schema::TopologyRow& row) {
    return {row.to_host, row.to, row.host, row.from};
}

void take(std::string& known, const std::string& told) {
    if (!told.empty()) known = told;
}
template <typename Number>
void take(Number& known, Number told) {
    if (told >= 0) known = told;
}

void add(schema::DeviceRow& known, const schema::DeviceRow& told) {
    take(known.name, told.name);
    take(known.bus, told.bus);
    take(known.numa, told.numa);
    take(known.memory_bytes, told.memory_bytes);
    take(known.bytes_per_second, told.bytes_per_second);
    take(known.power_limit_watts, told.power_limit_watts);
    take(known.cpus, told.cpus);
}

void add(schema::TopologyRow& known, const schema::TopologyRow& told) {
    if (!told.link.empty()) {
        if (known.link != told.link) known.bytes_per_second = -1;  // it was that of another link
        known.link = told.link;
        known.lanes = told.lanes;
    }
    take(known.bytes_per_second, told.bytes_per_second);
    take(known.read, told.read);
    take(known.write, told.write);
    take(known.nvlink, told.nvlink);
    take(known.atomics, told.atomics);
    take(known.source, told.source);
}

double real_or(const store::Statement& row, int column, double otherwise) {
    return row.is_null(column) ? otherwise : row.real(column);
}

std::map<DeviceKey, schema::DeviceRow> read_devices(store::Database& database) {
    std::map<DeviceKey, schema::DeviceRow> devices;
    store::Statement rows(
        database,
        "SELECT host, kind, number, name, bus, numa, memory, bandwidth, powerLimit, cpus, visible "
        "FROM SHARD_DEVICES");
    while (rows.step()) {
        schema::DeviceRow row;
        row.host = rows.text(0);
        row.kind = rows.text(1);
        row.number = static_cast<int>(rows.integer(2));
        row.name = rows.text(3);
        row.bus = rows.text(4);
        row.numa = static_cast<int>(rows.integer_or(5, -1));
        row.memory_bytes = rows.integer_or(6, -1);
        row.bytes_per_second = real_or(rows, 7, -1);
        row.power_limit_watts = real_or(rows, 8, -1);
        row.cpus = rows.text(9);
        row.visible = rows.integer(10) != 0;
        devices.insert_or_assign(key_of(row), row);
    }
    return devices;
}

std::map<PairKey, schema::TopologyRow> read_pairs(store::Database& database) {
    std::map<PairKey, schema::TopologyRow> pairs;
    store::Statement rows(
        database,
        "SELECT host, fromDevice, toHost, toDevice, link, lanes, bandwidth, p2pRead, p2pWrite, "
        "p2pNvlink, p2pAtomics, source FROM SHARD_TOPOLOGY");
    while (rows.step()) {
        schema::TopologyRow row;
        row.host = rows.text(0);
        row.from = rows.text(1);
        row.to_host = rows.text(2);
        row.to = rows.text(3);
        row.link = rows.text(4);
        row.lanes = static_cast<int>(rows.integer_or(5, -1));
        row.bytes_per_second = real_or(rows, 6, -1);
        row.read = rows.text(7);
        row.write = rows.text(8);
        row.nvlink = rows.text(9);
        row.atomics = rows.text(10);
        row.source = rows.text(11);
        pairs.insert_or_assign(key_of(row), row);
    }
    return pairs;
}

template <typename Rows>
void write_all(store::Database& database, const Rows& rows) {
    using Row = typename Rows::mapped_type;
    database.execute("DELETE FROM " + std::string(Row::kTable));
    store::RowInsert<Row> insert(database);
    for (const auto& [key, row] : rows) insert.add(row);
    insert.flush();
}

void write(store::Database& database, const AttachOptions& options) {
    std::map<DeviceKey, schema::DeviceRow> devices = read_devices(database);
    for (const schema::DeviceRow& told : options.devices) {
        const auto [known, is_new] = devices.try_emplace(key_of(told), told);
        if (!is_new) add(known->second, told);
    }
    std::map<PairKey, schema::TopologyRow> pairs = read_pairs(database);
    std::set<PairKey> given;
    for (const schema::TopologyRow& told : options.topology) given.insert(key_of(told));
    for (const schema::TopologyRow& told : options.topology) {
        const auto back = pairs.find(back_of(told));
        const bool known_back = back != pairs.end() && !given.contains(back->first);
        if (known_back) add(back->second, told);
        if (known_back && !pairs.contains(key_of(told))) continue;
        const auto [known, is_new] = pairs.try_emplace(key_of(told), told);
        if (!is_new) add(known->second, told);
    }
    database.execute("BEGIN");
    write_all(database, devices);
    write_all(database, pairs);
    for (const auto& [key, value] : options.facts) {
        store::Statement fact(database, "INSERT OR REPLACE INTO SHARD_RUN VALUES (?1, ?2)");
        fact.bind(1, std::string_view(key));
        fact.bind(2, std::string_view(value));
        fact.run();
    }
    database.execute("COMMIT");
}

// A file that a failure removes.
struct UnfinishedCopy {
    explicit UnfinishedCopy(std::string file) : path(std::move(file)) {}
    ~UnfinishedCopy() {
        std::error_code ignored;
        fs::remove(path, ignored);
        store::remove_side_files(path);
    }
    UnfinishedCopy(const UnfinishedCopy&) = delete;
    UnfinishedCopy& operator=(const UnfinishedCopy&) = delete;
    std::string path;
};

}  // namespace

std::vector<std::string> hosts_of_file(const std::string& path) {
    store::Database database = store::open_trace(path);
    std::set<std::string> hosts;
    if (store::has_plain_table(database, "SHARD_RANKS") && database.has_column("SHARD_RANKS", "host")) {
        store::Statement rows(database, "SELECT DISTINCT host FROM SHARD_RANKS");
        while (rows.step())
            if (!rows.text(0).empty()) hosts.emplace(rows.text(0));
    }
    return {hosts.begin(), hosts.end()};
}

void attach_topology(const AttachOptions& options, const WorkOptions& work) {
    store::check_apart({options.input}, options.output);
    store::DatabaseWriter::check_output(options.output, options.overwrite);
    std::error_code error;
    const bool exists = fs::exists(options.output, error);
    const std::string target = exists ? fs::canonical(options.output, error).string() : options.output;
    store::remove_left_ones(target, "part");
    const UnfinishedCopy copy(store::unfinished_name(target, "part"));
    merge_traces({.inputs = {options.input}, .output = copy.path, .overwrite = true}, work);
    {
        store::Database database(copy.path, store::Database::Mode::read_write);
        database.execute("PRAGMA trusted_schema = OFF; PRAGMA journal_mode = MEMORY;");
        write(database, options);
        database.close();
    }
    store::rename_database(copy.path, target, options.overwrite);
}

}  // namespace shardscope::traces::merge
