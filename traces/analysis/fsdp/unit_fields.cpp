// The figures of a unit and of a rank, each described once; see units.h.
#include <array>
#include <utility>

#include "traces/analysis/fsdp/units.h"

namespace shardscope::traces::analysis {
namespace {

struct UnitFigure {
    std::string_view sum, mean;  // the keys
    std::string_view title;      // of the mean in tables
    Unit unit = Unit::us;
    std::string_view meaning;
    store::Cell (*of)(const UnitCosts&) = nullptr;
    std::int64_t UnitCosts::*collectives = nullptr;  // if there are none, tables leave the figure blank
};

template <std::int64_t UnitCosts::*Ns>
store::Cell time_of(const UnitCosts& c) {
    return us_cell(static_cast<double>(c.*Ns));
}
template <std::int64_t UnitCosts::*Count>
store::Cell count_of(const UnitCosts& c) {
    return c.*Count;
}
// Collectives without known bytes have no sum.
template <std::int64_t UnitCosts::*Bytes, std::int64_t UnitCosts::*Count>
store::Cell bytes_of(const UnitCosts& c) {
    return c.*Count > 0 && c.*Bytes == 0 ? store::Cell() : store::Cell(c.*Bytes);
}

using C = UnitCosts;
constexpr auto kGathers = &C::gathers, kReductions = &C::reductions;

constexpr std::array<UnitFigure, 17> kFigures = {{
    {"gathers", "gathers_per_step", "Gathers", Unit::count, "All-gathers.", count_of<&C::gathers>, kGathers},
    {"bytes", "bytes_per_step", "MiB", Unit::bytes, "Bytes of the gathered unit, padding included.",
     bytes_of<&C::gather_bytes, &C::gathers>, kGathers},
    {"padding_bytes", "padding_bytes_per_step", "Padding", Unit::bytes, "The padding among them.",
     count_of<&C::gather_padding>, kGathers},
    {"gather_us", "gather_per_step_us", "Gather", Unit::us,
     "Time of the gathers on the device, waiting for other ranks included.", time_of<&C::gather_ns>,
     kGathers},
    {"issue_to_ready_us", "issue_to_ready_per_step_us", "To ready", Unit::us,
     "From the host's launch of a gather to its end on the device.", time_of<&C::issue_to_ready_ns>,
     kGathers},
    {"wait_us", "wait_per_step_us", "Wait", Unit::us,
     "The unit's compute was next on its stream, and the gather not done.", time_of<&C::wait_ns>, kGathers},
    {"exposed_us", "exposed_per_step_us", "Exposed", Unit::us,
     "Time of gathers and reductions outside compute kernels.",
     [](const C& c) { return us_cell(static_cast<double>(c.exposed_ns())); }},
    {"gather_exposed_us", "gather_exposed_per_step_us", "Gather exposed", Unit::us, "That of the gathers.",
     time_of<&C::gather_exposed_ns>, kGathers},
    {"reductions", "reductions_per_step", "Reduces", Unit::count, "Reduce-scatters, all-reduces and reduces.",
     count_of<&C::reductions>, kReductions},
    {"reduce_bytes", "reduce_bytes_per_step", "MiB", Unit::bytes,
     "Bytes of the whole gradient, padding included.", bytes_of<&C::reduce_bytes, &C::reductions>,
     kReductions},
    {"reduce_padding_bytes", "reduce_padding_bytes_per_step", "Padding", Unit::bytes,
     "The padding among them.", count_of<&C::reduce_padding>, kReductions},
    {"reduce_us", "reduce_per_step_us", "Reduce", Unit::us, "Time of the reductions on the device.",
     time_of<&C::reduce_ns>, kReductions},
    {"reduce_exposed_us", "reduce_exposed_per_step_us", "Reduce exposed", Unit::us,
     "Time of the reductions outside compute kernels.", time_of<&C::reduce_exposed_ns>, kReductions},
    {"limiter_us", "limiter_per_step_us", "Limiter", Unit::us,
     "The limiter blocked the host before these gathers.", time_of<&C::limiter_ns>, kGathers},
    {"regathers", "regathers_per_step", "Again", Unit::count, "Gathers of a unit that was freed just before.",
     count_of<&C::regathers>, kGathers},
    {"held_us", "held_per_step_us", "Held", Unit::us,
     "From the start of a gather to the end of the last compute that used it.", time_of<&C::held_ns>,
     kGathers},
    {"freed_us", "freed_per_step_us", "Freed", Unit::us,
     "From that end to the unit's next gather in the step.", time_of<&C::freed_ns>, kGathers},
}};

store::Cell mean_of(const store::Cell& sum, std::int64_t steps) {
    if (steps <= 0) return {};
    const auto n = static_cast<double>(steps);
    if (const auto* whole = std::get_if<std::int64_t>(&sum)) return static_cast<double>(*whole) / n;
    if (const auto* real = std::get_if<double>(&sum)) return *real / n;
    return {};
}

template <std::size_t Figure>
store::Cell sum_cell(const UnitMeans& m) {
    return kFigures[Figure].of(m.row.sum);
}
template <std::size_t Figure>
store::Cell mean_cell(const UnitMeans& m) {
    return mean_of(sum_cell<Figure>(m), m.steps);
}
// A mean that is whole has no decimals.
template <std::size_t Figure>
store::Cell table_cell(const UnitMeans& m) {
    constexpr auto kCollectives = kFigures[Figure].collectives;
    if (kCollectives != nullptr && m.row.sum.*kCollectives == 0) return blank_cell();
    const store::Cell sum = sum_cell<Figure>(m);
    const auto* count = kFigures[Figure].unit == Unit::count ? std::get_if<std::int64_t>(&sum) : nullptr;
    if (count != nullptr && m.steps > 0 && *count % m.steps == 0) return *count / m.steps;
    return mean_of(sum, m.steps);
}

// Sums, means for programs and means for tables, in this order.
template <std::size_t... Figure>
constexpr auto figure_fields(std::index_sequence<Figure...> /*all*/) {
    return std::array<Field<UnitMeans>, 3 * sizeof...(Figure)>{
        {{{kFigures[Figure].sum, "", kFigures[Figure].unit, kFigures[Figure].meaning, in_programs},
          sum_cell<Figure>}...,
         {{kFigures[Figure].mean, "", kFigures[Figure].unit, "Mean per step of the same.", in_programs},
          mean_cell<Figure>}...,
         {{kFigures[Figure].mean, kFigures[Figure].title, kFigures[Figure].unit, kFigures[Figure].meaning,
           in_table},
          table_cell<Figure>}...}};
}
constexpr auto kFigureFields = figure_fields(std::make_index_sequence<kFigures.size()>());

// `where`: beside the sums in CSV, last in JSON.
std::array<Field<UnitMeans>, 2> hidden_fields(std::uint8_t where) {
    using M = UnitMeans;
    return {
        {{{"hidden_by", "Hidden mostly by", Unit::text, "The unit whose compute overlapped most of it.",
           where},
          [](const M& m) { return m.row.hidden_by.empty() ? store::Cell() : store::Cell(m.row.hidden_by); }},
         {{"hidden_us", "", Unit::us, "How long that unit overlapped it.",
           static_cast<std::uint8_t>(where & in_programs)},
          [](const M& m) { return us_cell(static_cast<double>(m.row.hidden_ns)); }}}};
}

std::vector<Field<UnitMeans>> make_unit_fields() {
    using M = UnitMeans;
    std::vector<Field<M>> fields = {
        {{"name", "Unit", Unit::text, "The unit; \"(no unit)\": collectives without one."},
         [](const M& m) { return to_cell(m.row.name); }},
        {{"phase", "Phase", Unit::text, "The phase of the step."},
         [](const M& m) { return to_cell(name(m.row.phase)); }},
        {{"steps", "", Unit::count, "Kept steps of the rank.", in_csv},
         [](const M& m) { return store::Cell(m.steps); }},
    };
    const auto add = [&](const auto& more) { fields.insert(fields.end(), more.begin(), more.end()); };
    add(unit_sum_fields());
    add(hidden_fields(in_csv));
    add(std::span(kFigureFields).subspan(kFigures.size()));
    add(hidden_fields(in_json | in_table));
    return fields;
}

store::Cell known_size(std::int64_t bytes) {
    return bytes >= 0 ? store::Cell(bytes) : store::Cell();
}
template <std::int64_t UnitCosts::*Ns>
store::Cell rank_mean(const RankUnits& rank) {
    return mean_of(time_of<Ns>(rank.sum), rank.steps);
}

}  // namespace

double UnitMeans::regather_us() const {
    if (row.sum.gathers == 0 || steps == 0) return 0;
    return static_cast<double>(row.sum.gather_ns) * 1e-3 / static_cast<double>(row.sum.gathers) *
           static_cast<double>(row.sum.regathers) / static_cast<double>(steps);
}

std::vector<UnitMeans> unit_means(const std::vector<UnitPhase>& rows, std::int64_t steps) {
    std::vector<UnitMeans> means;
    means.reserve(rows.size());
    for (const UnitPhase& row : rows) means.push_back({row, steps});
    return means;
}

Fields<UnitMeans> unit_sum_fields() {
    return std::span(kFigureFields).first(kFigures.size());
}

Fields<UnitMeans> unit_mean_fields() {
    return std::span(kFigureFields).subspan(kFigures.size(), kFigures.size());
}

Fields<UnitMeans> unit_fields() {
    static const std::vector<Field<UnitMeans>> kFields = make_unit_fields();
    return kFields;
}

Fields<RankUnits> unit_rank_fields() {
    using R = RankUnits;
    constexpr std::uint8_t kJsonAndTable = in_json | in_table;
    static constexpr Field<R> kFields[] = {
        {{"rank", "Rank", Unit::index, "Number of the rank."}, value_of<&R::rank>},
        {{"steps", "Steps", Unit::count, "Kept steps."}, value_of<&R::steps>},
        {{"units", "", Unit::text, "Its rows by unit and phase.", in_json}, nested<R>},
        {{"sum", "", Unit::text, "The sums and means of all its rows.", in_json}, nested<R>},
        {{"gather", "Gather", Unit::us, "Time of the gathers.", in_table}, rank_mean<&C::gather_ns>},
        {{"wait", "Wait", Unit::us, "Compute was next, and the gather not done.", in_table},
         rank_mean<&C::wait_ns>},
        {{"limiter", "Limiter", Unit::us, "The limiter blocked the host.", in_table},
         rank_mean<&C::limiter_ns>},
        {{"reduce", "Reduce", Unit::us, "Time of the reductions.", in_table}, rank_mean<&C::reduce_ns>},
        {{"exposed", "Exposed", Unit::us, "Communication outside compute kernels.", in_table},
         [](const R& r) { return mean_of(us_cell(static_cast<double>(r.sum.exposed_ns())), r.steps); }},
        {{"shard_bytes", "Shard", Unit::bytes, "Parameters that live on the rank.", kJsonAndTable},
         [](const R& r) { return known_size(r.shard_bytes); }},
        {{"peak_bytes", "Peak", Unit::bytes, "Largest allocated device memory.", kJsonAndTable},
         [](const R& r) { return known_size(r.peak_bytes); }},
        {{"busy_us", "", Unit::us, "Time with any work on the device.", in_json}, micros_of<&R::busy_ns>},
        {{"busy_per_step_us", "Busy", Unit::us, "Time with any work on the device, mean per step.",
          kJsonAndTable},
         [](const R& r) { return mean_of(us_cell(static_cast<double>(r.busy_ns)), r.steps); }},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
