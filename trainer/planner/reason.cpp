#include "trainer/planner/reason.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "traces/store/grouped.h"
#include "trainer/planner/search.h"

namespace shardscope::trainer::planner {

namespace {

// Parts of a step, in seconds, with the words for them.
using StepParts = std::vector<std::pair<std::string, double>>;

// The exposed communication of a pipeline is waiting for other places: idle time of the schedule, and
// messages.
std::string words_of(const MeshAxis& axis) {
    const std::string where =
        axis.nodes == 1 ? std::string("in a node") : fmt::format("over {} nodes", axis.nodes);
    const std::string link =
        axis.bandwidth > 0 ? fmt::format(" at {:.3g} GB/s", axis.bandwidth / 1e9) : std::string();
    if (axis.name == "pipeline")
        return fmt::format("waiting in the pipeline (its bubble, and messages {}{})", where, link);
    return fmt::format("exposed in {} {} {}{}", axis.name, axis.size, where, link);
}

// Some of a step's kernels may run when another rank's step has ended.
double rest_of(const Row& row) {
    double rest = row.mean_step_s - row.mean_kernel_s;
    for (const MeshAxis& axis : row.axes) rest -= axis.exposed_s;
    return std::max(rest, 0.0);
}

const MeshAxis* find_axis(const Row& row, std::string_view name) {
    const auto found = std::find_if(row.axes.begin(), row.axes.end(),
                                    [&](const MeshAxis& axis) { return axis.name == name; });
    return found == row.axes.end() ? nullptr : &*found;
}

// What the row's step takes more than the other's, by part; negative: less.
StepParts differences(const Row& row, const Row& other) {
    StepParts parts = {{"in kernels", row.mean_kernel_s - other.mean_kernel_s},
                       {"in the optimizer, copies and the host", rest_of(row) - rest_of(other)}};
    for (const MeshAxis& axis : row.axes) {
        const MeshAxis* same = find_axis(other, axis.name);
        parts.emplace_back(words_of(axis), axis.exposed_s - (same ? same->exposed_s : 0));
    }
    for (const MeshAxis& axis : other.axes)
        if (!find_axis(row, axis.name)) parts.emplace_back(words_of(axis), -axis.exposed_s);
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return std::abs(a.second) > std::abs(b.second); });
    return parts;
}

std::string ms_text(double seconds) {
    return fmt::format("{} ms", traces::store::grouped(seconds * 1e3, 1));
}

// The largest differences, down to a tenth of what the step takes more.
std::string loss_of(const Row& row, const Row& best) {
    const double more = row.seconds_per_sample() / best.seconds_per_sample() - 1;
    std::string text = more >= 0 ? fmt::format("{:.1f} % slower", 100 * more)
                                 : fmt::format("{:.1f} % faster, but less simple", -100 * more);
    constexpr std::size_t kNamed = 4;
    const double least = std::abs(row.mean_step_s - best.mean_step_s) / 10;
    std::vector<std::string> words;
    for (const auto& [what, seconds] : differences(row, best)) {
        if (words.size() == kNamed || std::abs(seconds) < least || seconds == 0) break;
        words.push_back(
            fmt::format("{} {} {}", ms_text(std::abs(seconds)), seconds > 0 ? "more" : "less", what));
    }
    return words.empty() ? text : text + ": " + traces::schema::joined(words, ", ");
}

// Whether a row comes nearer to being the fastest: those that fit, then those with known memory, then those
// that need the least.
bool is_nearer(const Row& a, const Row& b) {
    if (a.can_be() != b.can_be()) return a.can_be();
    return a.can_be() ? before(&a, &b) : a.least_bytes < b.least_bytes;
}

}  // namespace

std::vector<OtherKind> kinds_beside(const KindOfMesh& own) {
    static constexpr std::array<std::string_view, kKindAxes> kWords = {"tensor groups", "context groups",
                                                                       "expert groups", "a pipeline"};
    std::vector<OtherKind> kinds;
    const auto add = [&](std::string name, std::initializer_list<std::size_t> changed) {
        kinds.push_back({std::move(name), own});
        for (const std::size_t axis : changed) kinds.back().kind[axis] = !own[axis];
    };
    for (std::size_t axis = 0; axis < kKindAxes; ++axis)
        add(fmt::format("{} {}", own[axis] ? "without" : "with", kWords[axis]), {axis});
    // Of an axis less and one more the others tell.
    constexpr std::size_t kTensorAxis = 0, kPipelineAxis = kKindAxes - 1;
    if (own[kTensorAxis] == own[kPipelineAxis])
        add(own[kTensorAxis] ? "with neither tensor groups nor a pipeline"
                             : "with tensor groups and a pipeline",
            {kTensorAxis, kPipelineAxis});
    return kinds;
}

std::vector<Rival> rivals_of(const Row& best, const std::vector<Row>& rows) {
    std::vector<Rival> rivals;
    for (OtherKind& mesh : kinds_beside(kind_of(best.job))) {
        const Row* nearest = nullptr;
        for (const Row& row : rows) {
            if (row.outcome == Outcome::impossible || row.outcome == Outcome::not_run) continue;
            if (row.of_job != best.of_job || kind_of(row.job) != mesh.kind) continue;
            if (!nearest || is_nearer(row, *nearest)) nearest = &row;
        }
        if (!nearest) continue;
        rivals.push_back(
            {std::move(mesh.name), nearest,
             nearest->fits() ? loss_of(*nearest, best) : "does not fit: " + why(*nearest, rows)});
    }
    return rivals;
}

std::string parts_text(const Row& row) {
    std::string text = fmt::format("kernels {}", ms_text(row.mean_kernel_s));
    for (const MeshAxis& axis : row.axes)
        text += fmt::format(", {} {}", words_of(axis), ms_text(axis.exposed_s));
    return text + fmt::format(", rest {}", ms_text(rest_of(row)));
}

}  // namespace shardscope::trainer::planner
