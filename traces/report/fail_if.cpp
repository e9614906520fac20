#include "traces/report/fail_if.h"

#include <cstddef>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "traces/schema/text.h"

namespace shardscope::traces::report {

namespace {

using Json = nlohmann::ordered_json;

void collect_numbers(const Json& object, const std::string& prefix, std::string& names) {
    for (const auto& [key, value] : object.items()) {
        if (value.is_number()) names += (names.empty() ? "" : ", ") + prefix + key;
        if (value.is_object()) collect_numbers(value, prefix + key + ".", names);
    }
}

// Names of parts may contain dots ("units.net.0, forward.us"), so every way to split the key is tried.
const Json* find_number(const Json& at, std::string_view key) {
    if (!at.is_object()) return nullptr;
    for (std::size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.', dot + 1)) {
        const auto inside = at.find(std::string(key.substr(0, dot)));
        if (inside == at.end()) continue;
        if (const Json* found = find_number(*inside, key.substr(dot + 1))) return found;
    }
    const auto whole = at.find(std::string(key));
    return whole != at.end() && whole->is_number() ? &*whole : nullptr;
}

constexpr std::size_t kMostNames = 2000;  // length limit of a list of names, in characters

constexpr std::string_view kToLoss = "to_loss_us";

double number_at(const Json& run, const FailIf& condition) {
    if (const Json* number = find_number(run, condition.key)) return number->get<double>();
    if (condition.key == kToLoss)
        throw BadCondition(
            fmt::format("--fail-if {}: no run, or not the first, reached a loss; give --to-loss "
                        "with a loss that the first run reached",
                        condition.text));
    std::string names;
    collect_numbers(run, "", names);
    if (names.size() > kMostNames) names = names.substr(0, kMostNames) + " …";
    throw BadCondition(fmt::format("--fail-if {}: the runs have no number \"{}\"; use one of {}",
                                   condition.text, condition.key, names));
}

bool holds(double value, const std::string& comparator, double bound) {
    if (comparator == ">") return value > bound;
    if (comparator == ">=") return value >= bound;
    if (comparator == "<") return value < bound;
    return value <= bound;
}

FailIf parsed(const std::string& text) {
    const auto wrong = [&](const char* why) {
        return BadCondition(
            fmt::format("--fail-if {}: {}; write KEY, then > >= < or <=, then a number, for example "
                        "'average_step_us>+5%'",
                        text, why));
    };
    const auto at = text.find_last_of("<>");  // the last: names of template kernels contain them too
    if (at == std::string::npos) throw wrong("there is no comparison");
    FailIf result;
    result.text = text;
    result.key = schema::trimmed(std::string_view(text).substr(0, at));
    result.comparator = text.substr(at, at + 1 < text.size() && text[at + 1] == '=' ? 2 : 1);
    if (result.key.empty()) throw wrong("there is no key");

    std::string_view number = schema::trimmed(std::string_view(text).substr(at + result.comparator.size()));
    if (!number.empty() && number.back() == '%') {
        result.percent = true;
        number = schema::trimmed(number.substr(0, number.size() - 1));
    }
    result.relative = !number.empty() && (number[0] == '+' || number[0] == '-');
    if (!number.empty() && number[0] == '+') number.remove_prefix(1);
    const auto value = schema::number_of<double>(number);
    if (!value) throw wrong("the number cannot be read");
    result.value = *value;
    if (result.percent && !result.relative) throw wrong("a percentage needs its sign, + or -");
    return result;
}

}  // namespace

std::vector<FailIf> parse_fail_if(const std::vector<std::string>& texts) {
    std::vector<FailIf> conditions;
    conditions.reserve(texts.size());
    for (const std::string& text : texts) conditions.push_back(parsed(text));
    return conditions;
}

std::vector<std::string> failures(const std::vector<FailIf>& conditions, const std::string& comparison_json) {
    const Json runs = schema::parse_ordered_json(comparison_json).at("runs");
    std::vector<std::string> result;
    for (const FailIf& condition : conditions) {
        const double first = number_at(runs.at(0), condition);
        double bound = condition.value;
        if (condition.percent) bound = first * (1 + condition.value / 100);
        if (condition.relative && !condition.percent) bound = first + condition.value;
        for (std::size_t i = 1; i < runs.size(); ++i) {
            if (condition.key == kToLoss && find_number(runs[i], kToLoss) == nullptr) {
                result.push_back(fmt::format("--fail-if {} holds for {}: it did not reach the loss",
                                             condition.text, runs[i].at("file").get<std::string>()));
                continue;
            }
            const double value = number_at(runs[i], condition);
            if (!holds(value, condition.comparator, bound)) continue;
            result.push_back(fmt::format(
                "--fail-if {} holds for {}: {} is {:.10g}, the first run's is {:.10g}", condition.text,
                runs[i].at("file").get<std::string>(), condition.key, value, first));
        }
    }
    return result;
}

}  // namespace shardscope::traces::report
