// Rows by kind, each kind in order of arrival.
#include "profiler/record/recent_rows.h"

#include <algorithm>
#include <type_traits>
#include <unordered_set>
#include <utility>

namespace shardscope::profiler {
namespace {

constexpr std::size_t kForgetAbove = std::size_t{32} << 20;  // bytes of strings; below, none are forgotten
constexpr std::size_t kStringOverhead = 96;                  // of an entry of the table, approximately

template <typename T, typename Tuple>
inline constexpr bool kIsEvent = false;
template <typename T, typename... Ts>
inline constexpr bool kIsEvent<T, std::tuple<Ts...>> = (std::is_same_v<T, Ts> || ...);

// When the event ended; `unknown` if the row does not contain the time.
template <typename Row>
std::int64_t time_of(const Row& row, std::int64_t unknown) {
    if constexpr (std::is_same_v<Row, traces::schema::RangeRow> ||
                  std::is_same_v<Row, traces::schema::NcclOperationRow>) {
        return row.end.value_or(row.start);
    } else if constexpr (requires { row.end; }) {
        return row.end;
    } else if constexpr (requires { row.time; }) {
        return row.time != 0 ? row.time : unknown;
    } else {
        return unknown;
    }
}

// Memory that a kept row takes.
template <typename Kept>
std::size_t bytes_of(const Kept& kept) {
    std::size_t bytes = sizeof kept;
    const auto text = [&](const std::string& s) {
        if (s.capacity() > 15) bytes += s.capacity() + 17;
    };
    if constexpr (requires { kept.row.binary; }) text(kept.row.binary);
    if constexpr (requires { kept.row.data_type; }) {
        text(kept.row.data_type);
        text(kept.row.algorithm);
        text(kept.row.protocol);
    }
    return bytes;
}

// Passes rows on with the other sink's string ids.
class Translator final : public traces::store::EachRow<Translator> {
  public:
    Translator(traces::store::EventSink& sink,
               std::unordered_map<traces::schema::StringId, std::string_view> texts)
        : sink_(sink), texts_(std::move(texts)) {}

    traces::schema::StringId intern(std::string_view text) override { return sink_.intern(text); }
    void commit() override { sink_.commit(); }
    template <typename Row>
    void take(Row row) {
        traces::schema::visit_names(row, [this](traces::schema::StringId& id) { id = translate(id); });
        sink_.add(row);
    }

  private:
    traces::schema::StringId translate(traces::schema::StringId id) {
        if (id == traces::schema::StringId::empty) return id;
        auto [it, is_new] = ids_.try_emplace(id);
        if (is_new) {
            const auto text = texts_.find(id);
            it->second = sink_.intern(text == texts_.end() ? std::string_view() : text->second);
        }
        return it->second;
    }

