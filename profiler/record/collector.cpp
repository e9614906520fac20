// Opens the record files of processes as they appear, drains them, and closes them when the processes end.
#include "profiler/record/collector.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "traces/schema/sort_rows.h"
#include "traces/store/machine.h"

namespace shardscope::profiler {
namespace {

// 3 of "rank 3" and "rank 3 host"; -1 for a name without a rank.
int rank_in(std::string_view thread) {
    constexpr std::string_view kRank = "rank ";
    if (thread.substr(0, kRank.size()) != kRank) return -1;
    const char* const end = thread.data() + thread.size();
    int rank = -1;
    const auto [behind, error] = std::from_chars(thread.data() + kRank.size(), end, rank);
    return error == std::errc{} && (behind == end || *behind == ' ') ? rank : -1;
}

}  // namespace

Collector::Collector(std::string directory, traces::store::EventSink& sink, Calibration& clock,
                     MonotonicTime origin)
    : directory_(std::move(directory)), sink_(sink), clock_(clock), origin_(origin) {}

void Collector::look_for_processes() {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
        const std::string path = entry.path().string();
        if (entry.path().extension() != kRecordSuffix || seen_files_.count(path) != 0) continue;
        bool not_ours = false;
        auto process =
            ProcessRecords::open(path, sink_, clock_, origin_, row_pids_, opened_, &findings_, &not_ours);
        if (process == nullptr && !not_ours) continue;  // try again next time
        seen_files_.insert(path);
        if (process == nullptr) {
            ++closed_damaged_;
            continue;
        }
        ++opened_;
        describe(*process);
        open_.push_back(std::move(process));
    }
    // The folder lists them in any order.
    traces::schema::sort_rows(open_,
                              [](const auto& a, const auto& b) { return a->start_ns() < b->start_ns(); });
}

void Collector::describe(const ProcessRecords& process) {
    if (described_processes_.insert(process.row_pid()).second) {
        sink_.add(traces::schema::ProcessRow{traces::schema::global_pid(process.row_pid()), process.pid(),
                                             process.name()});
    }
    // Children inherit the launcher's variables: the first process with a rank is that rank.
    if (process.rank() < 0 || !ranks_.try_emplace(process.rank(), process.row_pid()).second) return;
    describe_rank(process, process.rank(), process.pid());
}

void Collector::describe_rank(const ProcessRecords& process, int rank, std::int64_t tid) {
    traces::schema::RankRow row;
    row.rank = rank;
    row.device = rank;
    row.global_pid = traces::schema::global_pid(process.row_pid());
    row.global_tid = traces::schema::global_tid(process.row_pid(), tid);
    row.host = traces::store::host_name("");
    row.device_name = traces::store::processor_name();
    row.device_memory = traces::store::physical_memory();
    row.data = rank;
    findings_.devices.reserve_rank(row.rank);
    findings_.ranks[row.rank] = row;
    sink_.add(row);
}

// Finds ranks in a process that has none itself. Here too, the first process with a rank is that rank.
void Collector::find_ranks_of_threads(const ProcessRecords& process) {
    if (process.rank() >= 0) return;
    for (const auto& [tid, name] : process.converter().threads()) {
        const int rank = rank_in(name);
        if (rank < 0) continue;
        const auto [of, is_new] = ranks_.try_emplace(rank, process.row_pid());
        if (of->second != process.row_pid()) continue;
        thread_ranks_.insert_or_assign(traces::schema::global_tid(process.row_pid(), tid), rank);
        if (is_new) describe_rank(process, rank, tid);
    }
}

int Collector::rank_of_thread(const ProcessRecords& process, std::int64_t tid) const {
    const auto own = thread_ranks_.find(traces::schema::global_tid(process.row_pid(), tid));
    return own != thread_ranks_.end() ? own->second : process.rank();
}

void Collector::drain() {
    drain(MonotonicTime::now() - origin_);
}

void Collector::drain(std::int64_t end_ns) {
    look_for_processes();
    // A process that is gone by now has written nothing after the snapshot that follows.
    std::vector<bool> gone(open_.size());
    for (std::size_t i = 0; i < open_.size(); ++i) gone[i] = open_[i]->gone();
    for (auto& process : open_) process->snapshot();
    clock_.update();
    const std::int64_t now = std::min(end_ns, MonotonicTime::now() - origin_);
    for (std::size_t i = 0; i < open_.size(); ++i) {
        ProcessRecords& process = *open_[i];
        process.drain();
        find_ranks_of_threads(process);
        // A process that called exec is the same process with a new file: the old file ended where the new
        // one began.
        for (std::size_t later = i + 1; later < open_.size(); ++later) {
            if (open_[later]->row_pid() != process.row_pid()) continue;
            close(process, open_[later]->start_ns());
            open_[i].reset();
            break;
        }
        if (open_[i] != nullptr && gone[i]) {
            close(process, now);
            open_[i].reset();
        }
    }
    open_.erase(std::remove(open_.begin(), open_.end(), nullptr), open_.end());
}

