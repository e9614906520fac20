#include "trainer/plan/print.h"

#include <fmt/core.h>

#include "trainer/plan/kernel_table.h"

namespace shardscope::trainer::plan {

namespace {

std::string label(const std::vector<std::string>& labels, int id) {
    return id >= 0 && static_cast<std::size_t>(id) < labels.size() ? labels[static_cast<std::size_t>(id)]
                                                                   : "";
}

std::string_view name_of(DType type) {
    return kDTypeNames[static_cast<std::size_t>(type)];
}

std::string buffer_name(const Plan& plan, const Arg& arg) {
    return arg.buffer < 0 ? "-" : plan.buffers[static_cast<std::size_t>(arg.buffer)].name;
}

// "y: blocks.0 out, x: blocks.0 in, weight: blocks.0 flat_param (unsharded) | rows 32, in 64, out 256": all
// operands of the kernel, "-" for an omitted arg.
std::string describe_kernel(const Plan& plan, const Op& op) {
    const KernelOp& kernel = op.kernel();
    const KernelInfo& info = kernel_info(kernel.kernel);
    std::string text;
    const auto add = [&](std::string_view between, const std::string& part) {
        text += fmt::format("{}{}", text.empty() ? "" : between, part);
    };
    for (std::size_t i = 0; i < op.args.size(); ++i) {
        const bool is_flag = kernel.checks_output && i + 1 == op.args.size();
        add(", ",
            fmt::format("{}: {}", is_flag ? "not finite" : info.arg(i).name, buffer_name(plan, op.args[i])));
    }
    for (std::size_t i = 0; i < info.dims.size(); ++i) {
        const bool is_type = info.dims[i].starts_with("dtype of ");
        add(i == 0 ? " | " : ", ", fmt::format("{} {}", info.dims[i],
                                               is_type ? std::string(name_of(input_type(kernel, i)))
                                                       : std::to_string(kernel.dims[i])));
    }
    for (std::size_t i = 0; i < info.scalars.size(); ++i)
        add(i == 0 ? " | " : ", ", fmt::format("{} {}", info.scalars[i], kernel.scalars[i]));
    if (kernel.segments >= 0) {
        const std::size_t count = plan.segments[static_cast<std::size_t>(kernel.segments)].size();
        add(" | ", fmt::format("{} segment{}", count, count == 1 ? "" : "s"));
    }
    if (kernel.dtype != DType::fp32) add(" | ", std::string(name_of(kernel.dtype)));
    return text;
}

// "root flat_param -> root flat_param (unsharded), shard group, divided by 8, bf16"
std::string describe_collective(const Plan& plan, const Op& op) {
    const CollectiveOp& own = op.collective();
    if (is_message(op)) {
        const bool sends = own.operation == Operation::send;
        const std::string peer =
            own.group == Group::context
                ? fmt::format("the {} rank of the context group", sends ? "next" : "previous")
            : own.group == Group::world ? fmt::format("rank {}", own.peer)
                                        : fmt::format("place {} of the pipeline group", own.peer);
        return fmt::format("{}, {} {}{}", buffer_name(plan, op.args[0]), sends ? "to" : "from", peer,
                           own.dtype != DType::fp32 ? fmt::format(", {}", name_of(own.dtype)) : "");
    }
    std::string text;
    if (op.args[0].buffer >= 0) {
        text = buffer_name(plan, op.args[1]) + " -> " + buffer_name(plan, op.args[0]) + ", ";
    }
    text += fmt::format("{} group", kGroupNames[static_cast<std::size_t>(own.group)]);
    if (own.divisor != 1) text += fmt::format(", divided by {}", own.divisor);
    if (own.reduction == Reduction::max) text += ", maximum";
    if (own.dtype != DType::fp32) text += fmt::format(", {}", name_of(own.dtype));
    return text;
}

std::string where(const Op& op) {
    if (op.stream == Stream::host || op.kind == OpKind::allocate) return "host";
    return std::string(kStreamNames[static_cast<std::size_t>(op.stream)]);
}

const char* copy_name(int kind) {
    switch (kind) {
        case traces::schema::kCopyHostToDevice:
            return "memcpy HtoD";
        case traces::schema::kCopyDeviceToHost:
            return "memcpy DtoH";
        case traces::schema::kCopyDiskToHost:
            return "read";
        case traces::schema::kCopyHostToDisk:
            return "write";
        default:
            return "memcpy DtoD";
    }
}

struct Words {
    std::string what, detail;
};

Words describe_op(const Plan& plan, const Op& op) {
    const std::string name = plan.names[static_cast<std::size_t>(op.name)];
    switch (op.kind) {
        case OpKind::allocate:
            return {"allocate", buffer_name(plan, op.args[0])};
        case OpKind::free:
            return {"free", buffer_name(plan, op.args[0])};
        case OpKind::push_range:
            return {name, ""};
        case OpKind::pop_range:
            return {"", ""};
        case OpKind::host_wait:
            return {"wait for event", fmt::format("event {}", op.event())};
        case OpKind::host_call:
            return {"call", name};
        case OpKind::record_event:
            return {"record event", fmt::format("event {}", op.event())};
        case OpKind::wait_event:
            return {"wait event", fmt::format("event {}", op.event())};
        case OpKind::kernel:
            return {name, describe_kernel(plan, op)};
        case OpKind::memcpy:
            return {copy_name(op.copy_kind()),
                    buffer_name(plan, op.args[1]) + " -> " + buffer_name(plan, op.args[0])};
        case OpKind::memset:
            return {op.value() == 0 ? "memset 0" : fmt::format("memset {:#04x}", op.value()),
                    buffer_name(plan, op.args[0])};
        case OpKind::collective:
            return {std::string(traces::schema::name(op.collective().operation)),
                    describe_collective(plan, op)};
    }
    return {};
}

}  // namespace

std::string with_thousands(std::int64_t value) {
    std::string digits = std::to_string(value < 0 ? -value : value);
    for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), ",");
    return (value < 0 ? "-" : "") + digits;
}

std::string print_plan(const Plan& plan, const PlanLabels& labels, std::int64_t& live_bytes) {
    std::string out = fmt::format("{:>5}  {:<9}  {:<13}  {:<64}  {:>13}  {:>14}  {:<12}  {}\n", "op", "phase",
                                  "where", "operation", "bytes", "allocated", "unit", "what");
    int depth = 0;
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
        const Op& op = plan.ops[i];
        if (op.kind == OpKind::pop_range) {
            --depth;
            continue;
        }
        std::int64_t bytes = op.bytes;
        std::string allocated;
        if (op.kind == OpKind::allocate || op.kind == OpKind::free) {
            const Buffer& buffer = plan.buffers[static_cast<std::size_t>(op.args[0].buffer)];
            bytes = buffer.bytes;
            if (buffer.space == MemorySpace::device) {
                live_bytes += op.kind == OpKind::allocate ? bytes : -bytes;
                allocated = with_thousands(live_bytes);
            }
        }
        const auto [what, detail] = describe_op(plan, op);
        out +=
            fmt::format("{:>5}  {:<9}  {:<13}  {:<64}  {:>13}  {:>14}  {:<12}  {}\n", i,
                        op.phase == Phase::none ? "" : std::string(traces::schema::name(op.phase)), where(op),
                        std::string(static_cast<std::size_t>(depth) * 2, ' ') + what,
                        bytes ? with_thousands(bytes) : "", allocated, label(labels.units, op.unit), detail);
        if (op.kind == OpKind::push_range) ++depth;
    }
    return out;
}

}  // namespace shardscope::trainer::plan
