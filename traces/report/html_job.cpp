// The page of a job: what ran, when, on what; how well it used its devices; the three findings that matter;
// energy and cost.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/report/html_use.h"
#include "traces/report/print.h"
#include "traces/report/use_lanes.h"
#include "traces/report/use_text.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {

namespace {

constexpr std::size_t kFindings = 3;

std::string_view config(const ReportedRun& run, std::string_view key) {
    for (const auto& [name, value] : run.info.config)
        if (name == key) return value;
    return {};
}

// "shardscope-train: gpt, 4 layers of width 256, fsdp", "python train.py".
std::string what_ran(const ReportedRun& run) {
    if (const std::string_view command = config(run, "command"); !command.empty())
        return std::string(command);
    const std::string_view model = config(run, "model.type");
    if (model.empty()) return {};
    const std::string_view name = config(run, "model.name");
    std::string text(name.empty() ? model : name);
    if (name.empty() && !config(run, "model.layers").empty() && model != "resnet" && model != "vgg")
        text +=
            fmt::format(", {} layers of width {}", config(run, "model.layers"), config(run, "model.width"));
    const std::string_view mode = config(run, "parallel.mode");
    if (mode == "fsdp") {
        text += fmt::format(", FSDP {}", config(run, "fsdp.sharding_strategy"));
    } else if (mode == "ddp") {
        text += ", DDP";
    }
    for (const auto& [key, word] :
         {std::pair("parallel.tensor", "tensor"), std::pair("parallel.pipeline", "pipeline"),
          std::pair("parallel.context", "context"), std::pair("parallel.expert", "expert")}) {
        const std::string_view size = config(run, key);
        if (!size.empty() && size != "1") text += fmt::format(", {} {}", word, size);
    }
    return text;
}

// "4 × NVIDIA H100 80GB HBM3, 1 × …".
std::string devices_text(const ReportedRun& run) {
    std::map<std::string, std::int64_t> names;
    for (const analysis::DeviceUse& device : run.utilization.devices)
        if (device.visible.value_or(false)) ++names[device.name.empty() ? device.title() : device.name];
    std::string text;
    for (const auto& [name, count] : names)
        text += fmt::format("{}{} × {}", text.empty() ? "" : ", ", count, name);
    return text.empty() ? run.info.device : text;
}

std::string hosts_text(const ReportedRun& run, const Redactor& redact) {
    constexpr std::size_t kNamed = 6;
    std::string text;
    const std::vector<analysis::HostUse>& hosts = run.utilization.hosts;
    for (std::size_t i = 0; i < std::min(hosts.size(), kNamed); ++i) {
        if (!hosts[i].host.empty()) text += (text.empty() ? "" : ", ") + redact.text(hosts[i].host);
    }
    if (hosts.size() > kNamed) text += fmt::format(" and {} more", hosts.size() - kNamed);
    return text.empty() ? store::counted(static_cast<std::int64_t>(hosts.size()), "host", "hosts") : text;
}

std::string ended_text(const ReportedRun& run) {
    if (!run.info.ended) return "<span class=\"bad\">did not end, or still runs</span>";
    const std::string_view status = config(run, "exit_status");
    if (!status.empty() && status != "0")
        return fmt::format("<span class=\"bad\">ended with status {}</span>", html_escaped(status));
    return "<span class=\"good\">ended</span>";
}

// "2026-03-01T12:34:56.789Z" -> "2026-03-01 12:34:56 UTC".
std::string started_text(std::string started) {
    if (started.size() < 19) return started;
    started[10] = ' ';
    return started.substr(0, 19) + " UTC";
}

std::string facts(const ReportedRun& run, const Redactor& redact) {
    std::string html = "<dl class=\"facts\">\n";
    const auto add = [&](std::string_view what, const std::string& value) {
        if (!value.empty()) html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", what, value);
    };
    const std::string ran = what_ran(run);
    if (redact.shows("command", "") || config(run, "command").empty()) add("What ran", redact.text(ran));
    add("Recorded by", redact.text(config(run, "tool")));
    add("Started", html_escaped(started_text(run.info.started_utc)));
    add("Lasted", duration_text(run.utilization.job.seconds) + ", " + ended_text(run));
    add("On", hosts_text(run, redact));
    add("Devices", redact.text(devices_text(run)));
    add("Ranks", fmt::format("{}{}", store::grouped(std::int64_t{run.info.ranks}),
                             run.info.steps > 0 ? " × " + store::counted(run.info.steps, "step", "steps")
                                                : std::string()));
    if (!run.part.empty()) add("Of it here", html_escaped(run.part));
    return html + "</dl>\n";
}

// Devices of the job that are known to have worked.
std::int64_t worked(const ReportedRun& run) {
    return std::count_if(
        run.utilization.devices.begin(), run.utilization.devices.end(), [](const auto& device) {
            return device.visible.value_or(false) && device.utilization_percent && !device.unused();
        });
}

// The efficiency in one line.
std::string efficiency(const ReportedRun& run) {
    const analysis::JobUse& job = run.utilization.job;
    std::string text;
    if (job.utilization_percent) {
        const std::string used =
            fmt::format("used {} % of the time on average", store::grouped(*job.utilization_percent, 1));
        text = job.devices == 1 ? "The device was " + used
                                : fmt::format("{} of {} devices worked; all of them together were {}",
                                              store::grouped(worked(run)), store::grouped(job.devices), used);
    }
    const double step = run.summary.mean_step_us();
    if (run.summary.stepped && step > 0) {
        text += fmt::format("{}a step took {} ms", text.empty() ? "" : "; ", store::grouped(step * 1e-3, 2));
        if (run.overlap.any_communication())
            text += fmt::format(", {} % of it communication that nothing hides",
                                store::grouped(100 * run.overlap.mean_exposed_us() / step, 1));
        if (job.tokens_per_step) {
            text += fmt::format(", {} tokens a second", store::grouped(*job.tokens_per_step / step * 1e6, 0));
        } else if (job.samples_per_step) {
            text +=
                fmt::format(", {} samples a second", store::grouped(*job.samples_per_step / step * 1e6, 0));
        }
    }
    if (text.empty()) return "How well its devices were used is unknown: nothing of them was sampled.";
    if (text.front() >= 'a' && text.front() <= 'z')
        text.front() = static_cast<char>(text.front() - 'a' + 'A');
    return text + ".";
}

std::string cards(const ReportedRun& run) {
    const analysis::JobUse& job = run.utilization.job;
    std::string html = "<div class=\"cards\">\n";
    html += html_card(job.utilization_percent ? store::grouped(*job.utilization_percent, 1) + " %" : "-",
                      "utilization, mean of the devices");
    html += html_card(job.sampled_devices > 0 ? fmt::format("{} of {}", worked(run), job.devices) : "-",
                      "devices that worked");
    double memory = 0;
    for (const analysis::DeviceUse& device : run.utilization.devices)
        memory = std::max(memory, device.memory_peak_bytes.value_or(0));
    if (memory > 0)
        html += html_card(analysis::bytes_text(static_cast<std::int64_t>(memory)), "peak memory of a device");
    html += html_card(job.energy_j ? energy_text(*job.energy_j) : "-", "energy of the devices");
    html += html_card(cost_text(job), job.cost ? fmt::format("cost, at {} a device hour",
                                                             store::grouped(*job.price_per_device_hour, 2))
                                               : "cost: no price is known");
    return html + "</div>\n";
}

// Rules about what the job was given come first among findings of one weight; several findings of a rule are
// one.
std::string findings(const ReportedRun& run, const Redactor& redact) {
    std::vector<analysis::Finding> all = run.advice.findings;
    const auto about_use = [](const analysis::Finding& finding) {
        const auto rules = analysis::use_rules();
        return std::any_of(rules.begin(), rules.end(),
                           [&](const analysis::AdviceRule& rule) { return rule.id == finding.id; });
    };
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
        return std::pair(a.weight, !about_use(a)) < std::pair(b.weight, !about_use(b));
    });
    std::vector<analysis::Finding> shown;
    std::size_t more = 0;
    for (analysis::Finding& finding : all) {
        const auto same = std::find_if(shown.begin(), shown.end(),
                                       [&](const analysis::Finding& f) { return f.id == finding.id; });
        if (same == shown.end()) {
            if (shown.size() < kFindings) {
                shown.push_back(std::move(finding));
            } else {
                ++more;
            }
        } else {
            same->what += " " + finding.what;
        }
    }
    std::string html = html_findings(shown, redact);
    if (html.empty())
        html = fmt::format("<p>None of the {} rules found anything to change.</p>\n", run.advice.rules);
    if (more > 0)
        html += fmt::format("<p class=\"dim small\">{}: shardscope-trace advice.</p>\n",
                            store::counted(static_cast<std::int64_t>(more), "more finding", "more findings"));
    return html;
}

