// See owned_counters.h.
#include "traces/analysis/job/owned_counters.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

struct ParsedName {
    CounterOwner owner = CounterOwner::gpu;
    int number = -1;  // "gpu3_power_watts"; -1: not in the name
    std::string base;
};

std::optional<ParsedName> parse(std::string_view name) {
    const std::size_t end = name.find('_');
    if (end == std::string_view::npos || end + 1 == name.size()) return std::nullopt;
    const std::string_view subject = name.substr(0, end);
    const std::string base(name.substr(end + 1));
    if (subject == "process") return ParsedName{CounterOwner::rank, -1, base};
    if (subject == "host") return ParsedName{CounterOwner::host, -1, base};
    if (subject == "cgroup") return ParsedName{CounterOwner::host, -1, "cgroup_" + base};
    if (subject == "infiniband") return ParsedName{CounterOwner::infiniband, -1, base};
    if (subject == "ethernet") return ParsedName{CounterOwner::ethernet, -1, base};
    if (!subject.starts_with("gpu")) return std::nullopt;
    if (subject.size() == 3) return ParsedName{CounterOwner::gpu, -1, base};
    if (const auto number = schema::number_of<int>(subject.substr(3)); number && *number >= 0)
        return ParsedName{CounterOwner::gpu, *number, base};
    return std::nullopt;
}

// What a figure can be; beyond that it is damaged.
SampleLimits limits_of(std::string_view name) {
    if (name.ends_with("_percent")) return {0, 100};
    if (name.ends_with("_watts") || name.ends_with("_mhz")) return {0, 1e5};
    if (name.ends_with("_celsius")) return {-100, 1000};
    if (name.ends_with("_cores")) return {0, 1e6};
    if (name.ends_with("_bytes_per_second")) return {0, 1e14};
    if (name.ends_with("_bytes")) return {0, 1e16};
    if (name.ends_with("_joules")) return {0, 1e14};
    if (name.ends_with("_bits")) return {0, 1e15};
    return {-1e300, 1e300};
}

// Files before schema version 9 do not number a rank's first GPU: it is the rank's device. Ranks of a host
// that share a device have its samples at the same times; if the times differ, each process counted its own
// devices.
std::map<std::size_t, int> old_numbers(const store::Trace& trace) {
    const store::Counters& all = trace.counters;
    std::map<std::size_t, std::int64_t> first;  // by rank index
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all.device[i] >= 0 || all.rank[i] >= trace.ranks.size()) continue;
        if (trace.strings[all.name[i]].starts_with("gpu_")) first.try_emplace(all.rank[i], all.time[i]);
    }
    std::map<std::pair<std::string, int>, std::int64_t> taken;
    std::map<std::size_t, int> numbers;
    for (const auto& [rank, time] : first) {
        int number = std::max(trace.ranks[rank].device, 0);
        while (true) {
            const auto [at, is_new] = taken.try_emplace({trace.ranks[rank].host, number}, time);
            if (is_new || at->second == time) break;
            ++number;
        }
        numbers[rank] = number;
    }
    return numbers;
}

using Samples = std::vector<Sample>;
struct Gathered {
    std::map<std::string, Samples, std::less<>> samples;
    std::set<int> ranks;
};

class Gathering {
  public:
    explicit Gathering(const store::Trace& trace)
        : trace_(trace), only_host_(only_host(trace)), old_numbers_(old_numbers(trace)) {}

