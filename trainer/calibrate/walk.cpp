#include "trainer/calibrate/walk.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"
#include "trainer/executor/trace_names.h"

namespace shardscope::trainer::calibrate {

namespace {

using executor::trace_names::RuntimeFunction;
using traces::store::RankIndex;

// The name as traces::store::Trace stores it: without CUDA's suffix "_v…".
std::string_view bare_name(RuntimeFunction function) {
    const std::string_view name = executor::trace_names::name(function);
    return name.substr(0, name.rfind("_v"));
}

bool is_growth(std::string_view call) {
    return call == bare_name(RuntimeFunction::malloc_device) ||
           call == bare_name(RuntimeFunction::malloc_host);
}

}  // namespace

Walk::Walk(const traces::store::Trace& trace, MeasuredRun& run) : trace_(trace), run_(run) {}

void Walk::run() {
    find_calls();
    find_device_spans();
    std::vector<std::vector<JoinedStep>> ranks;
    for (std::size_t r = 0; r < trace_.ranks.size(); ++r) ranks.push_back(join_rank(RankIndex(r)));
    for (const MeasuredOp& work : run_.work) {
        if (work.op->kind != plan::OpKind::collective) continue;
        Meeting& meeting = meetings_[{work.group, work.sequence}];
        meeting.last_arrival = std::max(meeting.last_arrival, work.start);
        meeting.end = std::max(meeting.end, work.end);
    }
    for (MeasuredOp& work : run_.work) {
        work.over = work.end;
        work.begin = work.start;
        if (work.op->kind != plan::OpKind::collective) continue;
        const Meeting& meeting = meetings_.at({work.group, work.sequence});
        work.over = meeting.end;
        work.begin = std::min(meeting.last_arrival, work.end);
    }
    for (const std::vector<JoinedStep>& steps : ranks) find_ready(steps);
    find_busy();
    drop_unused();
}

// --- the trace's rows, by thread and call ----------------------------------------------------------------

void Walk::find_calls() {
    const std::size_t ranks = trace_.ranks.size();
    calls_.resize(ranks);
    ranges_.resize(ranks);
    std::vector<RankIndex> rank_of_thread(trace_.threads.size());
    for (std::size_t t = 0; t < trace_.threads.size(); ++t) {
        for (std::size_t r = 0; r < ranks; ++r) {
            if (trace_.threads[t].global_tid == trace_.ranks[r].global_tid) rank_of_thread[t] = RankIndex(r);
        }
    }
    for (std::size_t i = 0; i < trace_.runtime.size(); ++i) {
        const RankIndex rank = rank_of_thread[trace_.runtime.thread[i]];
        if (rank.known()) calls_[rank.at()].push_back(static_cast<std::int32_t>(i));
    }
    for (auto& own : calls_) {
        traces::schema::sort_rows(own, [&](std::int32_t a, std::int32_t b) {
            return trace_.runtime.start[static_cast<std::size_t>(a)] <
                   trace_.runtime.start[static_cast<std::size_t>(b)];
        });
    }
    for (std::size_t i = 0; i < trace_.ranges.size(); ++i) {  // sorted by start
        const RankIndex rank = rank_of_thread[trace_.ranges.thread[i]];
        if (rank.known()) ranges_[rank.at()].push_back(static_cast<std::int32_t>(i));
    }
}

// On a GPU, one call may have launched several kernels.
void Walk::find_device_spans() {
    spans_.resize(trace_.runtime.size());
    for (std::size_t i = 0; i < trace_.device.size(); ++i) {
        const auto launch = trace_.device.launch[i];
        if (launch < 0) continue;
        DeviceSpan& span = spans_[static_cast<std::size_t>(launch)];
        span.start = span.end < 0 ? trace_.device.start[i] : std::min(span.start, trace_.device.start[i]);
        span.end = std::max(span.end, trace_.device.end[i]);
        if (trace_.device.collective[i] >= 0)
            span.collective = static_cast<std::int32_t>(trace_.device.collective[i]);
    }
}

// --- the Plan's order ------------------------------------------------------------------------------------

std::vector<JoinedStep> Walk::join_rank(RankIndex rank) {
    std::vector<const traces::store::Step*> own;
    for (const traces::store::Step& step : trace_.steps) {
        if (step.rank == rank) own.push_back(&step);
    }
    if (own.empty()) return {};
    const sharding::Program& program = run_.program->of(trace_.ranks[rank.at()].number);
    const auto warm_up = program.warm_up_steps();
    // Skips one more step, which runs with cold caches, if there are enough steps.
    const std::size_t first_used = std::min(own.size() > warm_up + 3 ? warm_up + 1 : warm_up, own.size() - 1);
    std::vector<JoinedStep> steps;
    for (std::size_t s = 0; s < own.size(); ++s) {
        JoinedStep joined;
        joined.number = own[s]->number;
        joined.plan = &program.step(static_cast<std::size_t>(own[s]->number - own.front()->number));
        joined.used = s >= first_used;
        if (!join_step(rank, *own[s], joined)) {
            if (s + 1 == own.size() && s > first_used) break;  // the last step was cut off
            throw CalibrationError(fmt::format(
                "{}: step {} of rank {} did not do what the Plan of its job does; record the trace again "
                "with this version of shardscope-train",
                run_.file, own[s]->number, trace_.ranks[rank.at()].number));
        }
        if (joined.used) read_host(rank, *own[s], joined);
        if (joined.used && rank == RankIndex(0)) ++run_.steps;
        steps.push_back(std::move(joined));
    }
    return steps;
}

// Returns false if the calls do not match the Plan.
bool Walk::join_step(RankIndex rank, const traces::store::Step& step, JoinedStep& joined) {
    const std::vector<std::int32_t>& calls = calls_[rank.at()];
    const auto starts_before = [&](std::int32_t call, Time time) {
        return trace_.runtime.start[static_cast<std::size_t>(call)] < time;
    };
    auto next = std::lower_bound(calls.begin(), calls.end(), step.start, starts_before);
    const auto last = std::lower_bound(next, calls.end(), step.end, starts_before);
    const auto name_of = [&](std::int32_t call) {
        return trace_.strings[trace_.runtime.name[static_cast<std::size_t>(call)]];
    };
    joined.call.assign(joined.plan->ops.size(), -1);
    joined.work.assign(joined.plan->ops.size(), -1);
    const std::size_t first_work = run_.work.size();
    for (std::size_t i = 0; i < joined.plan->ops.size(); ++i) {
        const plan::Op& op = joined.plan->ops[i];
        if (op.kind == plan::OpKind::allocate && next != last && is_growth(name_of(*next))) {
            joined.call[i] = *next++;
            continue;
        }
        const auto wanted = executor::trace_names::call_of(op);
        if (!wanted) continue;
        if (next == last || name_of(*next) != bare_name(*wanted)) {
            run_.work.resize(first_work);
            used_.resize(first_work);
            return false;
        }
        joined.call[i] = *next++;
        if (!is_device_work(op)) continue;
        const DeviceSpan& span = spans_[static_cast<std::size_t>(joined.call[i])];
        if (span.end < 0) continue;
        joined.work[i] = static_cast<std::int32_t>(run_.work.size());
        add_work(joined, op, rank, joined.call[i]);
    }
    return next == last;
}

void Walk::add_work(const JoinedStep& step, const plan::Op& op, RankIndex rank, std::int32_t call) {
    const DeviceSpan& span = spans_[static_cast<std::size_t>(call)];
    MeasuredOp& work = run_.work.emplace_back();
    work.plan = step.plan;
    work.op = &op;
    work.rank = rank;
    work.launched = trace_.runtime.end[static_cast<std::size_t>(call)];
    work.start = span.start;
    work.end = span.end;
    if (span.collective >= 0) {
        run_.engine = engine_of(trace_, static_cast<std::size_t>(span.collective));
        work.group = trace_.collectives.group[static_cast<std::size_t>(span.collective)];
        work.sequence = trace_.collectives.sequence[static_cast<std::size_t>(span.collective)];
    }
    used_.push_back(step.used ? 1 : 0);
}

// --- the host --------------------------------------------------------------------------------------------

void Walk::read_host(RankIndex rank, const traces::store::Step& step, const JoinedStep& joined) {
    read_calls(joined);
    read_host_work(rank, step, joined);
}

void Walk::read_calls(const JoinedStep& joined) {
    std::optional<HostGap> gap;  // since the last call; none: something since then is timed separately
    Time since = 0;
    for (std::size_t i = 0; i < joined.plan->ops.size(); ++i) {
        const plan::Op& op = joined.plan->ops[i];
        if (gap && (op.kind == plan::OpKind::push_range || op.kind == plan::OpKind::collective))
            ++gap->ranges;
        if (gap && (op.kind == plan::OpKind::allocate || op.kind == plan::OpKind::free)) ++gap->allocations;
        if (op.kind == plan::OpKind::host_call || is_host_work(op)) gap.reset();
        if (joined.call[i] < 0) continue;
        const auto call = static_cast<std::size_t>(joined.call[i]);
        const Time start = trace_.runtime.start[call], end = trace_.runtime.end[call];
        const bool grows = op.kind == plan::OpKind::allocate;
        if (gap && !grows) {
            gap->seconds = seconds(start - since);
            gap->launches = is_device_work(op) ? 1 : 0;
            run_.gaps.push_back(*gap);
        }
        if (grows) {
            run_.grow_calls.push_back(seconds(end - start));
        } else if (is_device_work(op)) {
            run_.launch_calls.push_back(seconds(end - start));
        } else if (op.kind != plan::OpKind::host_wait) {
            run_.event_calls.push_back(seconds(end - start));
        }
        since = end;
        gap = HostGap();
    }
}

// Matches by name and order: the n-th operation that opens a range of a name is the n-th such range.
void Walk::read_host_work(RankIndex rank, const traces::store::Step& step, const JoinedStep& joined) {
    std::unordered_map<std::string_view, std::vector<std::int32_t>> by_name;
    const std::vector<std::int32_t>& ranges = ranges_[rank.at()];
    auto at = std::lower_bound(ranges.begin(), ranges.end(), step.start, [&](std::int32_t range, Time time) {
        return trace_.ranges.start[static_cast<std::size_t>(range)] < time;
    });
    for (; at != ranges.end() && trace_.ranges.start[static_cast<std::size_t>(*at)] < step.end; ++at)
        by_name[trace_.strings[trace_.ranges.name[static_cast<std::size_t>(*at)]]].push_back(*at);
    std::unordered_map<std::string_view, std::size_t> opened;
    std::int32_t around = -1;  // the latest range opened
    for (const plan::Op& op : joined.plan->ops) {
        const std::string_view name = range_of(*joined.plan, op);
        if (!name.empty()) {
            const std::vector<std::int32_t>& same = by_name[name];
            const std::size_t n = opened[name]++;
            around = n < same.size() ? same[n] : -1;
        }
        const bool works = is_host_work(op) ||
                           (op.kind == plan::OpKind::host_call && op.call() == plan::HostCall::next_batch);
        if (!works || around < 0) continue;
        const auto range = static_cast<std::size_t>(around);
        const Time start = trace_.ranges.start[range], end = trace_.ranges.end[range];
        run_.host_work.push_back({&op, seconds(end - start)});
        host_intervals_.push_back({rank, start, end});
    }
}

void Walk::drop_unused() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < run_.work.size(); ++i) {
        if (used_[i]) run_.work[kept++] = run_.work[i];
    }
    run_.work.resize(kept);
}

}  // namespace shardscope::trainer::calibrate
