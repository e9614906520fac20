// See analysis_cache.h. The worker holds the mutex only to take a job and to store a result; an entry keeps
// its traces alive, so that no address is used twice for different traces.
#include "viewer/model/analysis_cache.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/core.h>

namespace shardscope::viewer::model {
namespace {

// Beyond this number, entries that have not been used recently are removed. Entries used in every frame
// always stay: if removed, they would be computed again in every frame.
constexpr std::size_t kMostEntries = 256;
constexpr std::uint64_t kRounds = 4;  // an entry not requested for this many rounds of requests is stale

std::string text_of(const std::optional<std::int64_t>& value) {
    return value ? fmt::format("{}", *value) : "-";
}

}  // namespace

struct AnalysisCache::Impl {
    enum class State { waiting, running, done };
    struct Entry {
        State state = State::waiting;
        std::string name;
        std::vector<TracePtr> traces;
        Maker make;
        bool renewable = false;  // `make` is kept, for the trace's successor
        Result<void> value;
        std::string failure;      // the error message, if there is no value
        std::uint64_t asked = 0;  // grows with each request; the newest request is served first

        bool of(const TracePtr& trace) const {
            return std::find(traces.begin(), traces.end(), trace) != traces.end();
        }
    };

    mutable std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, std::shared_ptr<Entry>> entries;
    std::uint64_t questions = 0;
    std::uint64_t frame_before = 0, frame_now = 0;  // `questions` when the frame began
    bool stop = false;
    bool running = false;  // an analysis is running; its entry may already be erased
    std::thread worker;

    void end() {
        const std::lock_guard lock(mutex);
        stop = true;
        changed.notify_all();
    }

    std::shared_ptr<Entry> next() const {
        std::shared_ptr<Entry> best;
        for (const auto& [key, entry] : entries) {
            if (entry->state == State::waiting && (!best || entry->asked > best->asked)) best = entry;
        }
        return best;
    }

    void work() {
        std::unique_lock lock(mutex);
        for (;;) {
            std::shared_ptr<Entry> entry;
            changed.wait(lock, [&] { return stop || (entry = next()) != nullptr; });
            if (stop) return;
            entry->state = State::running;
            running = true;
            lock.unlock();
            Result<void> value;
            std::string error;
            try {
                value = entry->make(entry->traces);
            } catch (const std::exception& e) {
                error = e.what();
            }
            lock.lock();
            running = false;
            entry->value = std::move(value);
            if (!entry->renewable) entry->make = nullptr;
            entry->state = State::done;
            if (!error.empty()) entry->failure = "An analysis failed: " + error;
        }
    }

    // The entry of these traces, made if there is none. The lock must be held.
    Entry& entry_of(const std::string& name, const std::vector<TracePtr>& traces, const Maker& make,
                    bool renewable) {
        std::string key = name;
        for (const TracePtr& trace : traces) key += fmt::format("|{}", static_cast<const void*>(trace.get()));
        auto it = entries.find(key);
        if (it == entries.end()) {
            make_room();
            auto entry = std::make_shared<Entry>();
            entry->name = name;
            entry->traces = traces;
            entry->make = make;
            entry->renewable = renewable;
            it = entries.emplace(std::move(key), std::move(entry)).first;
            changed.notify_all();
        }
        it->second->asked = ++questions;
        return *it->second;
    }

