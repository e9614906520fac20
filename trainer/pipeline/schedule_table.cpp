#include "trainer/pipeline/schedule_table.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "traces/schema/joined.h"

namespace shardscope::trainer::pipeline {

namespace {

// --- closed forms, in ticks and chunks -------------------------------------------------------------------

std::int64_t flush(const Shape& s, const Costs& c) {
    return (s.ranks - 1) * (c.forward + c.backward());
}
std::int64_t split(const Shape& s, const Costs& c) {
    return (s.ranks - 1) * std::max({c.forward, c.input, c.forward + c.input - c.weight});
}
std::int64_t of_zb_v(const Shape& s, const Costs& c) {
    return (s.ranks - 1) * c.forward;
}
std::int64_t of_dualpipe_v(const Shape& s, const Costs& c) {
    return (s.ranks - 1) * (c.forward + c.backward() + c.backward() - 3 * c.weight);
}
bool always(const Shape& /*s*/, const Costs& /*c*/) {
    return true;
}
bool enough(const Shape& s, const Costs& /*c*/) {
    return s.micro_batches >= s.ranks;
}
bool equal_costs(const Shape& s, const Costs& c) {
    return s.micro_batches >= 2 * s.ranks && c.forward == c.input && c.input == c.weight;
}
bool cheap_weight(const Shape& s, const Costs& c) {
    return s.micro_batches >= 2 * s.ranks && c.forward == c.input && c.input >= c.weight;
}

std::int64_t all_of(const Shape& s) {
    return std::int64_t{s.micro_batches} * s.chunks;
}
std::int64_t earlier_chunks(const Shape& s) {
    return std::int64_t{s.chunks - 1} * micro_batches_per_round(s.ranks, s.micro_batches);
}
std::int64_t every_chunk(const Shape& s, int /*rank*/) {
    return all_of(s);
}
std::int64_t ranks_behind(const Shape& s, int rank) {
    return std::min(s.micro_batches, s.ranks - rank);
}
std::int64_t interleaved_peak(const Shape& s, int rank) {
    return std::min(all_of(s), earlier_chunks(s) + 2 * (s.ranks - 1 - rank) + 1);
}
std::int64_t zero_bubble_peak(const Shape& s, int /*rank*/) {
    return std::min(all_of(s), earlier_chunks(s) + s.ranks);
}
std::int64_t two_per_rank(const Shape& s, int /*rank*/) {
    return 2 * s.ranks;
}
std::int64_t dualpipe_v_peak(const Shape& s, int /*rank*/) {
    return 2 * s.ranks + 1;
}

constexpr ClosedForm kFlush = {.idle = "(p-1)(F+B)",
                               .when = "m >= p",
                               .idle_ticks = flush,
                               .holds = enough,
                               .peak = "mv",
                               .peak_chunks = every_chunk};
constexpr ClosedForm kSplit = {.idle = "(p-1) max(F, I, F+I-W)",
                               .when = "m >= p",
                               .idle_ticks = split,
                               .holds = enough,
                               .peak = "min(mv, (v-1)R + p)",
                               .peak_chunks = zero_bubble_peak};
constexpr ClosedForm with_peak(ClosedForm form, std::string_view peak,
                               std::int64_t (*chunks)(const Shape& shape, int rank)) {
    form.peak = peak;
    form.peak_chunks = chunks;
    return form;
}

constexpr std::array kSchedules = {
    ScheduleKind{.name = "gpipe",
                 .title = "GPipe",
                 .pytorch = "ScheduleGPipe",
                 .write = gpipe,
                 .form = {"(p-1)(F+B)", "always", flush, always, "m", every_chunk},
                 .paper = "arXiv 1811.06965",
                 .summary = "All forwards, then all backwards."},
    ScheduleKind{
        .name = "1f1b",
        .title = "1F1B",
        .pytorch = "Schedule1F1B",
        .micro_batches_per_rank = 1,
        .write = one_forward_one_backward,
        .form = with_peak(kFlush, "min(m, p-r)", ranks_behind),
        .paper = "arXiv 2104.04473",
        .summary =
            "A forward and a backward in turn: GPipe's idle time with at most p micro-batches in flight."},
    ScheduleKind{
        .name = "interleaved",
        .title = "Interleaved 1F1B",
        .pytorch = "ScheduleInterleaved1F1B",
        .fewest_chunks = 2,
        .most_chunks = kMostChunks,
        .whole_rounds = true,
        .write = interleaved,
        .form = with_peak(kFlush, "min(mv, (v-1)R + 2(p-1-r) + 1)", interleaved_peak),
        .paper = "arXiv 2104.04473",
        .summary =
            "1F1B over v smaller stages per rank: 1/v of its idle time for about v times its messages."},
    ScheduleKind{.name = "looped_bfs",
                 .title = "Looped BFS",
                 .pytorch = "ScheduleLoopedBFS",
                 .fewest_chunks = 2,
                 .most_chunks = kMostChunks,
                 .write = looped_bfs,
                 .form = kFlush,
                 .paper = "arXiv 2211.05953",
                 .summary = "All micro-batches through a stage before the next: with FSDP each stage is "
                            "gathered for all of them."},
    ScheduleKind{
        .name = "zb_h1",
        .title = "ZB-H1",
        .pytorch = "",
        .write = zero_bubble,
        .form = with_peak(kSplit, "min(m, p)", zero_bubble_peak),
        .paper = "arXiv 2401.10241",
        .summary = "1F1B whose weight gradients fill idle time; p micro-batches in flight on every rank."},
    ScheduleKind{.name = "interleaved_zb",
                 .title = "Interleaved ZB",
                 .pytorch = "ScheduleInterleavedZeroBubble",
                 .fewest_chunks = 2,
                 .most_chunks = kMostChunks,
                 .whole_rounds = true,
                 .write = zero_bubble,
                 .form = kSplit,
                 .paper = "arXiv 2401.10241",
                 .summary = "ZB-H1 over v smaller stages per rank."},
    ScheduleKind{.name = "zb_v",
                 .title = "ZB-V",
                 .pytorch = "ScheduleZBVZeroBubble",
                 .placement = Placement::v,
                 .fewest_chunks = 2,
                 .most_chunks = 2,
                 .write = zb_v,
                 .form = {"(p-1)F", "m >= 2p and F = I = W", of_zb_v, equal_costs, "2p", two_per_rank},
                 .paper = "arXiv 2401.10241",
                 .summary = "Two stages per rank in a V: with equal costs a rank never idles between its "
                            "first and last action."},
    ScheduleKind{
        .name = "dualpipe_v",
        .title = "DualPipeV",
        .pytorch = "ScheduleDualPipeV",
        .placement = Placement::v,
        .fewest_chunks = 2,
        .most_chunks = 2,
        .micro_batches_per_rank = 2,
        .write = dualpipe_v,
        .form = {"(p-1)(F+2B-3W)", "m >= 2p and F = I >= W", of_dualpipe_v, cheap_weight, "2p+1",
                 dualpipe_v_peak},
        .paper = "arXiv 2412.19437",
        .summary = "Forwards run together with backwards of the other stage, which hides communication."},
};

bool takes_micro_batches(const ScheduleKind& kind, int p, int m) {
    return m >= 1 && m >= kind.micro_batches_per_rank * p &&
           (!kind.whole_rounds || m % std::max(1, m / p) == 0);
}

// "8", "8 or 10": the numbers of micro-batches below and above that the schedule takes.
std::string nearest_micro_batches(const ScheduleKind& kind, int p, int m) {
    int below = m - 1, above = std::max(m + 1, kind.micro_batches_per_rank * p);
    while (below > 0 && !takes_micro_batches(kind, p, below)) --below;
    while (!takes_micro_batches(kind, p, above)) ++above;  // ends at a multiple of p
    return below > 0 ? fmt::format("{} or {}", below, above) : fmt::format("{}", above);
}

// The schedules that take this number of chunks.
std::string takers_of(int chunks) {
    std::vector<std::string_view> names;
    for (const ScheduleKind& kind : kSchedules) {
        if (chunks >= kind.fewest_chunks && chunks <= kind.most_chunks) names.push_back(kind.name);
    }
    return traces::schema::joined(names, ", ");
}

}  // namespace

std::span<const ScheduleKind> schedule_kinds() {
    return kSchedules;
}

const ScheduleKind* find_schedule(std::string_view name) {
    const auto* const found = std::find_if(kSchedules.begin(), kSchedules.end(),
                                           [&](const ScheduleKind& kind) { return kind.name == name; });
    return found == kSchedules.end() ? nullptr : found;
}

std::string schedule_names() {
    std::array<std::string_view, kSchedules.size()> names;
    std::transform(kSchedules.begin(), kSchedules.end(), names.begin(),
                   [](const ScheduleKind& kind) { return kind.name; });
    return traces::schema::joined(names, ", ");
}

std::string taken_micro_batches(const ScheduleKind& kind) {
    if (kind.whole_rounds) return "a multiple of max(1, m div p)";
    return kind.micro_batches_per_rank == 0 ? "any" : kind.micro_batches_per_rank == 1 ? "m >= p" : "m >= 2p";
}

std::string taken_chunks(const ScheduleKind& kind) {
    return kind.fewest_chunks == kind.most_chunks
               ? fmt::format("{}", kind.fewest_chunks)
               : fmt::format("{} to {}", kind.fewest_chunks, kind.most_chunks);
}

std::string refusal(const ScheduleKind& kind, const Shape& shape) {
    const auto [p, m, v] = shape;
    if (p < 1 || p > kMostRanks) return fmt::format("{} ranks: a pipeline has 1 to {}", p, kMostRanks);
    if (m < 1) return fmt::format("{} micro-batches: a step has 1 or more", m);
    if (v < kind.fewest_chunks || v > kind.most_chunks) {
        const std::string others = takers_of(v);
        return fmt::format(
            "{} takes {} chunk{} per rank, not {}{}", kind.name, taken_chunks(kind),
            kind.most_chunks == 1 ? "" : "s", v,
            others.empty() ? "" : fmt::format("; {} of {}", v == 1 ? "1 is one" : "that is one", others));
    }
    if (std::int64_t{p} * m * v > kMostForwards)
        return fmt::format(
            "{} ranks x {} micro-batches x {} chunks are more than {} forwards; use {} micro-batches or "
            "fewer",
            p, m, v, kMostForwards, kMostForwards / p / v);
    if (takes_micro_batches(kind, p, m)) return "";
    if (kind.whole_rounds)
        return fmt::format(
            "{} divides the micro-batches into m div p rounds of equal size, and {} are not a multiple of "
            "{} div {} = {}; use {}",
            kind.name, m, m, p, m / p, nearest_micro_batches(kind, p, m));
    return fmt::format("{} takes {} micro-batches or more on {} ranks ({}), not {}; use {}", kind.name,
                       kind.micro_batches_per_rank * p, p, taken_micro_batches(kind), m,
                       nearest_micro_batches(kind, p, m));
}

Schedule make_schedule(const ScheduleKind& kind, const Shape& shape) {
    if (const std::string why = refusal(kind, shape); !why.empty()) throw ScheduleError(why);
    Schedule made;
    made.micro_batches = shape.micro_batches;
    made.actions.resize(static_cast<std::size_t>(shape.ranks));
    made.rank_of_stage.resize(static_cast<std::size_t>(shape.stages()));
    for (int r = 0; r < shape.ranks; ++r) {
        RankWriter writer(shape, kind.placement, r, made.actions[static_cast<std::size_t>(r)]);
        kind.write(writer);
        for (int c = 0; c < shape.chunks; ++c)
            made.rank_of_stage[static_cast<std::size_t>(stage_of(kind.placement, shape, r, c))] = r;
    }
    return made;
}

}  // namespace shardscope::trainer::pipeline
