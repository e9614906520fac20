#include "trainer/comm/call_header.h"

#include <cstddef>

#include <fmt/core.h>

#include "trainer/collective/pieces.h"

namespace shardscope::trainer::comm {

namespace {

std::string call(const CallHeader& header, const UnitName& unit_name) {
    std::string text(traces::schema::name(header.operation));
    if (header.operation != plan::Operation::barrier) {
        text += fmt::format(" of {} {}", header.full_elements,
                            plan::kDTypeNames[static_cast<std::size_t>(header.dtype)]);
    }
    if (header.reduction == plan::Reduction::max) text += " by maximum";
    if (header.divisor != 1) text += fmt::format(" divided by {}", header.divisor);
    return fmt::format("{} ({})", text, where(header, unit_name));
}

// `ends`: the sender and the receiver.
std::string message(const CallHeader& header, const std::vector<int>& ends) {
    return fmt::format("message number {} from rank {} to rank {}", header.sequence, ends[0], ends[1]);
}

}  // namespace

bool agree(const CallHeader& a, const CallHeader& b) {
    CallHeader same = b;
    if (traces::schema::is_point_to_point(a.operation) && collective::fit(a.operation, b.operation)) {
        same.operation = a.operation;
        same.unit = a.unit;
        same.phase = a.phase;
    }
    return a == same;
}

CallHeader header_of(const device::CollectiveLaunch& launch) {
    CallHeader header;
    header.sequence = launch.sequence;
    header.step = launch.step;
    header.full_elements = launch.call.full_elements;
    header.communicator = launch.communicator;
    header.unit = launch.unit;
    header.divisor = launch.call.divisor;
    header.reduction = launch.call.reduction;
    header.operation = launch.call.operation;
    header.dtype = launch.call.dtype;
    header.phase = launch.phase;
    return header;
}

std::string where(const CallHeader& header, const UnitName& unit_name) {
    std::string text = fmt::format("step {}", header.step);
    if (header.unit >= 0) {
        text += fmt::format(", unit {}", header.unit);
        const std::string name = unit_name ? unit_name(header.unit) : std::string();
        if (!name.empty()) text += fmt::format(" \"{}\"", name);
    }
    if (header.phase != plan::Phase::none) text += fmt::format(", {}", traces::schema::name(header.phase));
    return text;
}

std::string title(const CallHeader& header, const UnitName& unit_name, const std::vector<int>& ends) {
    if (ends.size() == 2) return fmt::format("{} ({})", message(header, ends), where(header, unit_name));
    return fmt::format("{} number {} of communicator {} ({})", traces::schema::name(header.operation),
                       header.sequence, header.communicator, where(header, unit_name));
}

std::string divergence(const CallHeader& theirs, int reference_rank, const CallHeader& reference,
                       const UnitName& unit_name, const std::vector<int>& ends) {
    const std::string place = ends.size() == 2 ? message(reference, ends)
                                               : fmt::format("number {} of communicator {}",
                                                             reference.sequence, reference.communicator);
    return fmt::format(
        "calls {} where rank {} calls {}: {}; all ranks must run the same job with the same calls in the "
        "same order",
        call(theirs, unit_name), reference_rank, call(reference, unit_name), place);
}

}  // namespace shardscope::trainer::comm