void Collector::close(ProcessRecords& process, std::int64_t end_ns) {
    add_places(process, end_ns, &places_);
    if (places_.size() > 2 * kMostPlaces) places_.erase(places_.begin(), places_.end() - kMostPlaces);
    process.close(end_ns);
    describe_threads(process, sink_);
    for (const auto& [tid, name] : process.converter().threads()) {
        described_threads_.insert(traces::schema::global_tid(process.row_pid(), tid));
    }
    closed_activity_ += process.bytes_read();
    closed_rows_ += process.converter().rows();
    closed_dropped_ += process.dropped();
    closed_damaged_ += process.converter().damaged();
}

void Collector::describe_threads(const ProcessRecords& process, traces::store::EventSink& sink) const {
    for (const auto& [tid, name] : process.converter().threads()) {
        const std::int64_t global_tid = traces::schema::global_tid(process.row_pid(), tid);
        if (described_threads_.count(global_tid) != 0) continue;
        sink.add(traces::schema::ThreadRow{global_tid, name, rank_of_thread(process, tid)});
    }
}

void Collector::add_places(const ProcessRecords& process, std::int64_t until_ns,
                           std::vector<Place>* places) const {
    const auto& threads = process.converter().threads();
    const std::size_t first = places->size();
    process.converter().visit_open([&](const traces::schema::RangeRow& range) {
        const std::int64_t tid = range.global_tid & 0xFFFFFF;
        // A thread's last range is its innermost.
        if (places->size() == first || places->back().tid != tid) {
            const auto name = threads.find(static_cast<std::uint32_t>(tid));
            Place place;
            place.pid = process.pid();
            place.tid = tid;
            place.rank = rank_of_thread(process, tid);
            if (name != threads.end()) place.thread = name->second;
            place.until_ns = until_ns;
            places->push_back(std::move(place));
        }
        places->back().range = range.text;
        places->back().since_ns = range.start;
    });
    for (std::size_t i = first; i < places->size(); ++i) {
        (*places)[i].text = sink_.text((*places)[i].range);
    }
}

std::vector<Collector::Place> Collector::places_at_end(std::int64_t after_ns) const {
    std::vector<Place> places;
    const std::size_t first = places_.size() > kMostPlaces ? places_.size() - kMostPlaces : 0;
    for (std::size_t i = first; i < places_.size(); ++i) {
        if (places_[i].until_ns >= after_ns) places.push_back(places_[i]);
    }
    return places;
}

std::vector<Collector::Place> Collector::places_now(std::int64_t now_ns) const {
    std::vector<Place> places;
    for (const auto& process : open_) add_places(*process, now_ns, &places);
    return places;
}

void Collector::pause(std::int64_t now_ns) {
    drain(now_ns);
    for (auto& process : open_) process->end_open_ranges(now_ns);
}

void Collector::write_open(traces::store::EventSink& sink, std::int64_t now_ns) const {
    for (const auto& process : open_) {
        describe_threads(*process, sink);
        process->converter().write_open(sink, now_ns);
    }
}

void Collector::visit_strings(const std::function<void(traces::schema::StringId)>& visit) const {
    for (const auto& process : open_) process->converter().visit_strings(visit);
}

std::vector<WatchedProcess> Collector::living() const {
    std::vector<WatchedProcess> living;
    for (const auto& process : open_) {
        if (!process->same_pid_namespace()) continue;  // the system knows it under another pid
        living.push_back({static_cast<pid_t>(process->pid()), process->rank()});
    }
    return living;
}

std::uint64_t Collector::activity() const {
    std::uint64_t bytes = closed_activity_;
    for (const auto& process : open_) bytes += process->bytes_read();
    return bytes;
}

void Collector::finish(std::int64_t end_ns) {
    drain(end_ns);
    for (auto& process : open_) close(*process, end_ns);
    open_.clear();
}

std::int64_t Collector::rows() const {
    std::int64_t sum = closed_rows_;
    for (const auto& process : open_) sum += process->converter().rows();
    return sum;
}

std::int64_t Collector::dropped() const {
    std::int64_t sum = closed_dropped_ + findings_.lost;
    for (const auto& process : open_) sum += process->dropped();
    return sum;
}

std::int64_t Collector::damaged() const {
    std::int64_t sum = closed_damaged_;
    for (const auto& process : open_) sum += process->converter().damaged();
    return sum;
}

}  // namespace shardscope::profiler
