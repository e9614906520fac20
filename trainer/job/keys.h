// The one table of a job's keys, used for parsing, overrides, errors, --help and the trace's configuration.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/job/value.h"

namespace shardscope::trainer::job {

struct Key {
    std::string_view section, name, help;
    ValueType type = ValueType::text;
    std::vector<std::string_view> choices;  // text: the allowed values; empty: any
    // integer, number, numbers: what is allowed, ends included unless `open`
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool high_open = false;
    bool counts = false;       // text: also an integer, which needs no quotes
    bool own = false;          // ranks may have different values, because their hosts differ
    bool all_or_none = false;  // own, but set on every rank or on none
    std::size_t count = 0;     // numbers: how many; 0: any number of them
    // `set` requires a value of the key's type for which problem() is empty.
    std::function<void(Job&, const Value&)> set;
    std::function<Value(const Job&)> get;

    std::string full_name() const;
};

// Whether it says only where a run's trace is written, and how.
inline bool is_of_the_trace(const Key& key) {
    return key.section == "run" && (key.name == "trace" || key.name == "trace_parts" ||
                                    key.name == "overwrite" || key.name == "counters");
}

struct Section {
    std::string_view name, help;
};

std::span<const Section> sections();
std::span<const Key> keys();

// Null if there is no key of that name, or of that full name: "section.name".
const Key* find_key(std::string_view section, std::string_view name);
const Key* find_key(std::string_view full_name);

// The value of a key that exists, in the form of a job file.
std::string text_of(const Job& job, std::string_view full_name);

// The value as a job file writes it.
std::string toml_of(const Key& key, const Value& value);

// What is wrong with `value` and what to do, as the second half of a sentence; empty if it is valid.
std::string problem(const Key& key, const Value& value);

// The values that a key accepts: "1 to 256", "\"mlp\" or \"gpt\"", "true or false".
std::string allowed(const Key& key);

// The error for an unknown name such as "trainer.widht", with the name that was probably meant.
std::string unknown_section(std::string_view section);
std::string unknown_key(std::string_view section, std::string_view name);
std::string unknown_key(std::string_view full_name);

}  // namespace shardscope::trainer::job
