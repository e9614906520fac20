// See kept_trace.h.
#include "traces/store/beside/kept_trace.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "traces/store/beside/each_column.h"

namespace shardscope::traces::store {
namespace {

// --- the few values that are not columns, as bytes -------------------------------------------------------

class Packer {
  public:
    void number(std::int64_t value) { text({reinterpret_cast<const char*>(&value), sizeof value}, false); }
    void text(std::string_view value, bool counted = true) {
        if (counted) number(static_cast<std::int64_t>(value.size()));
        const auto* from = reinterpret_cast<const std::byte*>(value.data());
        bytes_.insert(bytes_.end(), from, from + value.size());
    }
    const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

class Unpacker {
  public:
    explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}
    std::int64_t number() {
        std::int64_t value = 0;
        if (const auto from = take(sizeof value); good_) std::memcpy(&value, from.data(), sizeof value);
        return value;
    }
    // A number that is at most the bytes that are left, as the number of things that take one each is.
    std::size_t count() {
        const std::int64_t value = number();
        good_ = good_ && value >= 0 && static_cast<std::uint64_t>(value) <= bytes_.size();
        return good_ ? static_cast<std::size_t>(value) : 0;
    }
    std::string_view text() {
        const auto from = take(count());
        return {reinterpret_cast<const char*>(from.data()), from.size()};
    }
    bool good() const { return good_; }

