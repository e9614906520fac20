// Reads a job file: looks up each TOML key in the table of keys and stores its value.
#include "trainer/job/job.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <toml++/toml.h>

#include "trainer/job/loading.h"
#include "trainer/job/toml_depth.h"

namespace shardscope::trainer::job {

namespace {

constexpr std::uintmax_t kMaxFileBytes = 1 << 20;  // a job file is a page long; more is a mistake

std::string at(const std::string& file, const toml::source_region& source) {
    return source.begin.line > 0 ? fmt::format("{}:{}", file, source.begin.line) : file;
}

// The node's value as `type`; nothing if it has another. An integer is accepted as a number.
std::optional<Value> value_of(const toml::node& node, ValueType type) {
    switch (type) {
        case ValueType::boolean:
            if (const auto* boolean = node.as_boolean()) return Value(boolean->get());
            break;
        case ValueType::integer:
            if (const auto* integer = node.as_integer()) return Value(integer->get());
            break;
        case ValueType::number:
            if (node.is_number()) return Value(*node.value<double>());
            break;
        case ValueType::text:
            if (const auto* text = node.as_string()) return Value(text->get());
            break;
        case ValueType::numbers:
            if (const auto* array = node.as_array()) {
                std::vector<double> numbers;
                for (const toml::node& element : *array) {
                    if (!element.is_number()) return std::nullopt;
                    numbers.push_back(*element.value<double>());
                }
                return Value(std::move(numbers));
            }
            break;
    }
    return std::nullopt;
}

std::string found(const toml::node& node) {
    switch (node.type()) {
        case toml::node_type::table:
            return "a table";
        case toml::node_type::array:
            for (const toml::node& element : *node.as_array()) {
                if (!element.is_number()) return fmt::format("a list with {}", found(element));
            }
            return "a list";
        case toml::node_type::string:
            return fmt::format("the text \"{}\"", node.as_string()->get());
        case toml::node_type::integer:
            return fmt::format("the integer {}", node.as_integer()->get());
        case toml::node_type::floating_point:
            return fmt::format("the number {}", node.as_floating_point()->get());
        case toml::node_type::boolean:
            return node.as_boolean()->get() ? "true" : "false";
        default:
            return "a date or time";
    }
}

// The rules of [[fsdp.unit]] as the key's text. Each table has `match` and one of the other two.
std::string unit_rules(const std::string& file, const toml::array& tables) {
    std::string text;
    for (const toml::node& node : tables) {
        const toml::table& table = *node.as_table();
        std::optional<std::string> match;
        std::optional<bool> reshards;
        for (const auto& [name, value] : table) {
            const std::string where = fmt::format("{}: fsdp.unit: ", at(file, name.source()));
            if (name.str() == "match" && value.is_string()) {
                match = value.as_string()->get();
                if (match->find_first_of(" =") != std::string::npos) {
                    throw JobError(fmt::format(
                        "{}match = \"{}\" is not a selection of modules; omit spaces and =", where, *match));
                }
                try {
                    if (parse_modules(*match).names.empty())
                        throw JobError("none selects no unit; omit the table");
                } catch (const JobError& error) {
                    throw JobError(fmt::format("{}match: {}", where, error.what()));
                }
            } else if (name.str() == "reshard_after_forward" && value.is_boolean()) {
                reshards = value.as_boolean()->get();
            } else if (name.str() == "sharding_strategy" && value.is_string()) {
                const std::string& strategy = value.as_string()->get();
                reshards = strategy == "FULL_SHARD" || strategy == "ZERO_3";
                if (!*reshards && strategy != "SHARD_GRAD_OP" && strategy != "ZERO_2") {
                    throw JobError(fmt::format(
                        "{}sharding_strategy = \"{}\": a single unit may be FULL_SHARD (freed after the "
                        "forward) or SHARD_GRAD_OP (kept until the backward); the groups are the job's",
                        where, strategy));
                }
            } else {
                throw JobError(
                    fmt::format("{}{} is {}; a unit has match (a text such as \"path:blocks.0\") and "
                                "reshard_after_forward (true or false) or sharding_strategy",
                                where, name.str(), found(value)));
            }
        }
        if (!match || !reshards || table.size() != 2) {
            throw JobError(
                fmt::format("{}: fsdp.unit: give match and reshard_after_forward, or match and "
                            "sharding_strategy",
                            at(file, table.source())));
        }
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", *match, *reshards ? "true" : "false");
    }
    return text;
}

void read_section(Job& job, const std::string& file, std::string_view section, const toml::table& table,
                  Origins& origins) {
    for (const auto& [key_name, node] : table) {
        const std::string where = at(file, key_name.source());
        const Key* key = find_key(section, key_name.str());
        if (key == nullptr)
            throw JobError(fmt::format("{}: {}", where, unknown_key(section, key_name.str())));
        auto value = value_of(node, key->type);
        if (key->full_name() == "fsdp.unit" && node.is_array() &&
            (node.as_array()->empty() || node.is_array_of_tables())) {
            value = unit_rules(file, *node.as_array());
        } else if (node.is_integer() && key->counts) {
            value = std::to_string(node.as_integer()->get());
        } else if (node.is_boolean() && !key->choices.empty()) {  // auto, true or false
            value = node.as_boolean()->get() ? "true" : "false";
        }
        if (!value) {
            throw JobError(fmt::format("{}: {}: expected {}, found {}; use {}", where, key->full_name(),
                                       key->counts ? "an integer or a text" : name(key->type), found(node),
                                       allowed(*key)));
        }
        set_key(job, *key, *value, where, origins);
    }
}

std::string read_file(const std::string& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) {
        throw JobError(fmt::format("{}: there is no such job file; give the path of a .toml file", path));
    }
    if (std::filesystem::is_directory(status)) {
        throw JobError(fmt::format("{}: this is a folder; give the path of a .toml file", path));
    }
    std::ifstream stream(path, std::ios::binary);
    if (!stream)
        throw JobError(
            fmt::format("{}: cannot be read ({}); check its permissions", path, std::strerror(errno)));
    std::string text(kMaxFileBytes + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kMaxFileBytes) {
        throw JobError(
            fmt::format("{}: larger than 1 MiB, so not a job file; give the path of a .toml file", path));
    }
    return text;
}

}  // namespace