std::string energy_and_cost(const ReportedRun& run) {
    const analysis::JobUse& job = run.utilization.job;
    HtmlTable table({"", "The job", "A step", "A million samples", "A million tokens"});
    const auto joules = [](const std::optional<double>& value, double times = 1) {
        return value ? energy_text(*value * times) : std::string("-");
    };
    const auto money = [](const std::optional<double>& value, double times = 1) {
        if (!value) return std::string("-");
        const double amount = *value * times;
        return amount >= 0.01 || amount == 0 ? store::grouped(amount, amount < 1 ? 4 : 2)
                                             : fmt::format("{:.3g}", amount);
    };
    table.row({"Energy", joules(job.energy_j), joules(job.energy_per_step_j),
               joules(job.energy_per_sample_j, 1e6), joules(job.energy_per_token_j, 1e6)});
    const std::optional<double> per_step =
        job.cost && job.steps > 0 ? std::optional(*job.cost / static_cast<double>(job.steps)) : std::nullopt;
    table.row({"Cost", money(job.cost), money(per_step), money(job.cost_per_million_samples),
               money(job.cost_per_million_tokens)});
    std::string html = table.html();
    std::string text =
        fmt::format("{} device hours.", store::grouped(job.device_hours, job.device_hours < 1 ? 4 : 2));
    const bool counter =
        std::any_of(run.utilization.devices.begin(), run.utilization.devices.end(),
                    [](const auto& device) { return device.energy_j && device.energy_from_counter; });
    if (job.energy_j)
        text += fmt::format(" Energy is of {} of {}, {}.", job.energy_devices,
                            store::counted(job.devices, "device", "devices"),
                            counter ? "by the devices' own counters" : "power summed over the sampled time");
    if (job.energy_per_step_j) text += " A step's is that of the time from the first step to the last.";
    text += job.cost ? " The cost is that of the whole time."
                     : " Without a price there is no cost: --price-per-device-hour.";
    return html + "<p class=\"dim small\">" + text + "</p>\n";
}