    traces::store::EventSink& sink_;
    std::unordered_map<traces::schema::StringId, std::string_view> texts_;
    std::unordered_map<traces::schema::StringId, traces::schema::StringId> ids_;
};

}  // namespace

RecentRows::RecentRows(std::int64_t window_ns, std::size_t max_bytes)
    : window_ns_(window_ns), max_bytes_(max_bytes), forget_above_(std::min(kForgetAbove, max_bytes / 8)) {}

traces::schema::StringId RecentRows::intern(std::string_view text) {
    if (text.empty()) return traces::schema::StringId::empty;
    if (const auto it = strings_.find(text); it != strings_.end()) return it->second;
    const auto id = static_cast<traces::schema::StringId>(next_id_++);
    strings_.emplace(text, id);
    string_bytes_ += text.size() + kStringOverhead;
    return id;
}

std::string_view RecentRows::text(traces::schema::StringId id) const {
    for (const auto& [text, known] : strings_) {
        if (known == id) return text;
    }
    return {};
}

template <typename Row>
void RecentRows::take(const Row& row) {
    if constexpr (std::is_same_v<Row, traces::schema::CounterRow>) {
        counters_.push_back({row.time, row});
        counter_bytes_ += bytes_of(counters_.back());
        while (counter_bytes_ > kMaxCounterBytes) drop_front(counters_);
    } else if constexpr (std::is_same_v<Row, traces::schema::DiagnosticRow>) {
        if (diagnostics_.size() == kMaxDiagnostics)
            diagnostics_.erase(diagnostics_.begin() + kFirstDiagnostics);
        diagnostics_.push_back(row);
    } else if constexpr (!kIsEvent<Rows<Row>, decltype(events_)>) {
        facts_.emplace_back(std::in_place_type<Row>, row);
    } else {
        Rows<Row>& rows = std::get<Rows<Row>>(events_);
        std::int64_t time = std::min(time_of(row, newest_ns_), now_ns_);
        newest_ns_ = std::max(newest_ns_, time);
        if (!rows.empty()) time = std::max(time, rows.back().time);
        rows.push_back({time, row});
        bytes_ += bytes_of(rows.back());
        if (bytes_ > max_bytes_) drop_for_space();
    }
}

template <typename Row>
void RecentRows::drop_front(Rows<Row>& rows) {
    (std::is_same_v<Row, traces::schema::CounterRow> ? counter_bytes_ : bytes_) -= bytes_of(rows.front());
    rows.pop_front();
}

void RecentRows::drop_old() {
    const std::int64_t since = newest_ns_ - window_ns_;
    const auto drop = [&](auto& rows) {
        while (!rows.empty() && rows.front().time < since) drop_front(rows);
    };
    std::apply([&](auto&... rows) { (drop(rows), ...); }, events_);
    drop(counters_);
}

// Makes room for many rows at a time, so that it need not run for each row.
void RecentRows::drop_for_space() {
    drop_old();
    while (bytes_ > max_bytes_ - max_bytes_ / 16) {
        std::int64_t oldest = INT64_MAX;
        const auto look = [&](const auto& rows) {
            if (!rows.empty()) oldest = std::min(oldest, rows.front().time);
        };
        std::apply([&](const auto&... rows) { (look(rows), ...); }, events_);
        if (oldest == INT64_MAX) return;
        const auto drop = [&](auto& rows) {
            while (!rows.empty() && rows.front().time <= oldest + window_ns_ / 256) {
                drop_front(rows);
                ++dropped_;
            }
        };
        std::apply([&](auto&... rows) { (drop(rows), ...); }, events_);
    }
}

void RecentRows::forget_strings() {
    std::unordered_set<traces::schema::StringId> used;
    const auto mark = [&](traces::schema::StringId id) { used.insert(id); };
    const auto mark_all = [&](const auto& rows) {
        for (const auto& kept : rows) traces::schema::visit_names(kept.row, mark);
    };
    std::apply([&](const auto&... rows) { (mark_all(rows), ...); }, events_);
    mark_all(counters_);
    for (const traces::schema::AnyRow& fact : facts_) {
        std::visit([&](const auto& row) { traces::schema::visit_names(row, mark); }, fact);
    }
    if (visit_ids_) visit_ids_(mark);
    string_bytes_ = 0;
    for (auto it = strings_.begin(); it != strings_.end();) {
        if (!used.contains(it->second)) {
            it = strings_.erase(it);
            continue;
        }
        string_bytes_ += it->first.size() + kStringOverhead;
        ++it;
    }
    forget_above_ = std::max(std::min(kForgetAbove, max_bytes_ / 8), 2 * string_bytes_);
}

void RecentRows::commit() {
    drop_old();
    if (string_bytes_ > forget_above_) forget_strings();
}

std::unique_ptr<traces::store::EventSink> RecentRows::translator(traces::store::EventSink& sink) {
    std::unordered_map<traces::schema::StringId, std::string_view> texts;
    for (const auto& [text, id] : strings_) texts.emplace(id, text);
    return std::make_unique<Translator>(sink, std::move(texts));
}

void RecentRows::write_to(traces::store::EventSink& sink, std::int64_t since_ns) {
    drop_old();
    const auto into = translator(sink);
    for (const traces::schema::AnyRow& fact : facts_) {
        std::visit([&](const auto& row) { into->add(row); }, fact);
    }
    for (const traces::schema::DiagnosticRow& row : diagnostics_) into->add(row);
    const auto write = [&](const auto& rows) {
        for (const auto& kept : rows) {
            if (kept.time >= since_ns) into->add(kept.row);
        }
    };
    std::apply([&](const auto&... rows) { (write(rows), ...); }, events_);
    write(counters_);
}

std::size_t RecentRows::rows() const {
    return std::apply([](const auto&... rows) { return (rows.size() + ...); }, events_);
}

std::int64_t RecentRows::oldest_ns() const {
    std::int64_t oldest = newest_ns_;
    const auto look = [&](const auto& rows) {
        if (!rows.empty()) oldest = std::min(oldest, rows.front().time);
    };
    std::apply([&](const auto&... rows) { (look(rows), ...); }, events_);
    return std::max(oldest, newest_ns_ - window_ns_);
}

namespace {

template <typename... Row>
auto takes(const std::variant<Row...>*) {
    return std::tuple(static_cast<void (RecentRows::*)(const Row&)>(&RecentRows::take<Row>)...);
}
// Instantiates take() for every kind: EachRow::add(), which is inlined elsewhere, needs them.
[[gnu::used]] const auto kTakes = takes(static_cast<const traces::schema::AnyRow*>(nullptr));

}  // namespace

}  // namespace shardscope::profiler