    void make_room() {
        while (entries.size() >= kMostEntries) {
            auto oldest = entries.end();
            for (auto it = entries.begin(); it != entries.end(); ++it) {
                if (it->second->state == State::running) continue;
                if (oldest == entries.end() || it->second->asked < oldest->second->asked) oldest = it;
            }
            const auto stale = [&](const Entry& entry) {
                return entry.asked + kRounds * entries.size() < questions;
            };
            if (oldest == entries.end() || !stale(*oldest->second)) return;
            entries.erase(oldest);
        }
    }
};

std::string AnalysisCache::key_of(std::string_view analysis, const traces::analysis::Selection& s) {
    return fmt::format("{}/{}/{}:{}/{}:{}", analysis, s.rank ? fmt::format("{}", *s.rank) : "-",
                       text_of(s.first_step), text_of(s.last_step), text_of(s.from_ns), text_of(s.to_ns));
}

AnalysisCache::AnalysisCache() : impl_(std::make_shared<Impl>()) {
    impl_->worker = std::thread([impl = impl_] { impl->work(); });
}

AnalysisCache::~AnalysisCache() {
    impl_->end();
    if (impl_->worker.joinable()) impl_->worker.join();
}

bool AnalysisCache::abandon() {
    impl_->end();
    const std::lock_guard lock(impl_->mutex);
    if (impl_->running) impl_->worker.detach();
    return impl_->running;
}

AnalysisCache::Result<void> AnalysisCache::find_or_start(const std::string& name,
                                                         const std::vector<TracePtr>& traces,
                                                         const Maker& make, bool renewable) {
    const std::lock_guard lock(impl_->mutex);
    return impl_->entry_of(name, traces, make, renewable).value;
}

AnalysisCache::Result<traces::analysis::ExecutionSummary> AnalysisCache::summary(
    const TracePtr& trace, const traces::analysis::Selection& selection) {
    return get<traces::analysis::ExecutionSummary>(
        key_of("summary", selection), {trace},
        [selection](const auto& t) { return traces::analysis::summarize(*t.front(), selection); });
}

AnalysisCache::Result<traces::analysis::ModuleView> AnalysisCache::modules(
    const TracePtr& trace, const traces::analysis::Selection& selection) {
    return get<traces::analysis::ModuleView>(
        key_of("modules", selection), {trace},
        [selection](const auto& t) { return traces::analysis::module_view(*t.front(), selection); });
}

AnalysisCache::Result<traces::analysis::MemoryReport> AnalysisCache::memory(
    const TracePtr& trace, const traces::analysis::Selection& selection) {
    return get<traces::analysis::MemoryReport>(
        key_of("memory", selection), {trace},
        [selection](const auto& t) { return traces::analysis::memory_report(*t.front(), selection); });
}

AnalysisCache::Result<traces::analysis::CollectivesReport> AnalysisCache::collectives(
    const TracePtr& trace, const traces::analysis::Selection& selection) {
    return get<traces::analysis::CollectivesReport>(
        key_of("collectives", selection), {trace},
        [selection](const auto& t) { return traces::analysis::collectives_report(*t.front(), selection); });
}

AnalysisCache::Result<draw::CategoryCurve> AnalysisCache::category_curve(const TracePtr& trace,
                                                                         traces::store::RankIndex rank,
                                                                         traces::schema::MemorySpace space) {
    return get<draw::CategoryCurve>(
        fmt::format("curve/{}/{}", rank.value, static_cast<int>(space)), {trace}, [=](const auto& t) {
            return draw::category_curve(traces::analysis::memory_curve(*t.front(), rank, space));
        });
}

AnalysisCache::Result<std::vector<traces::analysis::MemoryPoint>> AnalysisCache::curve(
    const TracePtr& trace, traces::store::RankIndex rank, traces::schema::MemorySpace space) {
    const auto whole = category_curve(trace, rank, space);
    return whole == nullptr ? nullptr
                            : Result<std::vector<traces::analysis::MemoryPoint>>(whole, &whole->points);
}

AnalysisCache::Result<traces::analysis::TraceInfo> AnalysisCache::info(const TracePtr& trace) {
    return get<traces::analysis::TraceInfo>(
        "info", {trace}, [](const auto& t) { return traces::analysis::trace_info(*t.front()); });
}

AnalysisCache::Result<std::vector<std::string>> AnalysisCache::faults(const TracePtr& trace) {
    return get<std::vector<std::string>>(
        "faults", {trace}, [](const auto& t) { return traces::analysis::check_trace(*t.front()); });
}

AnalysisCache::Result<traces::analysis::Comparison> AnalysisCache::comparison(
    const std::vector<TracePtr>& runs) {
    return get<traces::analysis::Comparison>("comparison", runs, [](const auto& t) {
        std::vector<const traces::store::Trace*> plain;
        plain.reserve(t.size());
        for (const TracePtr& trace : t) plain.push_back(trace.get());
        return traces::analysis::compare(plain);
    });
}

bool AnalysisCache::busy() const {
    const std::lock_guard lock(impl_->mutex);
    return std::any_of(impl_->entries.begin(), impl_->entries.end(),
                       [](const auto& e) { return e.second->state != Impl::State::done; });
}

bool AnalysisCache::busy_with(const TracePtr& trace) const {
    const std::lock_guard lock(impl_->mutex);
    return std::any_of(impl_->entries.begin(), impl_->entries.end(), [&](const auto& e) {
        return e.second->state != Impl::State::done && e.second->of(trace);
    });
}

bool AnalysisCache::busy_without(const std::vector<TracePtr>& traces) const {
    const std::lock_guard lock(impl_->mutex);
    return std::any_of(impl_->entries.begin(), impl_->entries.end(), [&](const auto& e) {
        return e.second->state != Impl::State::done &&
               std::none_of(traces.begin(), traces.end(), [&](const TracePtr& t) { return e.second->of(t); });
    });
}

void AnalysisCache::begin_frame() {
    const std::lock_guard lock(impl_->mutex);
    impl_->frame_before = std::exchange(impl_->frame_now, impl_->questions);
}

std::string AnalysisCache::failure() const {
    const std::lock_guard lock(impl_->mutex);
    const Impl::Entry* latest = nullptr;
    for (const auto& [key, entry] : impl_->entries) {
        if (entry->asked <= impl_->frame_now) continue;
        if (entry->state != Impl::State::done) return {};
        if (entry->failure.empty()) continue;
        if (latest == nullptr || entry->asked > latest->asked) latest = entry.get();
    }
    return latest != nullptr ? latest->failure : std::string();
}

bool AnalysisCache::failed_with(const TracePtr& trace) const {
    const std::lock_guard lock(impl_->mutex);
    return std::any_of(impl_->entries.begin(), impl_->entries.end(),
                       [&](const auto& e) { return !e.second->failure.empty() && e.second->of(trace); });
}

void AnalysisCache::forget(const TracePtr& trace) {
    const std::lock_guard lock(impl_->mutex);
    std::erase_if(impl_->entries, [&](const auto& e) { return e.second->of(trace); });
}

void AnalysisCache::renew(const TracePtr& before, const TracePtr& after) {
    const std::lock_guard lock(impl_->mutex);
    std::vector<std::shared_ptr<Impl::Entry>> asked;
    for (const auto& [key, entry] : impl_->entries) {
        if (entry->renewable && entry->asked > impl_->frame_before && entry->of(before))
            asked.push_back(entry);
    }
    for (const auto& entry : asked) {
        std::vector<TracePtr> traces = entry->traces;
        std::replace(traces.begin(), traces.end(), before, after);
        impl_->entry_of(entry->name, traces, entry->make, true);
    }
}

}  // namespace shardscope::viewer::model
