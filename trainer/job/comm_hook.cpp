// Communication hooks as text and back.
#include "trainer/job/comm_hook.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "traces/schema/text.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::job {

namespace {

// "powersgd:R"
std::string form_of(const CommHookTraits& hook) {
    return fmt::format("{}{}{}", hook.name, hook.argument.empty() ? "" : ":", hook.argument);
}

[[noreturn]] void refuse(const std::string& text, const std::string& what_to_use) {
    throw JobError(fmt::format("\"{}\" is not a communication hook; use {}", text, what_to_use));
}

}  // namespace

CommHook parse_comm_hook(const std::string& text) {
    const std::string_view all = text;
    const std::size_t colon = all.find(':');
    const std::string_view name = all.substr(0, colon);
    const auto row = std::find_if(kCommHooks.begin(), kCommHooks.end(),
                                  [&](const CommHookTraits& hook) { return hook.name == name; });
    if (row == kCommHooks.end()) {
        std::vector<std::string> forms;
        forms.reserve(kCommHooks.size());
        for (const CommHookTraits& hook : kCommHooks) forms.push_back(form_of(hook));
        refuse(text, traces::schema::joined(forms, ", "));
    }
    const auto kind = static_cast<CommHookKind>(row - kCommHooks.begin());
    if (row->argument.empty()) {
        if (colon != all.npos) refuse(text, fmt::format("\"{}\", which takes no number", row->name));
        return {kind, 0};
    }
    const auto amount =
        colon == all.npos ? std::nullopt : traces::schema::number_of<double>(all.substr(colon + 1));
    const bool fits = amount && *amount >= row->least && *amount <= row->most &&
                      (!row->whole || *amount == static_cast<double>(static_cast<std::int64_t>(*amount)));
    if (!fits) {
        refuse(text, fmt::format("{}, where {} is {} from {} to {}", form_of(*row), row->argument,
                                 row->whole ? "an integer" : "a number", row->least, row->most));
    }
    return {kind, *amount};
}

std::string to_text(const CommHook& hook) {
    const CommHookTraits& row = traits(hook.kind);
    return row.argument.empty() ? std::string(row.name) : fmt::format("{}:{}", row.name, hook.amount);
}

}  // namespace shardscope::trainer::job
