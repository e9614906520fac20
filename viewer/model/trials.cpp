// See trials.h.
#include "viewer/model/trials.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "traces/schema/text.h"

namespace shardscope::viewer::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using traces::store::Trace;

// The parts between commas, other than those inside quotes and brackets.
std::vector<std::string_view> parts_of(std::string_view text) {
    std::vector<std::string_view> parts;
    bool quoted = false;
    int depth = 0;
    std::size_t from = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        const char c = i < text.size() ? text[i] : ',';
        if (c == '"') quoted = !quoted;
        if (!quoted && c == '[') ++depth;
        if (!quoted && c == ']') --depth;
        if (i < text.size() && (c != ',' || quoted || depth > 0)) continue;
        if (const auto part = traces::schema::trimmed(text.substr(from, i - from)); !part.empty())
            parts.push_back(part);
        from = i + 1;
    }
    return parts;
}

// "key = value" without quotes; no value if there is none.
std::pair<std::string, std::string> key_and_value(std::string_view part) {
    const auto equals = part.find('=');
    if (equals == part.npos) return {std::string(part), ""};
    std::string_view value = traces::schema::trimmed(part.substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
        value = value.substr(1, value.size() - 2);
    return {std::string(traces::schema::trimmed(part.substr(0, equals))), std::string(value)};
}

bool is_value(std::string_view value) {
    return !value.empty() && value.find("...") == value.npos;
}

// Whether a replay can vary the key, by shardscope-train plan --help.
bool may_vary(std::string_view key) {
    for (const std::string_view section : {"parallel.", "fsdp.", "ddp."})
        if (key.starts_with(section)) return true;
    return key == "run.ranks" || key == "data.batch" || key == "train.accumulation" ||
           key == "train.accumulation_sync" || key == "memory.activation_checkpointing";
}

// A key may have several values, separated by commas; a value that has commas of its own ends with ';'.
std::string argument(const std::string& key, const std::string& value) {
    const bool list = value.find(',') != value.npos && !value.starts_with('[');
    return fmt::format("--{}={}{}", key, value, list ? ";" : "");
}

double number_of(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

TrialFigures figures_of(const json& row) {
    return {number_of(row, "step_us"), number_of(row, "exposed_communication_us"),
            static_cast<std::int64_t>(number_of(row, "peak_bytes"))};
}

std::string without_prefix(std::string said) {
    for (const std::string& prefix : {fmt::format("{}: ", kTrainTool), std::string("command line: ")})
        if (said.starts_with(prefix)) said.erase(0, prefix.size());
    if (!said.empty() && said.back() != '.') said += '.';
    return said;
}

}  // namespace

Changes parse_changes(std::string_view text, std::string& wrong) {
    Changes changes;
    for (const std::string_view part : parts_of(text)) {
        auto [key, value] = key_and_value(part);
        if (key.find('.') == key.npos || !is_value(value)) {
            wrong =
                fmt::format("\"{}\" is not a change; write section.key = value, separated by commas.", part);
            return {};
        }
        changes.emplace_back(std::move(key), std::move(value));
    }
    if (changes.empty()) wrong = "Write what to change: section.key = value, separated by commas.";
    return changes;
}

std::string changes_text(const Changes& changes) {
    std::string text;
    for (const auto& [key, value] : changes) {
        const bool quoted = value.find(',') != value.npos && !value.starts_with('[');
        text += fmt::format(fmt::runtime(quoted ? "{}{} = \"{}\"" : "{}{} = {}"), text.empty() ? "" : ", ",
                            key, value);
    }
    return text;
}

std::string changes_to_try(std::string_view setting, const Trace& trace) {
    Changes changes;
    for (const std::string_view part : parts_of(setting)) {
        auto [key, value] = key_and_value(part);
        if (!is_value(value)) {
            const std::string_view now = trace.config_value(key);
            int number = 0;
            const bool known = std::from_chars(now.data(), now.data() + now.size(), number).ec == std::errc();
            if (!known || number <= 0 || key != "data.batch") continue;
            value = std::to_string(part.find("smaller") != part.npos ? std::max(1, number / 2) : 2 * number);
        }
        changes.emplace_back(std::move(key), std::move(value));
    }
    const auto fixed = [](const auto& change) { return !may_vary(change.first); };
    if (!std::all_of(changes.begin(), changes.end(), fixed)) std::erase_if(changes, fixed);
    return changes_text(changes);
}

namespace {

TrialResult result_of(const json& all) {
    TrialResult result;
    const json& row = all.at("rows").at(1);
    if (row.contains("reason")) {
        result.error = without_prefix(row.at("reason").get<std::string>());
        return result;
    }
    result.before = figures_of(all.at("unmodified"));
    result.after = figures_of(row);
    result.times = row.at("step_us").is_number();
    result.recorded_step_us = number_of(all.at("recorded"), "step_us");
    if (const auto& off = all.at("unmodified").at("step_error_percent"); off.is_number())
        result.off_percent = off.get<double>();
    const json unknown = all.value("not_known", json::array()),
               lines_of = row.value("pytorch", json::object());
    for (const json& said : unknown) result.unknown.push_back(said);
    result.job = row.value("job", "");
    for (const auto& [api, lines] : lines_of.items()) {
        result.pytorch += fmt::format("# {}\n", api);
        for (const json& line : lines) result.pytorch += line.get<std::string>() + "\n";
    }
    return result;
}

}  // namespace

TrialResult read_trial(const std::string& text) {
    try {
        return result_of(traces::schema::parse_json(text, traces::schema::BadJson::throws));
    } catch (const json::exception&) {
        TrialResult result;
        result.error =
            fmt::format("{} answered what this viewer cannot read; install both of one version.", kTrainTool);
        return result;
    }
}

Trials::~Trials() {
    child_.reset();
    if (folder_.empty()) return;
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

void Trials::start(const std::shared_ptr<const Trace>& trace, const std::vector<std::string>& files,
                   const std::string& changes) {
    if (busy()) return;
    of_ = trace;
    changes_ = changes;
    cancelled_ = false;
    std::string wrong;
    const Changes parsed = parse_changes(changes, wrong);
    try {
        if (!wrong.empty()) throw std::runtime_error(wrong);
        begin(files, parsed);
    } catch (const std::exception& failure) {
        TrialResult result;
        result.error = failure.what();
        keep(std::move(result));
    }
}

void Trials::begin(const std::vector<std::string>& files, const Changes& changes) {
    if (files.size() != 1) {
        throw std::runtime_error(
            "A replay reads one file: merge these with shardscope-trace merge, and open the result.");
    }
    std::error_code error;
    if (!fs::exists(files.front(), error)) throw std::runtime_error(files.front() + " is gone.");
    const std::string tool = tool_.empty() ? find_tool(kTrainTool) : tool_;
    if (tool.empty()) {
        throw std::runtime_error(fmt::format(
            "{} is neither beside this program nor on PATH; install it to try changes.", kTrainTool));
    }
    if (folder_.empty()) folder_ = make_simulation_folder();
    const std::string stem = (fs::path(folder_) / fmt::format("trial-{}", ++count_)).string();
    trace_ = stem + ".sqlite";
    output_ = stem + ".json";
    std::vector<std::string> command = {tool,   "plan",    files.front(), "--only", "--format",
                                        "json", "--write", "2",           "--as",   trace_};
    for (const auto& [key, value] : changes) command.push_back(argument(key, value));
    child_ = std::make_unique<ChildProcess>(command, output_);
    began_ = std::chrono::steady_clock::now();
}

void Trials::cancel() {
    if (!busy()) return;
    cancelled_ = true;
    child_->stop();
}

bool Trials::poll() {
    if (!busy() || !child_->poll()) return false;
    TrialResult result;
    std::stringstream text;
    text << std::ifstream(output_).rdbuf();
    const int status = child_->status();
    if (cancelled_) {
        result.error = "The replay was cancelled.";
    } else if (status == 0) {
        result = read_trial(text.str());
        if (result.error.empty()) result.trace = trace_;
    } else if (status < 0) {
        result.error = fmt::format("{} was ended by signal {}.", kTrainTool, -status);
    } else {
        const std::string said = without_prefix(child_->last_line());
        result.error = said.empty() ? fmt::format("{} ended with status {}.", kTrainTool, status) : said;
    }
    std::error_code ignored;
    fs::remove(output_, ignored);
    child_.reset();
    keep(std::move(result));
    return true;
}

void Trials::keep(TrialResult result) {
    std::erase_if(kept_, [&](const Kept& kept) {
        return kept.of.expired() || (kept.of.lock() == of_.lock() && kept.changes == changes_);
    });
    if (!of_.expired()) kept_.push_back({of_, changes_, std::move(result)});
}

const TrialResult* Trials::result(const Trace& trace, const std::string& changes) const {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
        return kept.of.lock().get() == &trace && kept.changes == changes;
    });
    return found == kept_.end() ? nullptr : &found->result;
}

void Trials::forget(const Trace& trace) {
    std::erase_if(kept_, [&](const Kept& kept) { return kept.of.lock().get() == &trace; });
    if (!busy() || of_.lock().get() != &trace) return;
    child_.reset();
    of_.reset();
}

void Trials::replaced(const std::shared_ptr<const Trace>& before, const std::shared_ptr<const Trace>& after) {
    for (Kept& kept : kept_) {
        if (kept.of.lock() != before) continue;
        kept.of = after;
        kept.result.earlier = true;
    }
    if (of_.lock() == before) of_ = after;
}

std::string Trials::progress() const {
    if (!busy()) return "";
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    return fmt::format("{} with {}: {:.0f} s", cancelled_ ? "stopping the replay" : "replaying the run",
                       changes_, seconds);
}

bool Trials::is_mine(const std::string& path) const {
    return !folder_.empty() && path.starts_with(folder_ + "/");
}

}  // namespace shardscope::viewer::model
