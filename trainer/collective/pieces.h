// Arithmetic of collectives that every process group shares: which member has which piece, and whether
// members agree.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "trainer/collective/collective_call.h"

namespace shardscope::trainer::collective {

struct ElementRange {
    std::int64_t begin = 0, end = 0;
    std::int64_t count() const { return end - begin; }
};

// The piece of the member at `place` when `elements` are cut into as many equal pieces as there are members.
inline ElementRange piece_of(std::int64_t elements, std::size_t members, std::size_t place) {
    const auto n = static_cast<std::int64_t>(members);
    const std::int64_t each = (elements + n - 1) / n;
    const std::int64_t begin = std::min(elements, static_cast<std::int64_t>(place) * each);
    return {begin, std::min(elements, begin + each)};
}

// The piece at a place of a buffer that is divided as an all_to_all says.
inline ElementRange exchanged_piece(const CollectiveCall& call, const std::vector<std::int64_t>& counts,
                                    std::size_t members, std::size_t place) {
    if (!counts.empty()) {
        const auto own = counts.begin() + static_cast<std::ptrdiff_t>(place);
        const std::int64_t begin = std::accumulate(counts.begin(), own, std::int64_t{0});
        return {begin, begin + *own};
    }
    const auto n = static_cast<std::int64_t>(members);
    if (call.full_elements % n != 0) {
        throw std::logic_error(
            fmt::format("all_to_all of {} elements cannot be divided among {} ranks", call.full_elements, n));
    }
    const std::int64_t each = call.full_elements / n, begin = static_cast<std::int64_t>(place) * each;
    return {begin, begin + each};
}
// What an all_to_all sends to, or receives from, the member at a place.
inline ElementRange sent_piece(const CollectiveCall& call, std::size_t members, std::size_t place) {
    return exchanged_piece(call, call.sends, members, place);
}
inline ElementRange received_piece(const CollectiveCall& call, std::size_t members, std::size_t place) {
    return exchanged_piece(call, call.receives, members, place);
}

// What the member at place `from` of an all_to_all sends to that at place `to`: where the one has it, and
// where the other wants it. `calls`: by place.
struct SentRange {
    ElementRange sent, received;
};
inline SentRange sent_between(const std::vector<CollectiveCall>& calls, std::size_t from, std::size_t to) {
    const SentRange range{sent_piece(calls[from], calls.size(), to),
                          received_piece(calls[to], calls.size(), from)};
    if (range.sent.count() != range.received.count()) {
        throw std::logic_error(
            fmt::format("all_to_all: the member at place {} sends {} elements to that at place {}, which "
                        "expects {}",
                        from, range.sent.count(), to, range.received.count()));
    }
    return range;
}

// Whether two members that call these operations take part in the same collective. A send fits a receive.
inline bool fit(plan::Operation a, plan::Operation b) {
    return traces::schema::is_point_to_point(a) ? traces::schema::is_point_to_point(b) && a != b : a == b;
}

inline bool agree(const CollectiveCall& a, const CollectiveCall& b) {
    return fit(a.operation, b.operation) && a.dtype == b.dtype && a.full_elements == b.full_elements &&
           a.divisor == b.divisor && a.reduction == b.reduction;
}

// The call as text, for messages.
inline std::string describe(const CollectiveCall& call) {
    const bool message = traces::schema::is_point_to_point(call.operation);
    return fmt::format("{} of {} {} elements{}{}", traces::schema::name(call.operation), call.full_elements,
                       plan::kDTypeNames[static_cast<std::size_t>(call.dtype)],
                       message ? "" : fmt::format(" over {}", call.divisor),
                       call.reduction == plan::Reduction::max ? " by maximum" : "");
}

}  // namespace shardscope::trainer::collective