  private:
    std::span<const std::byte> take(std::size_t size) {
        good_ = good_ && size <= bytes_.size();
        if (!good_) return {};
        const auto taken = bytes_.first(size);
        bytes_ = bytes_.subspan(size);
        return taken;
    }
    std::span<const std::byte> bytes_;
    bool good_ = true;
};

constexpr const char* kFacts = "facts";

void pack_facts(const Trace& trace, Packer& to) {
    to.number(trace.first_ns);
    to.number(trace.last_ns);
    to.number(static_cast<std::int64_t>(trace.strings.size()));
    for (std::size_t s = 0; s < trace.strings.size(); ++s) to.text(trace.strings[schema::StringId(s)]);
    to.number(static_cast<std::int64_t>(trace.ranks.size()));
    for (const Rank& rank : trace.ranks) {
        for (const std::int64_t value :
             {std::int64_t{rank.number}, std::int64_t{rank.device}, rank.global_pid, rank.global_tid,
              rank.device_memory, std::int64_t{rank.local_rank}})
            to.number(value);
        for (const std::string* text : {&rank.host, &rank.device_name, &rank.cpus}) to.text(*text);
    }
    to.number(static_cast<std::int64_t>(trace.threads.size()));
    for (const HostThread& thread : trace.threads) {
        to.number(thread.global_tid);
        to.number(thread.rank.value);
        to.text(thread.name);
    }
    to.number(static_cast<std::int64_t>(trace.streams.size()));
    for (const DeviceStream& stream : trace.streams) {
        to.number(stream.id);
        to.number(stream.rank.value);
        to.text(stream.name);
    }
    to.number(static_cast<std::int64_t>(trace.steps.size()));
    for (const Step& step : trace.steps) {
        for (const std::int64_t value :
             {std::int64_t{step.rank.value}, step.number, step.start, step.end,
              std::int64_t{step.loss.has_value()}, std::bit_cast<std::int64_t>(step.loss.value_or(0))})
            to.number(value);
    }
}

bool unpack_facts(Unpacker from, Trace& trace) {
    bool good = true;
    const auto number = [&] { return static_cast<int>(from.number()); };
    const auto rank_index = [&](bool or_none) {
        const RankIndex rank(number());
        good = good && (rank.known() ? rank.at() < trace.ranks.size() : or_none && rank.value == -1);
        return rank;
    };
    trace.first_ns = from.number();
    trace.last_ns = from.number();
    const std::size_t strings = from.count();
    for (std::size_t s = 0; s < strings && from.good(); ++s)
        good = good && static_cast<std::size_t>(trace.strings.intern(from.text())) == s;
    trace.ranks.resize(from.count());
    for (Rank& rank : trace.ranks) {
        rank.number = number();
        rank.device = number();
        rank.global_pid = from.number();
        rank.global_tid = from.number();
        rank.device_memory = from.number();
        rank.local_rank = number();
        rank.host = from.text();
        rank.device_name = from.text();
        rank.cpus = from.text();
    }
    trace.threads.resize(from.count());
    for (HostThread& thread : trace.threads) {
        thread.global_tid = from.number();
        thread.rank = rank_index(true);
        thread.name = from.text();
    }
    trace.streams.resize(from.count());
    for (DeviceStream& stream : trace.streams) {
        stream.id = number();
        stream.rank = rank_index(true);
        stream.name = from.text();
    }
    trace.steps.resize(from.count());
    for (Step& step : trace.steps) {
        step.rank = rank_index(false);
        step.number = from.number();
        step.start = from.number();
        step.end = from.number();
        const bool has_loss = from.number() != 0;
        const auto loss = std::bit_cast<double>(from.number());
        if (has_loss) step.loss = loss;
    }
    return good && from.good();
}

// --- columns ---------------------------------------------------------------------------------------------

template <typename T>
const Column<T>& values_of(const Column<T>& column) {
    return column;
}
const Column<std::int32_t>& values_of(const IndexColumn& column) {
    return column.values();
}

template <typename T>
std::size_t rows_of(const ColumnFile& file, const char* name, const Column<T>&) {
    return file.size<T>(name);
}

ColumnLimits limits_of(const ColumnFile& file, const Trace& trace) {
    return {.strings = trace.strings.size(),
            .ranks = trace.ranks.size(),
            .threads = trace.threads.size(),
            .streams = trace.streams.size(),
            .device = rows_of(file, "device.start", trace.device.start),
            .ranges = rows_of(file, "ranges.start", trace.ranges.start),
            .runtime = rows_of(file, "runtime.start", trace.runtime.start),
            .collectives = rows_of(file, "collectives.bytes", trace.collectives.bytes)};
}

}  // namespace

bool can_be_kept(const Trace& trace) {
    return trace.identity && trace.schema_version > 0 && trace.ended && trace.invalid_events == 0 &&
           is_unchanged(trace.path, *trace.identity);
}

void keep_columns(const Trace& trace, ColumnFileWriter& file) {
    Packer facts;
    pack_facts(trace, facts);
    file.add_bytes(kFacts, facts.bytes());
    visit_columns(trace, {}, [&](const char* name, const auto& column, ColumnBound) {
        if (!values_of(column).empty()) file.add(name, values_of(column));
    });
}

bool take_columns(const ColumnFile& file, Trace& trace) {
    ColumnTaker taker(file);
    Column<std::byte> facts;
    taker.take(kFacts, facts);
    if (!taker.checked() || !unpack_facts(Unpacker({facts.data(), facts.size()}), trace)) return false;
    bool fits = true;
    std::string_view group;
    std::size_t rows = 0;
    visit_columns(trace, limits_of(file, trace),
                  [&]<typename Kind>(std::string_view name, Kind& column, ColumnBound bound) {
                      // All columns of the same events are as long as their first one.
                      const std::string_view its_group = name.substr(0, name.find('.'));
                      const bool is_first = its_group != group;
                      group = its_group;
                      std::size_t size = 0;
                      if constexpr (std::is_same_v<Kind, IndexColumn>) {
                          Column<std::int32_t> values;
                          taker.take(name, values, bound);
                          size = values.size();
                          column.set_values(rows, std::move(values));
                      } else {
                          taker.take(name, column, bound);
                          size = column.size();
                      }
                      if (is_first) rows = size;
                      fits = fits && (size == rows || (bound.may_be_empty && size == 0));
                  });
    return fits && taker.checked();
}

}  // namespace shardscope::traces::store
