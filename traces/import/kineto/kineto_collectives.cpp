#include "traces/import/kineto/kineto_collectives.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/core.h>

#include "traces/import/kineto/kineto_names.h"
#include "traces/import/kineto/scalar_values.h"
#include "traces/schema/text.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::int64_t kElementsAtMost = std::int64_t{1} << 50;  // a larger number is damage

std::int64_t elements(const TraceEvent& event, EventKey key) {
    return std::clamp<std::int64_t>(integer_or(event[key], 0), 0, kElementsAtMost);
}

}  // namespace

// The group's number, which is the same on all of its ranks: made from its name and its ranks.
std::int64_t KinetoCollectives::group_of(const TraceEvent& event) {
    const std::string_view name = event.text(EventKey::group_name), ranks = event.text(EventKey::group_ranks);
    if (name.empty() && ranks.empty()) return 0;
    if (last_group_.size() == name.size() + 1 + ranks.size() && last_group_.starts_with(name) &&
        last_group_.ends_with(ranks))
        return last_number_;
    last_group_ = fmt::format("{}\n{}", name, ranks);
    const std::uint64_t hash = schema::hash_of(last_group_);
    // 52 bits, so that the number stays exact as a JSON number, too.
    last_number_ = static_cast<std::int64_t>((hash ^ hash >> 52) & 0xFFFFFFFFFFFFF) | 1;
    if (groups_.emplace(last_group_, last_number_).second) {
        const std::string_view description = event.text(EventKey::group_description);
        sink_.add(schema::GroupRow{.group = last_number_,
                                   .axis = axis_of_group(description),
                                   .ranks = std::string(ranks),
                                   .name = std::string(name),
                                   .description = std::string(description)});
    }
    return last_number_;
}

KinetoCollectives::Arguments KinetoCollectives::read(const TraceEvent& event) {
    Arguments arguments;
    arguments.operation = collective_operation(event.text(EventKey::collective));
    // The full buffer is the larger one: the output of a gather, the input of a reduce_scatter.
    arguments.bytes =
        std::max(elements(event, EventKey::in_elements), elements(event, EventKey::out_elements)) *
        element_size(event.text(EventKey::data_type));
    arguments.group = group_of(event);
    arguments.group_size = std::max(int_or(event[EventKey::group_size], 0), 0);
    arguments.sequence = std::max<std::int64_t>(integer_or(event[EventKey::sequence], -1), -1);
    return arguments;
}

void KinetoCollectives::add(const Arguments& arguments, std::int64_t correlation, int rank) {
    sink_.add(schema::CollectiveRow{.rank = rank,
                                    .correlation = correlation,
                                    .operation = arguments.operation,
                                    .bytes = arguments.bytes,
                                    .group = arguments.group,
                                    .group_size = arguments.group_size,
                                    .sequence = arguments.sequence});
}

void KinetoCollectives::operation(const TraceEvent& event, std::int64_t external_id, int rank) {
    if (external_id == 0) return;
    operations_.insert_or_assign(rank_id(rank, external_id), read(event));
}

void KinetoCollectives::kernel(const TraceEvent& event, std::int64_t correlation, std::int64_t external_id,
                               int rank) {
    if (correlation == 0) return;
    if (event.has(EventKey::collective)) return add(read(event), correlation, rank);
    const std::int64_t id = rank_id(rank, external_id);
    if (const auto it = operations_.find(id); it != operations_.end()) {
        add(it->second, correlation, rank);
    } else {
        waiting_.push_back({correlation, id, rank});
    }
}

void KinetoCollectives::range(std::string_view name, std::string_view detail, std::int64_t thread,
                              std::int64_t start, std::int64_t end) {
    const bool issues = name.starts_with("nccl:") || name.starts_with("xccl:");
    if (!issues && !name.starts_with("c10d::")) return;
    const std::optional<store::TensorSizes> sizes = store::input_tensors(detail);
    if (!sizes) return;
    (issues ? issued_ : asked_)[thread].insert_or_assign(
        start, HostRange{.thread = thread,
                         .start = start,
                         .end = end,
                         .operation = collective_operation(name.substr(name.find(':') + 1)),
                         .sizes = *sizes});
}

KinetoCollectives::HostRange* KinetoCollectives::around(HostRanges& ranges, std::int64_t thread,
                                                        std::int64_t time) {
    const auto of_thread = ranges.find(thread);
    if (of_thread == ranges.end()) return nullptr;
    const auto after = of_thread->second.upper_bound(time);
    if (after == of_thread->second.begin()) return nullptr;
    HostRange& range = std::prev(after)->second;
    return time < range.end ? &range : nullptr;
}

void KinetoCollectives::call(std::int64_t thread, std::int64_t start, std::int64_t correlation) {
    if (issued_.empty() || correlation == 0) return;
    if (HostRange* range = around(issued_, thread, start)) launched_.insert_or_assign(correlation, range);
}

// 0 if it is unknown: a gather's range records only the size of this rank's part.
std::int64_t KinetoCollectives::full_buffer(const HostRange& range) {
    if (range.kernels != 1) return 0;
    if (range.operation != schema::Operation::all_gather && range.operation != schema::Operation::gather)
        return range.sizes.sum;
    const HostRange* asked = around(asked_, range.thread, range.start);
    return asked != nullptr && asked->sizes.tensors > 1 ? asked->sizes.largest : 0;
}

void KinetoCollectives::finish() {
    const auto launched = [&](const Waiting& waiting) {
        const auto it = launched_.find(waiting.correlation);
        return it != launched_.end() ? it->second : nullptr;
    };
    for (const Waiting& waiting : waiting_) {
        if (HostRange* range = launched(waiting)) ++range->kernels;
    }
    for (const Waiting& waiting : waiting_) {
        if (const auto it = operations_.find(waiting.external_id); it != operations_.end()) {
            add(it->second, waiting.correlation, waiting.rank);
        } else if (const HostRange* range = launched(waiting); range != nullptr) {
            const std::int64_t bytes = full_buffer(*range);
            if (bytes > 0)
                add({.operation = range->operation, .bytes = bytes}, waiting.correlation, waiting.rank);
        }
    }
    waiting_.clear();
}

}  // namespace shardscope::traces::importer
