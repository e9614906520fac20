#include "trainer/plan/kernel_table.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/core.h>

#include "traces/schema/text.h"

namespace shardscope::trainer::plan {

namespace {

struct Row {
    std::string_view name;
    KernelClass kernel_class;
    std::string_view operands, meaning;
};

constexpr Row kRows[] = {
#define KERNEL(name, kernel_class, operands, meaning) {#name, KernelClass::kernel_class, operands, meaning},
#include "trainer/plan/kernels.def"
#undef KERNEL
};

// The parts of a text between separators, without surrounding spaces.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (!traces::schema::trimmed(text).empty()) {
        const auto end = text.find(separator);
        parts.push_back(traces::schema::trimmed(text.substr(0, end)));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    return parts;
}

bool take(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

KernelArg read_arg(std::string_view text) {
    KernelArg arg;
    if (take(text, "[")) {
        arg.may_be_missing = true;
        text.remove_suffix(1);
    }
    if (take(text, "inout ")) arg.role = KernelArg::Role::inout;
    if (take(text, "out ")) arg.role = KernelArg::Role::out;
    if (take(text, "f ") || take(text, "i ")) arg.element_bytes = 4;
    if (take(text, "d ")) arg.element_bytes = 8;
    if (take(text, "b ")) arg.element_bytes = 1;
    if (text.ends_with("...")) {
        arg.repeats = true;
        text.remove_suffix(3);
    }
    if (text.ends_with('?')) {
        arg.may_have_none = true;
        text.remove_suffix(1);
    }
    arg.name = text;
    return arg;
}

std::vector<KernelInfo> read_table() {
    std::vector<KernelInfo> table;
    for (const Row& row : kRows) {
        KernelInfo info;
        info.kernel = static_cast<Kernel>(table.size());
        info.name = row.name;
        info.kernel_class = row.kernel_class;
        info.meaning = row.meaning;
        const auto sections = parts_of(row.operands, '|');
        if (!sections.empty()) {
            for (const std::string_view arg : parts_of(sections[0], ',')) info.args.push_back(read_arg(arg));
        }
        if (sections.size() > 1) info.dims = parts_of(sections[1], ',');
        if (sections.size() > 2) info.scalars = parts_of(sections[2], ',');
        table.push_back(std::move(info));
    }
    return table;
}

std::string list_of(const KernelInfo& info) {
    std::string names;
    for (const KernelArg& arg : info.args) {
        names += fmt::format("{}{}{}{}", names.empty() ? "" : ", ", arg.may_be_missing ? "[" : "", arg.name,
                             arg.may_be_missing ? "]"
                             : arg.repeats      ? "..."
                                                : "");
    }
    return names;
}

}  // namespace

const std::vector<KernelInfo>& kernel_table() {
    static const std::vector<KernelInfo> kTable = read_table();
    return kTable;
}

const KernelInfo& kernel_info(Kernel kernel) {
    return kernel_table()[static_cast<std::size_t>(kernel)];
}

std::string misfit(const Op& op) {
    const KernelOp& kernel = op.kernel();
    const KernelInfo& info = kernel_info(kernel.kernel);
    if (kernel.kernel == Kernel::none) return {};
    const auto needed = static_cast<std::size_t>(std::count_if(
        info.args.begin(), info.args.end(), [](const KernelArg& a) { return !a.may_be_missing; }));
    if (op.args.size() < needed || (op.args.size() > info.args.size() && !info.args.back().repeats))
        return fmt::format("{} takes {}, but has {} args", info.name, list_of(info), op.args.size());
    for (std::size_t i = 0; i < op.args.size(); ++i) {
        const KernelArg& arg = info.arg(i);
        if (op.args[i].buffer < 0 && !arg.may_have_none)
            return fmt::format("{} has no {}", info.name, arg.name);
        if (op.args[i].buffer >= 0 && op.args[i].bytes < arg.element_bytes)
            return fmt::format("{}: its {} of {} bytes is less than an element of {}", info.name, arg.name,
                               op.args[i].bytes, arg.element_bytes);
    }
    for (std::size_t i = info.dims.size(); i < kernel.dims.size(); ++i) {
        if (kernel.dims[i] != 0)
            return fmt::format("{} takes {} dims, but more are given", info.name, info.dims.size());
    }
    return {};
}

}  // namespace shardscope::trainer::plan
