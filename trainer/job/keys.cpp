// The table itself, and what follows from a row of it.
#include "trainer/job/keys.h"

#include <algorithm>
#include <concepts>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trainer/job/nearest.h"

namespace shardscope::trainer {

namespace {

constexpr double kMaxInteger = 9007199254740992.0;  // 2^53: every integer up to here is a double

template <class Section>
using In = Section Job::*;

Key base(std::string_view section, std::string_view name, ValueType type, std::string_view help) {
    Key key;
    key.section = section;
    key.name = name;
    key.type = type;
    key.help = help;
    return key;
}

template <class S, std::integral Field>
Key integer(std::string_view section, std::string_view name, In<S> in, Field S::*field, double low,
            double high, std::string_view help) {
    Key key = base(section, name, ValueType::integer, help);
    key.low = low;
    key.high = high;
    key.set = [=](Job& job, const Value& v) {
        job.*in.*field = static_cast<Field>(std::get<std::int64_t>(v));
    };
    key.get = [=](const Job& job) { return Value(std::int64_t{job.*in.*field}); };
    return key;
}

template <class S>
Key number(std::string_view section, std::string_view name, In<S> in, double S::*field, double low,
           double high, std::string_view help) {
    Key key = base(section, name, ValueType::number, help);
    key.low = low;
    key.high = high;
    key.set = [=](Job& job, const Value& v) { job.*in.*field = std::get<double>(v); };
    key.get = [=](const Job& job) { return Value(job.*in.*field); };
    return key;
}

template <class S>
Key boolean(std::string_view section, std::string_view name, In<S> in, bool S::*field,
            std::string_view help) {
    Key key = base(section, name, ValueType::boolean, help);
    key.set = [=](Job& job, const Value& v) { job.*in.*field = std::get<bool>(v); };
    key.get = [=](const Job& job) { return Value(job.*in.*field); };
    return key;
}

template <class S>
Key text(std::string_view section, std::string_view name, In<S> in, std::string S::*field,
         std::string_view help) {
    Key key = base(section, name, ValueType::text, help);
    key.set = [=](Job& job, const Value& v) { job.*in.*field = std::get<std::string>(v); };
    key.get = [=](const Job& job) { return Value(job.*in.*field); };
    return key;
}

// `choices` in the order of the enum.
template <class S, class Enum>
requires std::is_enum_v<Enum> Key choice(std::string_view section, std::string_view name, In<S> in,
                                         Enum S::*field, std::vector<std::string_view> choices,
                                         std::string_view help) {
    Key key = base(section, name, ValueType::text, help);
    key.choices = std::move(choices);
    key.set = [=, names = key.choices](Job& job, const Value& v) {
        const auto place = std::find(names.begin(), names.end(), std::get<std::string>(v));
        job.*in.*field = static_cast<Enum>(place - names.begin());
    };
    key.get = [=, names = key.choices](const Job& job) {
        return Value(std::string(names[static_cast<std::size_t>(job.*in.*field)]));
    };
    return key;
}

Key wrap_key() {
    Key key = base("fsdp", "wrap", ValueType::text,
                   "which modules are units: root, module:NAME[,NAME] (by class), size:N (parameters)");
    key.set = [](Job& job, const Value& v) { job.fsdp.wrap = parse_wrap(std::get<std::string>(v)); };
    key.get = [](const Job& job) { return Value(to_text(job.fsdp.wrap)); };
    return key;
}

Key betas_key() {
    Key key = base("optimizer", "betas", ValueType::numbers, "adamw: decay of the first and second moment");
    key.low = 0;
    key.high = 1;
    key.high_open = true;
    key.count = 2;
    key.set = [](Job& job, const Value& v) {
        const auto& numbers = std::get<std::vector<double>>(v);
        job.optimizer.betas = {numbers[0], numbers[1]};
    };
    key.get = [](const Job& job) {
        return Value(std::vector<double>(job.optimizer.betas.begin(), job.optimizer.betas.end()));
    };
    return key;
}

std::vector<Key> make_keys() {
    return {
        integer("run", "steps", &Job::run, &RunSection::steps, 1, 1e9, "optimizer steps"),
        integer("run", "seed", &Job::run, &RunSection::seed, 0, kMaxInteger,
                "of the weights and the samples"),
        integer("run", "ranks", &Job::run, &RunSection::ranks, 1, 256, "ranks, as threads of this process"),
        integer("run", "workers", &Job::run, &RunSection::workers, 0, 1024,
                "threads that do the ranks' work; 0: one per core"),
        integer("run", "blas_threads", &Job::run, &RunSection::blas_threads, 1, 1024,
                "threads inside one matrix product"),
        text("run", "trace", &Job::run, &RunSection::trace, "write the trace here (as --trace); empty: none"),
        boolean("run", "overwrite", &Job::run, &RunSection::overwrite,
                "replace an existing trace (as --overwrite)"),

        choice("model", "type", &Job::model, &ModelSection::type, {"mlp", "gpt"},
               "mlp: Linear layers with ReLU between; gpt: byte-level language model"),
        integer("model", "width", &Job::model, &ModelSection::width, 1, 65536, "features of a layer"),
        integer("model", "layers", &Job::model, &ModelSection::layers, 1, 4096,
                "mlp: Linear layers; gpt: blocks"),
        boolean("model", "bias", &Job::model, &ModelSection::bias, "mlp: Linear layers have a bias"),
        integer("model", "heads", &Job::model, &ModelSection::heads, 1, 4096, "gpt: attention heads"),
        integer("model", "context", &Job::model, &ModelSection::context, 1, 65536, "gpt: tokens of a sample"),

        choice("data", "type", &Job::data, &DataSection::type, {"synthetic", "text"},
               "synthetic: made from the seed (mlp); text: bytes of data.path (gpt)"),
        text("data", "path", &Job::data, &DataSection::path, "text: a file, or a folder of files"),
        integer("data", "batch", &Job::data, &DataSection::batch, 1, 1048576, "samples per rank and step"),

        choice("parallel", "mode", &Job::parallel, &ParallelSection::mode, {"fsdp", "ddp", "none"},
               "fsdp: parameters sharded; ddp: replicated; none: one rank"),

        choice("fsdp", "sharding_strategy", &Job::fsdp, &FsdpSection::sharding_strategy, {"FULL_SHARD"},
               "parameters, gradients and optimizer state are sharded; gathered for forward and backward"),
        wrap_key(),
        choice("fsdp", "layout", &Job::fsdp, &FsdpSection::layout, {"fsdp1"},
               "buffers as FullyShardedDataParallel has them: one flat parameter per unit"),
        choice("fsdp", "backward_prefetch", &Job::fsdp, &FsdpSection::backward_prefetch,
               {"BACKWARD_PRE", "BACKWARD_POST", "NONE"},
               "gather the next unit before (PRE) or after (POST) this unit's gradients, or when needed"),
        boolean("fsdp", "limit_all_gathers", &Job::fsdp, &FsdpSection::limit_all_gathers,
                "the host waits before it gathers a third unit"),

        number("ddp", "bucket_cap_mb", &Job::ddp, &DdpSection::bucket_cap_mb, 1e-3, 1e6,
               "gradient bytes reduced together, MB"),
        number("ddp", "first_bucket_mb", &Job::ddp, &DdpSection::first_bucket_mb, 1e-3, 1e6,
               "the same for the first bucket"),

        choice("optimizer", "type", &Job::optimizer, &OptimizerSection::type, {"sgd", "adamw"},
               "update rule"),
        number("optimizer", "lr", &Job::optimizer, &OptimizerSection::lr, 0, 1e3, "learning rate"),
        number("optimizer", "momentum", &Job::optimizer, &OptimizerSection::momentum, 0, 1,
               "sgd: 0 keeps no momentum buffer"),
        betas_key(),
        number("optimizer", "eps", &Job::optimizer, &OptimizerSection::eps, 1e-30, 1,
               "adamw: added to the root of the second moment"),
        number("optimizer", "weight_decay", &Job::optimizer, &OptimizerSection::weight_decay, 0, 1e3,
               "sgd: added to the gradient; adamw: decoupled, 0.01 unless given"),
    };
}

std::string number_text(double number) {
    if (number == static_cast<double>(static_cast<std::int64_t>(number))) {
        return fmt::format("{}", static_cast<std::int64_t>(number));
    }
    return fmt::format("{}", number);
}

bool in_range(const Key& key, double number) {
    return number >= key.low && (key.high_open ? number < key.high : number <= key.high);  // false for NaN
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
    const std::string_view guess = nearest(word, candidates);
    return guess.empty() ? std::string{} : fmt::format("did you mean {}?", guess);
}

std::vector<std::string_view> key_names(std::string_view section) {
    std::vector<std::string_view> names;
    for (const Key& key : keys()) {
        if (key.section == section) names.push_back(key.name);
    }
    return names;
}

}  // namespace

std::span<const Section> sections() {
    static constexpr Section kSections[] = {
        {"run", "the run itself"},
        {"model", "what is trained"},
        {"data", "what it is trained on"},
        {"parallel", "how ranks share the work"},
        {"fsdp", "with parallel.mode fsdp"},
        {"ddp", "with parallel.mode ddp"},
        {"optimizer", "how parameters are updated"},
    };
    return kSections;
}

std::span<const Key> keys() {
    static const std::vector<Key> table = make_keys();
    return table;
}

std::string Key::full_name() const {
    return fmt::format("{}.{}", section, name);
}

const Key* find_key(std::string_view section, std::string_view name) {
    const auto table = keys();
    const auto found = std::find_if(table.begin(), table.end(), [&](const Key& key) {
        return key.section == section && key.name == name;
    });
    return found == table.end() ? nullptr : &*found;
}

std::string allowed(const Key& key) {
    switch (key.type) {
        case ValueType::boolean:
            return "true or false";
        case ValueType::integer:
        case ValueType::number:
            return fmt::format("{} to {}", number_text(key.low), number_text(key.high));
        case ValueType::numbers:
            return fmt::format("{} numbers from {} to {} {}", key.count, number_text(key.low),
                               key.high_open ? "below" : "including", number_text(key.high));
        case ValueType::text:
            break;
    }
    if (key.choices.empty()) return "a text";
    return fmt::format("\"{}\"", fmt::join(key.choices, "\" or \""));
}

std::string problem(const Key& key, const Value& value) {
    switch (key.type) {
        case ValueType::boolean:
            return {};
        case ValueType::integer:
            if (in_range(key, static_cast<double>(std::get<std::int64_t>(value)))) return {};
            return fmt::format("{} is out of range; use {}", to_text(value), allowed(key));
        case ValueType::number:
            if (in_range(key, std::get<double>(value))) return {};
            return fmt::format("{} is out of range; use {}", to_text(value), allowed(key));
        case ValueType::numbers: {
            const auto& numbers = std::get<std::vector<double>>(value);
            const bool fits =
                numbers.size() == key.count &&
                std::all_of(numbers.begin(), numbers.end(), [&](double n) { return in_range(key, n); });
            return fits ? std::string{}
                        : fmt::format("{} does not fit; use {}", to_text(value), allowed(key));
        }
        case ValueType::text:
            break;
    }
    const std::string& word = std::get<std::string>(value);
    if (key.choices.empty() || std::find(key.choices.begin(), key.choices.end(), word) != key.choices.end()) {
        return {};
    }
    const std::string guess = did_you_mean(word, key.choices);
    return fmt::format("\"{}\" is not known; {}use {}", word, guess.empty() ? "" : guess + " ", allowed(key));
}

std::string unknown_section(std::string_view section) {
    std::vector<std::string_view> names;
    for (const Section& known : sections()) names.push_back(known.name);
    std::string guess = did_you_mean(section, names);
    if (guess.empty()) guess = fmt::format("the sections are {}", fmt::join(names, ", "));
    return fmt::format("there is no section [{}]; {}", section, guess);
}

std::string unknown_key(std::string_view section, std::string_view name) {
    std::string guess = did_you_mean(name, key_names(section));
    if (guess.empty()) {
        for (const Key& key : keys()) {  // the right name in the wrong section
            if (key.name == name) guess = fmt::format("did you mean {}?", key.full_name());
        }
    }
    if (guess.empty()) guess = fmt::format("its keys are {}", fmt::join(key_names(section), ", "));
    return fmt::format("there is no key {} in [{}]; {}", name, section, guess);
}

}  // namespace shardscope::trainer