constexpr std::string_view kJobStyle = R"css(
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,15rem),1fr));gap:.5rem 1.4rem;margin:.8rem 0}
.facts dt{font-size:.85rem;color:var(--dim)}.facts dd{margin:0}
.line{font-size:1.1rem;margin:1rem 0 0}
)css";

}  // namespace

std::string job_page(const ReportedRun& run, const HtmlOptions& options) {
    std::vector<std::string> hosts = run.hosts;  // a short name may be part of a long one
    std::sort(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    const Redactor redact(options.redact, std::move(hosts));
    std::string body = facts(run, redact);
    body += fmt::format("<p class=\"line\">{}</p>\n", html_escaped(efficiency(run))) + cards(run);
    const std::string lanes = html_use_lanes(run.utilization, redact);
    body += section(
        "utilization", "What the devices did",
        lanes.empty() ? "<p>Nothing of them was sampled. shardscope-record and shardscope-train take samples "
                        "while they record.</p>\n"
                      : lanes);
    body += section("findings", "What matters most", findings(run, redact));
    body += section("cost", "Energy and cost", energy_and_cost(run));
    if (const std::string training = html_training(run, redact); !training.empty())
        body += section("training", "Training", training);
    body += section("figures", "Figures", html_use_tables(run.utilization, redact));
    body += section("configuration", "Configuration", html_configuration(run, redact));
    const std::string title =
        options.title.empty() ? "Job " + redact.text(run.name) : html_escaped(options.title);
    return html_page(title, body, options.redact, kJobStyle);
}

}  // namespace shardscope::traces::report
