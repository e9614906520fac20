// Devices, hosts, ranks and adapters by what they did; see device_use_fields() and its neighbours.
#include "traces/analysis/job/utilization.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"
#include "traces/report/use_text.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

std::string table_text(const analysis::UtilizationReport& report, std::size_t width) {
    std::string text;
    if (report.any_sample()) text = paragraph(job_sentence(report), width);
    const bool one_host = report.hosts.size() <= 1;
    const auto without_host = [&](analysis::ResultTable table) {
        return one_host ? without(std::move(table), {"host"}) : table;
    };
    const auto add = [&](std::string_view title, const analysis::ResultTable& table, std::size_t keys) {
        if (!table.rows.empty()) text += fmt::format("\n{}\n{}", title, text_of(table, width, keys));
    };
    add("Devices", without_host(result_table(analysis::device_use_fields(), report.devices)),
        one_host ? 1 : 2);
    if (report.any_sample()) {
        add("Hosts", result_table(analysis::host_use_fields(), report.hosts), 1);
        add("Ranks", without_host(result_table(analysis::rank_use_fields(), report.ranks)), 1);
        add("Adapters", without_host(result_table(analysis::adapter_use_fields(), report.adapters)), 3);
    }
    if (!report.notes.empty() && !text.empty()) text += "\n";
    for (const std::string& note : report.notes) text += paragraph(note, width);
    return text;
}

template <class Row>
Json with_figures(analysis::Fields<Row> fields, const Row& row) {
    Json json = json_row(fields, row);
    json["sampled"] = json_of(result_table(analysis::sampled_fields(), row.sampled));
    return json;
}

std::string json_text(const analysis::UtilizationReport& report) {
    Json hosts = Json::array();
    for (const analysis::HostUse& host : report.hosts) {
        Json json = with_figures(analysis::host_use_fields(), host);
        json["devices"] = json["adapters"] = Json::array();
        for (const analysis::DeviceUse& device : report.devices)
            if (device.host == host.host)
                json["devices"].push_back(with_figures(analysis::device_use_fields(), device));
        for (const analysis::AdapterUse& adapter : report.adapters)
            if (adapter.host == host.host)
                json["adapters"].push_back(with_figures(analysis::adapter_use_fields(), adapter));
        hosts.push_back(std::move(json));
    }
    Json ranks = Json::array();
    for (const analysis::RankUse& rank : report.ranks)
        ranks.push_back(with_figures(analysis::rank_use_fields(), rank));
    return json_line({{"job", json_row(analysis::job_use_fields(), report.job)},
                      {"hosts", std::move(hosts)},
                      {"ranks", std::move(ranks)},
                      {"notes", report.notes}});
}

std::string csv_text(const analysis::UtilizationReport& report) {
    return csv_of(result_table(analysis::device_use_fields(), report.devices));
}

}  // namespace

std::string render(const analysis::UtilizationReport& report, Format format, std::size_t width) {
    return render_as(report, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
