// Finds the rows worth choosing, and explains why the others are not.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "trainer/planner/search.h"

namespace shardscope::trainer::planner {

namespace {

std::string bytes_text(std::int64_t bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string time_text(double seconds) {
    if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
    return seconds >= 1e-3 ? fmt::format("{:.1f} ms", seconds * 1e3)
                           : fmt::format("{:.0f} µs", seconds * 1e6);
}

std::size_t largest_category(const plan::CategoryBytes& bytes) {
    return static_cast<std::size_t>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

// "19.3 GiB of it activations; largest unit: root, 0.8 GiB; largest module: blocks.3, 1.2 GiB; reached in: …"
std::string peak_words(const Row& row) {
    const std::size_t c = largest_category(row.peak.at_peak);
    std::string text =
        fmt::format("{} of it {}", bytes_text(row.peak.at_peak[c]), traces::schema::kMemoryCategoryNames[c]);
    if (!row.peak_unit.empty())
        text += fmt::format("; largest unit: {}, {}", row.peak_unit, bytes_text(row.peak_unit_bytes));
    if (!row.peak_module.empty() && row.peak_module_bytes > row.peak_unit_bytes)
        text += fmt::format("; largest module: {}, {}", row.peak_module, bytes_text(row.peak_module_bytes));
    return text + "; reached in: " + row.peak.where;
}

std::string exposed_words(const MostExposed& most) {
    if (most.operation.empty()) return "";
    std::string text =
        fmt::format("{} in {} exposed {}", most.operation, most.phase, time_text(most.seconds));
    if (!most.unit.empty()) text += fmt::format(" ({} most)", most.unit);
    return text;
}

// Where the slower row spends its extra time. Steps with different batches are compared per sample.
std::string slower_words(const Row& row, const Row& by) {
    const double scale =
        row.times.last_step > 0 && by.times.last_step > 0
            ? (row.seconds_per_sample() / row.times.step) / (by.seconds_per_sample() / by.times.step)
            : 1;
    const double kernels = row.times.kernel * scale - by.times.kernel;
    const double exposed = row.times.last_exposed * scale - by.times.last_exposed;
    const double rest = row.times.rest() * scale - by.times.rest();
    const double warm_up =
        (row.times.step - row.times.last_step) * scale - (by.times.step - by.times.last_step);
    if (warm_up > 0 && warm_up >= exposed && warm_up >= kernels && warm_up >= rest)
        return fmt::format("{} more per step from the first steps, which allocate device memory",
                           time_text(warm_up));
    if (exposed > 0 && exposed >= kernels && exposed >= rest) return exposed_words(row.exposed);
    if (rest > 0 && rest >= kernels)
        return fmt::format("{} more without kernels or collectives (host, copies)", time_text(rest));
    return kernels > 0 ? fmt::format("{} more in kernels", time_text(kernels)) : "";
}

std::string larger_words(const Row& row, const Row& by) {
    plan::CategoryBytes more{};
    for (std::size_t c = 0; c < more.size(); ++c) more[c] = row.peak.at_peak[c] - by.peak.at_peak[c];
    const std::size_t c = largest_category(more);
    return fmt::format("{} more at the peak (+{} {})", bytes_text(row.peak.bytes - by.peak.bytes),
                       bytes_text(more[c]), traces::schema::kMemoryCategoryNames[c]);
}

// The number of keys whose values differ between two rows.
int changes_between(const Row& first, const Row& row) {
    int same = 0;
    for (const job::Override& own : row.settings)
        same += std::find(first.settings.begin(), first.settings.end(), own) != first.settings.end();
    return static_cast<int>(std::max(first.settings.size(), row.settings.size())) - same;
}

}  // namespace

void mark_front(std::vector<Row>& rows) {
    std::vector<Row*> fitting;
    for (Row& row : rows) {
        row.front = false;
        row.beaten_by = row.same_as = 0;
        row.tied = false;
        row.changes = changes_between(rows.front(), row);
        if (row.fits()) fitting.push_back(&row);
    }
    // Sorts by size, then speed: no later row is smaller, and and a row that beats another is already on the
    // Pareto front when the other is reached. Among equals, the simplest comes first and stands for the
    // others, so that the best row is among those shown.
    const auto key = [](const Row* row) {
        return std::make_tuple(row->peak.bytes, row->reserved, row->seconds_per_sample(), row->changes,
                               row->number);
    };
    std::sort(fitting.begin(), fitting.end(), [&](const Row* a, const Row* b) { return key(a) < key(b); });
    std::map<std::tuple<std::int64_t, std::int64_t, double, double, double>, int> seen;
    std::vector<const Row*> front;
    double least = 0;  // time per sample
    for (Row* row : fitting) {
        const double seconds = row->seconds_per_sample();
        if (least == 0 || seconds < least) least = seconds;
        const Row* by = nullptr;  // the fastest front row that is no larger
        for (const Row* other : front) {
            const bool no_larger = other->reserved <= row->reserved;
            if (no_larger && (!by || other->seconds_per_sample() < by->seconds_per_sample())) by = other;
        }
        if (by && by->seconds_per_sample() <= seconds) {
            row->beaten_by = by->number;
        } else {
            row->front = true;
            front.push_back(row);
        }
        const auto [known, is_new] =
            seen.emplace(std::make_tuple(row->peak.bytes, row->reserved, row->times.step, row->times.exposed,
                                         row->samples_per_s),
                         row->number);
        if (!is_new) row->same_as = known->second;
    }
    for (Row* row : fitting) row->tied = row->seconds_per_sample() <= least * (1 + kTie);
}

const Row* fastest(const std::vector<Row>& rows) {
    const Row* best = nullptr;
    for (const Row& row : rows) {  // the fastest is on the Pareto front
        if (row.front && (!best || row.seconds_per_sample() < best->seconds_per_sample())) best = &row;
    }
    return best;
}

std::vector<const Row*> ties(const std::vector<Row>& rows) {
    std::vector<const Row*> tied;
    for (const Row& row : rows)
        if (row.fits() && row.tied && row.same_as == 0) tied.push_back(&row);
    const auto key = [](const Row* row) {
        return std::make_tuple(row->changes, row->reserved, row->seconds_per_sample(), row->number);
    };
    std::sort(tied.begin(), tied.end(), [&](const Row* a, const Row* b) { return key(a) < key(b); });
    return tied;
}

const Row* best(const std::vector<Row>& rows) {
    const std::vector<const Row*> tied = ties(rows);
    return tied.empty() ? nullptr : tied.front();
}

const Row* smallest(const std::vector<Row>& rows) {
    const Row* best = nullptr;
    for (const Row& row : rows) {
        if (row.can_be() && (!best || row.peak.bytes < best->peak.bytes)) best = &row;
    }
    return best;
}

const Row* best_or_smallest(const std::vector<Row>& rows) {
    const Row* simplest = best(rows);
    return simplest ? simplest : smallest(rows);
}

bool before(const Row* a, const Row* b) {
    if (a->fits() != b->fits()) return a->fits();
    if (!a->fits())
        return std::make_pair(a->peak.bytes, a->number) < std::make_pair(b->peak.bytes, b->number);
    return std::make_pair(a->seconds_per_sample(), a->number) <
           std::make_pair(b->seconds_per_sample(), b->number);
}

std::int64_t count(const std::vector<Row>& rows, Outcome outcome) {
    return std::count_if(rows.begin(), rows.end(), [&](const Row& row) { return row.outcome == outcome; });
}

const Row* numbered(const std::vector<Row>& rows, int number) {
    const auto found = std::lower_bound(rows.begin(), rows.end(), number,
                                        [](const Row& row, int n) { return row.number < n; });
    return found != rows.end() && found->number == number ? &*found : nullptr;
}

std::string why(const Row& row, const std::vector<Row>& rows) {
    const Row* beaten_by = numbered(rows, row.beaten_by);
    switch (row.outcome) {
        case Outcome::not_run:
            return "";
        case Outcome::impossible:
        case Outcome::excluded:
            return row.reason;
        case Outcome::too_large:
            if (row.peak.bytes <= row.limit)  // the allocated bytes would fit
                return fmt::format("the allocator would have to reserve more than {}: {}",
                                   bytes_text(row.limit), row.reason);
            return fmt::format("{} too large: {}", bytes_text(row.peak.bytes - row.limit), peak_words(row));
        case Outcome::fits:
            break;
    }
    if (row.front || !beaten_by) {
        const std::string exposed = exposed_words(row.exposed);
        return fmt::format("{}{}", peak_words(row), exposed.empty() ? "" : "; " + exposed);
    }
    if (row.same_as != 0) return fmt::format("the same figures as {}", row.same_as);
    std::string text;
    if (row.seconds_per_sample() > beaten_by->seconds_per_sample()) {
        text = fmt::format("{:.1f} % slower than {}",
                           100 * (row.seconds_per_sample() / beaten_by->seconds_per_sample() - 1),
                           beaten_by->number);
        if (const std::string cause = slower_words(row, *beaten_by); !cause.empty()) text += ": " + cause;
    }
    if (row.peak.bytes > beaten_by->peak.bytes) {
        text += text.empty() ? fmt::format("as fast as {}, with ", beaten_by->number) : "; ";
        text += larger_words(row, *beaten_by);
    }
    if (row.reserved > beaten_by->reserved && row.peak.bytes <= beaten_by->peak.bytes) {
        text += text.empty() ? fmt::format("as fast as {}, with ", beaten_by->number) : "; ";
        text += fmt::format("{} more reserved", bytes_text(row.reserved - beaten_by->reserved));
    }
    return text.empty() ? fmt::format("as good as {}", beaten_by->number) : text;
}

}  // namespace shardscope::trainer::planner
