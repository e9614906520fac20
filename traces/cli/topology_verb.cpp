// topology adds to a trace what was learnt elsewhere about its hosts' devices and links, and info --topology
// prints what a trace knows of them.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "traces/analysis/facts/info.h"
#include "traces/analysis/topology/pair_traffic.h"
#include "traces/cli/analyse.h"
#include "traces/cli/long_work.h"
#include "traces/cli/verb.h"
#include "traces/export/text_output.h"
#include "traces/import/topology/topology_file.h"
#include "traces/merge/attach_topology.h"
#include "traces/query/as_database.h"
#include "traces/report/topology.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::cli {

namespace {

// "a, b and 3 others".
std::string list_of(const std::vector<std::string>& names) {
    constexpr std::size_t kMostNamed = 8;
    std::string text;
    for (std::size_t i = 0; i < names.size() && i < kMostNamed; ++i)
        text += (text.empty() ? "" : ", ") + report::printable(names[i]);
    if (names.size() > kMostNamed) text += fmt::format(" and {} others", names.size() - kMostNamed);
    return text;
}

// The number of NCCL's rings.
std::int64_t rings_of(const importer::Topology& topology) {
    std::int64_t rings = 0;
    for (const auto& [key, value] : topology.facts) rings += 1 + std::count(value.begin(), value.end(), ';');
    return rings;
}

// The hosts of the rows that name none: those that the user gives, else the trace's only one.
std::vector<std::string> hosts_of_rows(const std::string& file, const std::string& from,
                                       const std::vector<std::string>& given,
                                       const importer::Topology& topology) {
    // A file of graphs has no devices, and names no host.
    const bool unnamed =
        topology.devices.empty() || std::any_of(topology.devices.begin(), topology.devices.end(),
                                                [](const auto& row) { return row.host.empty(); });
    const std::vector<std::string> known = merge::hosts_of_file(file);
    const auto check = [&](const std::string& host) {
        if (known.empty() || std::find(known.begin(), known.end(), host) != known.end()) return;
        throw UsageError(fmt::format("topology: {} has no host {}; its hosts are {}", file,
                                     report::printable(host), list_of(known)));
    };
    for (const std::string& host : given) check(host);
    for (const schema::DeviceRow& row : topology.devices)
        if (!row.host.empty()) check(row.host);
    if (!given.empty() && !unnamed)
        throw UsageError(fmt::format("topology: {} names its hosts itself; leave --host out", from));
    if (!given.empty() || !unnamed) return given;
    if (known.size() > 1) {
        throw UsageError(fmt::format(
            "topology: {} has the hosts {}; say of which {} is with --host (several times for equal hosts)",
            file, list_of(known), from));
    }
    return known.empty() ? std::vector<std::string>{""} : known;
}

}  // namespace

Work topology_verb(Options& options) {
    options.files("FILE", "The trace", 1, 1);
    const std::string& from =
        options.required_text("--from", "TEXT",
                              "What nvidia-smi topo -m or -p2p printed on a host of the job, or what NCCL "
                              "wrote there (NCCL_TOPO_DUMP_FILE, NCCL_GRAPH_DUMP_FILE)");
    const std::vector<std::string>& hosts =
        options.repeated_text("--host", "NAME", "The host of TEXT, where the trace has several");
    const Output output = trace_output(options);
    options.footer(
        "The trace is not changed: OUT.sqlite is a copy with the devices and links of TEXT. What TEXT "
        "states\n"
        "replaces what the trace has; shardscope-trace info --topology OUT.sqlite prints it. TEXT may hold\n"
        "several tables; put the command (nvidia-smi topo -p2p w) in the line before each of -p2p.");
    return [=, &from, &hosts](const Inputs& inputs) {
        const std::string& file = inputs.files.front();
        check_input(file);
        check_input(from);
        if (!query::is_database(file)) {
            throw UsageError(fmt::format(
                "topology: {0} is not a database; import it first: shardscope-trace import {0} -o NEW.sqlite",
                file));
        }
        try {
            store::DatabaseWriter::check_output(output.path, output.overwrite);
        } catch (const store::StoreError& error) {
            throw UsageError(error.what());
        }
        importer::Topology topology = importer::read_topology_file(from);
        importer::name_hosts(topology, hosts_of_rows(file, from, hosts, topology));
        try {
            const LongWork work("copying");
            merge::attach_topology({.input = file,
                                    .output = output.path,
                                    .overwrite = output.overwrite,
                                    .devices = topology.devices,
                                    .topology = topology.topology,
                                    .facts = topology.facts},
                                   work.options());
        } catch (const merge::Cancelled&) {
            fmt::print(stderr, "shardscope-trace: topology was stopped; {} was not written\n", output.path);
            return LongWork::stopped_status() != 0 ? LongWork::stopped_status() : kFailed;
        }
        print_notes(topology.notes);
        print(render_rows({{"file"}, {"devices"}, {"links"}, {"rings"}},
                          {{output.path, static_cast<std::int64_t>(topology.devices.size()),
                            static_cast<std::int64_t>(topology.topology.size()), rings_of(topology)}},
                          inputs.format));
        return kDone;
    };
}

Work info_verb(Options& options) {
    const bool& topology = options.flag("--topology",
                                        "The matrices of links and of peer access of each host, as "
                                        "nvidia-smi topo prints them, and the bytes from "
                                        "rank to rank");
    const std::string& output = options.text("-o,--output", "OUT.svg", "Also draw them as a picture");
    options.needs("--output", "--topology");
    const bool& overwrite = options.flag("--overwrite", "Replace OUT.svg if it exists");
    options.needs("--overwrite", "--output");
    return [&](const Inputs& inputs) {
        if (!topology) {
            print(render(analysis::trace_info(*load(inputs)), inputs.format));
            return kDone;
        }
        if (!output.empty()) check_page(inputs, output, overwrite);
        const analysis::TopologyReport report = analysis::topology_report(*load(inputs));
        if (!output.empty()) {
            exports::TextOutput file(output, overwrite, false);
            file.buffer() = report::topology_svg(report);
            file.finish();
            fmt::print(stderr, "shardscope-trace: {} written\n", output);
        }
        print(report::render(report, inputs.format, table_width()));
        return kDone;
    };
}

}  // namespace shardscope::traces::cli