    std::map<CounterPlace, Gathered> gather() {
        const store::Counters& all = trace_.counters;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (Samples* samples = samples_of(i)) samples->push_back({all.time[i], all.value[i]});
        }
        return std::move(places_);
    }

  private:
    // The values of a counter come in long series: each combination is looked up once.
    struct RowKey {
        schema::StringId name, host;
        std::uint16_t rank;
        std::int32_t device;
        bool operator==(const RowKey&) const = default;
    };
    struct Hash {
        std::size_t operator()(const RowKey& key) const {
            std::uint64_t hash = static_cast<std::uint64_t>(key.name) * 0x9E3779B97F4A7C15;
            hash = (hash ^ static_cast<std::uint64_t>(key.host)) * 0xBF58476D1CE4E5B9;
            hash = (hash ^ ((std::uint64_t{key.rank} << 32) | static_cast<std::uint32_t>(key.device))) *
                   0x94D049BB133111EB;
            return hash ^ (hash >> 31);
        }
    };

    Samples* samples_of(std::size_t i) {
        const store::Counters& all = trace_.counters;
        const RowKey key{all.name[i], all.host[i], all.rank[i], all.device[i]};
        const auto [at, is_new] = known_.try_emplace(key, nullptr);
        if (is_new) at->second = look_up(key);
        return at->second;
    }

    Samples* look_up(const RowKey& key) {
        const auto& parsed = names_.try_emplace(key.name, parse(trace_.strings[key.name])).first->second;
        if (!parsed) return nullptr;
        const bool has_rank = key.rank < trace_.ranks.size();
        CounterPlace place{std::string(trace_.strings[key.host]), parsed->owner, 0};
        if (place.host.empty()) place.host = has_rank ? trace_.ranks[key.rank].host : only_host_;
        std::string base = parsed->base;
        switch (parsed->owner) {
            case CounterOwner::gpu: {
                const auto old = old_numbers_.find(key.rank);
                place.number = key.device >= 0             ? key.device
                               : parsed->number >= 0       ? parsed->number
                               : old != old_numbers_.end() ? old->second
                                                           : 0;
                break;
            }
            case CounterOwner::infiniband:
            case CounterOwner::ethernet:
                place.number = std::max(key.device, 0);
                break;
            case CounterOwner::rank:
                if (has_rank) {
                    place.number = trace_.ranks[key.rank].number;
                } else {
                    place.owner = CounterOwner::host;
                    base = "job_" + base;
                }
                break;
            case CounterOwner::host:
                break;
        }
        Gathered& gathered = places_[place];
        if (has_rank) gathered.ranks.insert(trace_.ranks[key.rank].number);
        return &gathered.samples[base];
    }

    const store::Trace& trace_;
    const std::string only_host_;
    const std::map<std::size_t, int> old_numbers_;
    std::map<schema::StringId, std::optional<ParsedName>> names_;
    std::map<CounterPlace, Gathered> places_;
    std::unordered_map<RowKey, Samples*, Hash> known_;
};

}  // namespace

const SampledCurve* OwnedCurves::find(std::string_view name) const {
    const auto found = curves.find(name);
    return found == curves.end() || found->second.empty() ? nullptr : &found->second;
}

std::string only_host(const store::Trace& trace) {
    std::string_view host;
    for (const store::Rank& rank : trace.ranks) {
        if (rank.host.empty()) continue;
        if (!host.empty() && rank.host != host) return {};
        host = rank.host;
    }
    return std::string(host);
}

std::map<CounterPlace, OwnedCurves> owned_counters(const store::Trace& trace, Interval within,
                                                   std::map<std::string, std::int64_t>& unusable) {
    const std::int64_t period = std::max<std::int64_t>(
        schema::number_of<std::int64_t>(trace.config_value("sampler.period_ns")).value_or(0), 0);
    std::map<CounterPlace, OwnedCurves> owned;
    for (auto& [place, gathered] : Gathering(trace).gather()) {
        OwnedCurves& to = owned[place];
        to.ranks = std::move(gathered.ranks);
        for (auto& [name, samples] : gathered.samples) {
            SampledCurve curve(std::move(samples), limits_of(name), period, within, name.ends_with("_bits"));
            if (curve.unusable() > 0) unusable[name] += curve.unusable();
            to.curves.emplace(name, std::move(curve));
        }
    }
    return owned;
}

}  // namespace shardscope::traces::analysis