std::string JobError::one_line(std::string sentence) {
    for (char& c : sentence) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7F) c = '?';
    }
    return sentence;
}

Job parse_job(const std::string& toml, const std::string& file, const std::vector<Override>& overrides,
              const Launched& launched) {
    Job job;
    Origins origins;
    toml::table root;
    if (const int line = line_too_deep(toml); line > 0) {
        throw JobError(fmt::format("{}:{}: a key of more than {} parts; a job's keys have two, SECTION.NAME",
                                   file, line, kMostKeyParts));
    }
    try {
        root = toml::parse(toml, file);
    } catch (const toml::parse_error& error) {
        throw JobError(fmt::format("{}: not TOML: {}; correct this line", at(file, error.source()),
                                   std::string(error.description())));
    }
    for (const auto& [section, node] : root) {
        const std::string where = at(file, section.source());
        bool known = false;
        for (const Section& candidate : sections()) known = known || candidate.name == section.str();
        if (!known) {
            if (node.is_table()) throw JobError(fmt::format("{}: {}", where, unknown_section(section.str())));
            throw JobError(fmt::format("{}: the key {} is in no section; write it below a line like [run]",
                                       where, section.str()));
        }
        if (!node.is_table()) {
            throw JobError(
                fmt::format("{}: {} is a section; write [{}] on a line of its own and its keys below it",
                            where, section.str(), section.str()));
        }
        read_section(job, file, section.str(), *node.as_table(), origins);
    }
    for (const Override& override : overrides) apply(job, override, origins);
    apply_launcher(job, launched, origins);
    finish(job, file, origins);
    job.origins = std::move(origins);
    return job;
}

std::string where(const Job& job, const std::string& key) {
    const auto origin = job.origins.find(key);
    return origin == job.origins.end() ? "" : origin->second + ": ";
}

Job load_job(const std::string& path, const std::vector<Override>& overrides, const Launched& launched) {
    return parse_job(read_file(path), path, overrides, launched);
}

}  // namespace shardscope::trainer::job
