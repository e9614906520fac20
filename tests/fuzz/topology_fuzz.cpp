// Pasted tables of nvidia-smi topo and XML of NCCL: the result is a StoreError or a topology, which is
// analysed, printed and read again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "traces/analysis/topology/pair_traffic.h"
#include "traces/import/topology/nccl_topology.h"
#include "traces/import/topology/topology_text.h"
#include "traces/report/topology.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace shardscope::traces;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    importer::is_topology_text(text);
    try {
        const importer::Topology topology = importer::is_nccl_topology(text)
                                                ? importer::read_nccl_topology(text, "made.xml", "host")
                                                : importer::read_topology_text(text, "made.txt", "host");
        store::ColumnSink sink;
        for (const schema::DeviceRow& row : topology.devices) sink.add(row);
        for (const schema::TopologyRow& row : topology.topology) sink.add(row);
        const analysis::TopologyReport report = analysis::topology_report(*sink.take());
        for (const report::Format format : {report::Format::json, report::Format::csv})
            render(report, format);
        report::topology_svg(report);
        importer::read_topology_text(render(report, report::Format::table), "printed.txt", "host");
    } catch (const store::StoreError&) {  // refused with a message
    }
    return 0;
}
