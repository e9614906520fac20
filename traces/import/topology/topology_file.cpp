#include "traces/import/topology/topology_file.h"

#include <array>
#include <string_view>
#include <type_traits>
#include <utility>

#include "traces/import/topology/nccl_topology.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // thousands of hosts take less
constexpr std::size_t kTextPiece = std::size_t{64} << 10;

std::string whole_text(Input& input) {
    std::string text;
    std::array<char, kTextPiece> chunk;
    for (;;) {
        const std::size_t got = input.read(chunk);
        text.append(chunk.data(), got);
        if (text.size() > kMostBytes)
            throw input.error(kMostBytes, "the text is longer than 64 MiB; give the tables of fewer hosts");
        if (got < chunk.size()) return text;
    }
}

}  // namespace

Topology read_topology(Input& input, const std::string& host) {
    const std::string text = whole_text(input);
    return is_nccl_topology(text) ? read_nccl_topology(text, input.path(), host)
                                  : read_topology_text(text, input.path(), host);
}

bool is_topology_file(std::string_view head) {
    return is_nccl_topology(head) || is_topology_text(head);
}

void name_hosts(Topology& topology, const std::vector<std::string>& hosts) {
    const auto name_rows = [&](auto& rows, auto name) {
        std::remove_reference_t<decltype(rows)> named;
        for (const auto& row : rows) {
            if (!row.host.empty()) named.push_back(row);
            for (std::size_t h = 0; row.host.empty() && h < hosts.size(); ++h)
                name(named.emplace_back(row), hosts[h]);
        }
        rows = std::move(named);
    };
    name_rows(topology.devices, [](schema::DeviceRow& row, const std::string& host) { row.host = host; });
    name_rows(topology.topology,
              [](schema::TopologyRow& row, const std::string& host) { row.host = row.to_host = host; });
    std::vector<std::pair<std::string, std::string>> facts;
    for (const auto& [key, value] : topology.facts) {
        if (!key.ends_with('.')) facts.emplace_back(key, value);
        for (std::size_t h = 0; key.ends_with('.') && h < hosts.size(); ++h)
            facts.emplace_back(key + hosts[h], value);
    }
    topology.facts = std::move(facts);
}

Topology read_topology_file(const std::string& path) {
    Input input = Input::open(path);
    return read_topology(input, "");
}

FileFacts read_topology_trace(Input& input, store::EventSink& sink, const FileRequest& request) {
    const Topology topology = read_topology(input, "");
    sink.add(schema::RunInfoRow{.key = "import.format", .value = "topology"});
    for (const auto& [key, value] : topology.facts) sink.add(schema::RunInfoRow{.key = key, .value = value});
    for (const schema::DeviceRow& row : topology.devices) sink.add(row);
    for (const schema::TopologyRow& row : topology.topology) sink.add(row);
    for (const std::string& note : topology.notes)
        sink.add(schema::DiagnosticRow{.time = 0, .severity = schema::Severity::information, .text = note});
    return {.rank = {}, .rows_rank = request.rank};
}

}  // namespace shardscope::traces::importer
