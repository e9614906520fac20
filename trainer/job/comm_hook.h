// The communication hooks of DDP as a job file writes them: "none", "bf16", "powersgd:4", "topk:0.01".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::trainer::job {

enum class CommHookKind : std::uint8_t {
#define COMM_HOOK(name, ...) name,
#include "trainer/job/comm_hooks.def"
#undef COMM_HOOK
};

struct CommHook {
    CommHookKind kind = CommHookKind::none;
    double amount = 0;  // powersgd: the rank of the approximation; topk: the share of the elements

    bool operator==(const CommHook&) const = default;
};
// JobError for anything else.
CommHook parse_comm_hook(const std::string& text);
std::string to_text(const CommHook& hook);

// A row of comm_hooks.def, which says what the columns mean.
struct CommHookTraits {
    std::string_view name, argument;
    double least = 0, most = 0;
    bool whole = false, keeps_error = false, on_gpu = false;
};

inline constexpr std::array kCommHooks = {
#define COMM_HOOK(name, ...) CommHookTraits{#name, __VA_ARGS__},
#include "trainer/job/comm_hooks.def"
#undef COMM_HOOK
};

constexpr const CommHookTraits& traits(CommHookKind kind) {
    return kCommHooks[static_cast<std::size_t>(kind)];
}

}  // namespace shardscope::trainer::job
