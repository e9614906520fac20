#include "trainer/sim/figure_reader.h"

#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <toml++/toml.h>

#include "traces/schema/joined.h"
#include "trainer/job/nearest.h"
#include "trainer/job/toml_depth.h"

namespace shardscope::trainer::sim {

namespace {

std::string full_name(std::string_view section, std::string_view key) {
    return fmt::format("{}.{}", section, key);
}

std::optional<double> number_of(const toml::node& node) {
    return node.is_number() ? node.value<double>() : std::nullopt;
}

}  // namespace

struct FigureReader::Impl {
    std::string file;
    toml::table root;
    std::set<std::string> asked;  // full names of keys

    std::string at(const toml::node& node) const {
        const auto line = node.source().begin.line;
        return line > 0 ? fmt::format("{}:{}", file, line) : file;
    }
    [[noreturn]] void refuse(const toml::node& node, std::string_view section, std::string_view key,
                             const std::string& why) const {
        throw ClusterError(fmt::format("{}: {}: {}", at(node), full_name(section, key), why));
    }
    const toml::table* table(std::string_view section) const {
        const auto node = root.at_path(section);
        if (!node) return nullptr;
        if (!node.is_table()) {
            throw ClusterError(
                fmt::format("{}: {} is a section; write [{}] on a line of its own and its "
                            "keys below it",
                            at(*node.node()), section, section));
        }
        return node.as_table();
    }
    // Null: the key is absent and optional.
    const toml::node* find(std::string_view section, std::string_view key, std::string_view what,
                           Presence presence) {
        asked.insert(full_name(section, key));
        const toml::table* table = this->table(section);
        const toml::node* node = table ? table->get(key) : nullptr;
        if (!node && presence == Presence::required) {
            throw ClusterError(fmt::format("{}: {}: the figure is missing; give {}",
                                           table ? at(*table) : file, full_name(section, key), what));
        }
        return node;
    }
    void check_table(const toml::table& table, const std::string& prefix) const;
};

FigureReader::FigureReader(const std::string& toml, std::string file) : impl_(std::make_unique<Impl>()) {
    impl_->file = std::move(file);
    if (const int line = job::line_too_deep(toml); line > 0) {
        throw ClusterError(
            fmt::format("{}:{}: a key of more than {} parts; see the files of samples/clusters", impl_->file,
                        line, job::kMostKeyParts));
    }
    try {
        impl_->root = toml::parse(toml, impl_->file);
    } catch (const toml::parse_error& error) {
        throw ClusterError(fmt::format("{}:{}: not TOML: {}; correct this line", impl_->file,
                                       error.source().begin.line, std::string(error.description())));
    }
}

FigureReader::~FigureReader() = default;

bool FigureReader::has(std::string_view section) const {
    return impl_->table(section) != nullptr;
}

bool FigureReader::number(std::string_view section, std::string_view key, std::string_view what, double low,
                          double high, double& into, Presence presence) {
    const toml::node* node = impl_->find(section, key, what, presence);
    if (!node) return false;
    const auto value = number_of(*node);
    if (!value) impl_->refuse(*node, section, key, fmt::format("this is not a number; give {}", what));
    if (!std::isfinite(*value) || *value < low || *value > high) {
        impl_->refuse(*node, section, key,
                      fmt::format("{} is impossible; give {}, {} to {}", *value, what, low, high));
    }
    into = *value;
    return true;
}

bool FigureReader::positive(std::string_view section, std::string_view key, std::string_view what,
                            double& into, Presence presence) {
    const toml::node* node = impl_->find(section, key, what, presence);
    if (!node) return false;
    const auto value = number_of(*node);
    if (!value) impl_->refuse(*node, section, key, fmt::format("this is not a number; give {}", what));
    if (!std::isfinite(*value) || *value <= 0) {
        impl_->refuse(*node, section, key, fmt::format("{} is impossible; give {}, above 0", *value, what));
    }
    into = *value;
    return true;
}

bool FigureReader::count(std::string_view section, std::string_view key, std::string_view what, int low,
                         int high, int& into, Presence presence) {
    double value = 0;
    if (!number(section, key, what, low, high, value, presence)) return false;
    if (value != std::floor(value)) {
        impl_->refuse(*impl_->find(section, key, what, presence), section, key,
                      fmt::format("{} is not a whole number; give {}", value, what));
    }
    into = static_cast<int>(value);
    return true;
}

bool FigureReader::boolean(std::string_view section, std::string_view key, bool& into) {
    const toml::node* node = impl_->find(section, key, "", Presence::optional);
    if (!node) return false;
    const auto value = node->value_exact<bool>();
    if (!value) impl_->refuse(*node, section, key, "use true or false");
    into = *value;
    return true;
}

bool FigureReader::text(std::string_view section, std::string_view key, std::string_view what,
                        std::string& into, Presence presence) {
    const toml::node* node = impl_->find(section, key, what, presence);
    if (!node) return false;
    const auto value = node->value_exact<std::string>();
    if (!value || value->empty())
        impl_->refuse(*node, section, key, fmt::format("this is not text; give {}", what));
    into = *value;
    return true;
}

bool FigureReader::choice(std::string_view section, std::string_view key,
                          std::span<const std::string_view> choices, std::size_t& into) {
    const std::string what = fmt::format("\"{}\"", traces::schema::joined(choices, "\" or \""));
    std::string word;
    text(section, key, what, word);
    for (std::size_t i = 0; i < choices.size(); ++i) {
        if (choices[i] != word) continue;
        into = i;
        return true;
    }
    impl_->refuse(*impl_->find(section, key, what, Presence::required), section, key,
                  fmt::format("\"{}\" is not known; use {}", word, what));
}

bool FigureReader::curve(std::string_view section, std::string_view key, Curve& into) {
    constexpr const char* kWhat = "a share of the rate above 0 and up to 1, or points [size, share]";
    const toml::node* node = impl_->find(section, key, kWhat, Presence::optional);
    if (!node) return false;
    const auto check = [&](const toml::node& where, double share) {
        if (std::isfinite(share) && share > 0 && share <= 1) return;
        impl_->refuse(where, section, key, fmt::format("the share {} is impossible; give {}", share, kWhat));
    };
    Curve curve;
    if (const auto share = number_of(*node)) {
        check(*node, *share);
        curve.points = {{1, *share}};
    } else if (const toml::array* points = node->as_array(); points && !points->empty()) {
        for (const toml::node& point : *points) {
            const toml::array* pair = point.as_array();
            const bool right = pair && pair->size() == 2 && (*pair)[0].is_number() && (*pair)[1].is_number();
            if (!right)
                impl_->refuse(point, section, key, fmt::format("this is not a point; give {}", kWhat));
            const Curve::Point next{*number_of((*pair)[0]), *number_of((*pair)[1])};
            check(point, next.share);
            const double last = curve.points.empty() ? 0 : curve.points.back().size;
            if (!std::isfinite(next.size) || next.size <= last) {
                impl_->refuse(point, section, key,
                              fmt::format("the size {} does not rise; list the points from the smallest size "
                                          "on, above 0",
                                          next.size));
            }
            curve.points.push_back(next);
        }
    } else {
        impl_->refuse(*node, section, key, fmt::format("this is not a curve; give {}", kWhat));
    }
    into = std::move(curve);
    return true;
}

bool FigureReader::pairs(std::string_view section, std::string_view key, std::string_view what,
                         std::string_view of, int size, double low, double high, PairFigures& into) {
    const toml::node* node = impl_->find(section, key, what, Presence::optional);
    if (!node) return false;
    if (size < 2) impl_->refuse(*node, section, key, fmt::format("it needs a {} of 2 or more", of));
    const std::string wanted =
        fmt::format("give {}: {} rows of {} figures, as {} says", what, size, size, of);
    const toml::array* rows = node->as_array();
    if (!rows) impl_->refuse(*node, section, key, fmt::format("this is not a list of rows; {}", wanted));
    if (rows->size() != static_cast<std::size_t>(size))
        impl_->refuse(*node, section, key, fmt::format("this has {} rows; {}", rows->size(), wanted));
    PairFigures figures{.size = size, .values = {}};
    for (int r = 0; r < size; ++r) {
        const toml::node& line = (*rows)[static_cast<std::size_t>(r)];
        const toml::array* row = line.as_array();
        if (!row || row->size() != static_cast<std::size_t>(size)) {
            impl_->refuse(
                line, section, key,
                fmt::format("row {} {}; {}", r + 1,
                            row ? fmt::format("has {} figures", row->size()) : "is not a list", wanted));
        }
        for (int c = 0; c < size; ++c) {
            const toml::node& cell = (*row)[static_cast<std::size_t>(c)];
            const std::optional<double> value = number_of(cell);
            const bool right =
                value && std::isfinite(*value) && (r == c || (*value >= low && *value <= high));
            if (!right) {
                impl_->refuse(cell, section, key,
                              fmt::format("figure {} of row {} is not a number from {} to {}; {}", c + 1,
                                          r + 1, low, high, wanted));
            }
            figures.values.push_back(*value);
        }
    }
    into = std::move(figures);
    return true;
}

void FigureReader::Impl::check_table(const toml::table& table, const std::string& prefix) const {
    for (const auto& [key, node] : table) {
        const std::string name =
            prefix.empty() ? std::string(key.str()) : prefix + "." + std::string(key.str());
        if (node.is_table()) {
            check_table(*node.as_table(), name);
            continue;
        }
        if (asked.contains(name)) continue;
        std::vector<std::string_view> known(asked.begin(), asked.end());
        const std::string_view guess = job::nearest(name, known);
        throw ClusterError(fmt::format(
            "{}:{}: there is no figure {}; {}", file, key.source().begin.line, name,
            guess.empty() ? std::string("omit the line") : fmt::format("did you mean {}?", guess)));
    }
}

void FigureReader::end() const {
    impl_->check_table(impl_->root, "");
}

}  // namespace shardscope::trainer::sim
