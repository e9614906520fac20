#include "traces/import/kineto/trace_actors.h"

#include <algorithm>
#include <limits>

#include "traces/import/kineto/scalar_values.h"
#include "traces/store/columns/device_streams.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::int64_t kNumbers = std::int64_t{1} << 24;  // that fit a serialized id
constexpr std::size_t kThreadsAtMost = 60'000;            // columns hold 65,535; the rest share one
constexpr std::int64_t kSharedThread = 0xFFFFFF;
constexpr std::size_t kFewDevices = 16;  // searched linearly

// The first free number, from the highest down; kSharedThread if none is free.
template <typename Taken>
std::int64_t free_number(std::int64_t& next, Taken& taken) {
    while (next > 1 && taken.contains(--next)) {
    }
    return next > 1 ? next : kSharedThread;
}

}  // namespace

std::int64_t ActorNumbers::of(JsonScalar id) {
    if (!id) return 0;
    if (const auto number = parse_integer(id.text)) return *number;
    const auto [it, is_new] = texts_.try_emplace(std::string(id.text), 0);
    // Far from every number that a system assigns.
    if (is_new)
        it->second = std::numeric_limits<std::int64_t>::min() + static_cast<std::int64_t>(texts_.size());
    return it->second;
}

TraceActors::Process& TraceActors::process(std::int64_t pid) {
    const auto [it, is_new] = processes_.try_emplace(pid);
    Process& process = it->second;
    if (!is_new) return process;
    const bool fits = pid > 0 && pid < kNumbers && taken_pids_.insert(pid).second;
    process.number = fits ? pid : free_number(next_free_pid_, taken_pids_);
    taken_pids_.insert(process.number);
    return process;
}

std::int64_t TraceActors::new_thread(std::int64_t pid, std::int64_t tid) {
    Process& p = process(pid);
    if (threads_.size() >= kThreadsAtMost) {
        ++surplus_;
        return schema::global_tid(p.number, kSharedThread);
    }
    const bool fits = tid >= 0 && tid < kSharedThread && p.taken.insert(tid).second;
    const std::int64_t number = fits ? tid : free_number(p.next_free, p.taken);
    p.taken.insert(number);
    return schema::global_tid(p.number, number);
}

std::int64_t TraceActors::thread(std::int64_t pid, std::int64_t tid) {
    Process& p = process(pid);
    const auto [it, is_new] = p.threads.try_emplace(tid, 0);
    if (is_new) {
        it->second = new_thread(pid, tid);
        threads_.try_emplace(it->second, Thread{pid, tid, 0});
    }
    return it->second;
}

std::int64_t TraceActors::host_thread(JsonScalar pid, JsonScalar tid) {
    for (Latest& latest : latest_) {
        if (latest.thread == nullptr || latest.tid != tid.text || latest.pid != pid.text) continue;
        ++latest.thread->events;
        return latest.id;
    }
    const std::int64_t id = thread(numbers_.of(pid), numbers_.of(tid));
    Latest& latest = latest_[next_latest_++ % std::size(latest_)];
    latest = {std::string(pid.text), std::string(tid.text), id, &threads_[id]};
    ++latest.thread->events;
    return id;
}

int TraceActors::rank_of_device(int device) const {
    if (known_.empty()) return rank_;
    const std::size_t place = place_of_device(device);
    return place < devices_.size() ? devices_[place].second : known_.front().rank;
}

void TraceActors::add_device(int device, int rank) {
    if (devices_.size() >= kFewDevices) places_of_more_.try_emplace(device, devices_.size());
    devices_.emplace_back(device, rank);
}

std::size_t TraceActors::place_of_device(int device) const {
    for (std::size_t i = 0; i < std::min(devices_.size(), kFewDevices); ++i) {
        if (devices_[i].first == device) return i;
    }
    const auto more = places_of_more_.find(device);
    return more != places_of_more_.end() ? more->second : devices_.size();
}

TraceActors::Place TraceActors::device_place(int device, int stream) {
    const int rank = rank_of_device(device);
    if (place_of_device(device) == devices_.size()) add_device(device, rank);
    if (known_.size() > 1 || device == devices_.front().first) return {device, stream, rank};
    // Work of a rank on another device gets separate stream numbers.
    ++moved_devices_;
    return {devices_.front().first, store::stream_of_device(place_of_device(device), stream), rank};
}

