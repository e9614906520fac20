// The section of --help about keys, and a job's keys as text, both made from the table of keys.
#include <algorithm>

#include <fmt/core.h>

#include "trainer/job/keys.h"

namespace shardscope::trainer::job {

namespace {

// "steps = 20", as a job file writes it: text in quotes.
std::string with_default(const Key& key, const Job& defaults) {
    return fmt::format("{} = {}", key.name, toml_of(key, key.get(defaults)));
}

// The allowed values in brackets; empty for booleans and free text.
std::string limits(const Key& key) {
    if (key.type == ValueType::boolean || (key.type == ValueType::text && key.choices.empty() && !key.counts))
        return {};
    return fmt::format(" [{}]", allowed(key));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe(const Job& job) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Key& key : keys()) rows.emplace_back(key.full_name(), to_text(key.get(job)));
    return rows;
}

std::string job_help() {
    const Job defaults;
    std::size_t width = 0;
    for (const Key& key : keys()) width = std::max(width, with_default(key, defaults).size());

    std::string text = "Keys of a job file (TOML), with their defaults; --SECTION.KEY=VALUE overrides one:\n";
    for (const Section& section : sections()) {
        text += fmt::format("\n  [{}]  # {}\n", section.name, section.help);
        for (const Key& key : keys()) {
            if (key.section != section.name) continue;
            text +=
                fmt::format("  {:<{}}  # {}{}\n", with_default(key, defaults), width, key.help, limits(key));
        }
    }
    return text;
}

}  // namespace shardscope::trainer::job