std::size_t TraceActors::memory_place(int device) {
    const auto it = std::find(memory_devices_.begin(), memory_devices_.end(), device);
    const auto place = static_cast<std::size_t>(it - memory_devices_.begin());
    if (it == memory_devices_.end() && place < store::kFurtherDevices) memory_devices_.push_back(device);
    return place;
}

void TraceActors::name_process(JsonScalar pid, std::string_view name) {
    process_names_.try_emplace(numbers_.of(pid), name);
}

void TraceActors::name_thread(JsonScalar pid, JsonScalar tid, std::string_view name) {
    if (!name.empty()) names_.insert_or_assign({numbers_.of(pid), numbers_.of(tid)}, std::string(name));
}

void TraceActors::know_rank(const schema::RankRow& row, std::int64_t pid, std::int64_t own,
                            const std::vector<std::int64_t>& threads) {
    schema::RankRow known = row;
    known.global_pid = schema::global_pid(process(pid).number);
    if (own != 0) known.global_tid = thread(pid, own);
    for (const std::int64_t tid : threads) rank_of_thread_[thread(pid, tid)] = row.rank;
    if (known.global_tid != 0) rank_of_thread_[known.global_tid] = row.rank;
    rank_of_process_.try_emplace(known.global_pid, row.rank);
    add_device(row.device, row.rank);
    known_.push_back(std::move(known));
}

int TraceActors::rank_of_thread(std::int64_t tid) const {
    if (known_.empty()) return rank_;
    if (const auto it = rank_of_thread_.find(tid); it != rank_of_thread_.end()) return it->second;
    const auto it = rank_of_process_.find(tid & ~std::int64_t{0xFFFFFF});
    return it != rank_of_process_.end() ? it->second : known_.front().rank;
}

std::int64_t TraceActors::process_of_device(int device) const {
    for (const schema::RankRow& row : known_) {
        if (row.device == device) return row.global_pid;
    }
    return 0;
}

std::int64_t TraceActors::main_thread() const {
    if (!step_threads_.empty()) return step_threads_.front();
    std::int64_t best = 0;
    std::uint64_t most = 0;
    for (const auto& [id, thread] : threads_) {
        if (thread.events <= most) continue;
        most = thread.events;
        best = id;
    }
    return best;
}

void TraceActors::write(store::EventSink& sink, const std::map<int, schema::GpuRow>& gpus,
                        const std::string& host) {
    for (const schema::RankRow& row : known_) sink.add(row);
    if (known_.empty()) {
        schema::RankRow row{.rank = rank_,
                            .device = !devices_.empty()          ? devices_.front().first
                                      : !memory_devices_.empty() ? memory_devices_.front()
                                                                 : 0};
        row.global_tid = main_thread();
        row.global_pid = row.global_tid & ~std::int64_t{0xFFFFFF};
        row.host = host;
        if (const auto gpu = gpus.find(row.device); gpu != gpus.end()) {
            row.device_name = gpu->second.name;
            row.device_memory = gpu->second.memory;
            schema::GpuRow fact = gpu->second;
            fact.pid = row.global_pid >> 24 & 0xFFFFFF;
            sink.add(fact);
        }
        row.data = rank_;
        sink.add(row);
    }
    for (const auto& [pid, process] : processes_) {
        const auto name = process_names_.find(pid);
        sink.add(schema::ProcessRow{.global_pid = schema::global_pid(process.number),
                                    .pid = process.number,
                                    .name = name != process_names_.end() ? name->second : ""});
    }
    for (const auto& [id, thread] : threads_) {
        if (thread.events == 0 && known_.empty()) continue;
        schema::ThreadRow row{.global_tid = id, .name = {}, .rank = rank_of_thread(id)};
        if ((id & 0xFFFFFF) == kSharedThread) {
            row.name = "other threads";
        } else if (const auto name = names_.find({thread.pid, thread.tid}); name != names_.end()) {
            row.name = name->second;
        }
        sink.add(row);
    }
}

}  // namespace shardscope::traces::importer
