#include "profiler/recorder/cupti_join.h"

#include <stdexcept>

#include <fmt/core.h>

#include "profiler/cupti/convert.h"
#include "profiler/recorder/cuda_rows.h"

namespace shardscope::profiler {

// --- places ----------------------------------------------------------------------------------------------

std::uint64_t WorkPlace::pack(const DeviceWork& work) {
    if (work.device < 0 || work.device >= kMostDevices || work.stream < 0 || work.stream >= kMostStreams ||
        work.correlation >> 32 != work.device) {
        throw std::logic_error(fmt::format("device {}, stream {}, correlation {} cannot be passed to CUPTI",
                                           work.device, work.stream, work.correlation));
    }
    return static_cast<std::uint64_t>(work.device) << 44 | static_cast<std::uint64_t>(work.stream) << 32 |
           static_cast<std::uint32_t>(work.correlation);
}

WorkPlace WorkPlace::unpack(std::uint64_t id) {
    WorkPlace place;
    place.device = static_cast<int>(id >> 44);
    place.stream = static_cast<int>(id >> 32) & (kMostStreams - 1);
    place.correlation = std::int64_t{place.device} << 32 | static_cast<std::uint32_t>(id);
    return place;
}

// --- records ---------------------------------------------------------------------------------------------

void CuptiJoin::read(const cupti::Memcpy& copy) {
    take<traces::schema::MemcpyRow>(cupti::to_record(copy));
}

void CuptiJoin::read(const cupti::MemcpyPeer& copy) {
    take<traces::schema::MemcpyRow>(cupti::to_record(copy));
}

void CuptiJoin::read(const cupti::Memset& set) {
    take<traces::schema::MemsetRow>(cupti::to_record(set));
}

template <typename Row, typename Record>
bool CuptiJoin::fill(const Record& record, Row& row) {
    if (!clock_.place(record.start, record.end, &row.start, &row.end)) {
        ++counts_.untimed;
        return false;
    }
    row.global_pid = global_pid_;
    fill_row(record, row);
    return true;
}

template <typename Row, typename Record>
void CuptiJoin::take(const Record& record) {
    Row row;
    if (fill(record, row)) keep(record.correlation, row);
}

void CuptiJoin::read(const cupti::Kernel& kernel) {
    CuptiKernel work;
    // The library owns the symbol's text, and may free it with the code that it names.
    work.name = rows_.name(kernel.name);
    if (fill(cupti::to_record(kernel, cupti_.version, 0), work.row)) keep(kernel.correlation, work);
}

// --- the join --------------------------------------------------------------------------------------------

void CuptiJoin::keep(std::uint32_t correlation, const CuptiWork& work) {
    if (const auto known = known_.find(correlation); known != known_.end()) return place(work, known->second);
    waiting_[correlation].push_back(work);
    waiting_order_.push_back(correlation);
    if (waiting_order_.size() <= kMostWaiting) return;
    // The oldest entry is dropped; its call may have been placed since.
    if (const auto oldest = waiting_.find(waiting_order_.front()); oldest != waiting_.end()) {
        counts_.unplaced += std::ssize(oldest->second);
        waiting_.erase(oldest);
    }
    waiting_order_.pop_front();
}

void CuptiJoin::read(const cupti::ExternalCorrelation& external) {
    if (external.external_kind != cupti::kExternalCustom0) return;
    known_[external.correlation] = external.external_id;
    known_order_.push_back(external.correlation);
    if (known_order_.size() > kMostKnown) {
        known_.erase(known_order_.front());
        known_order_.pop_front();
    }
    const auto waiting = waiting_.find(external.correlation);
    if (waiting == waiting_.end()) return;
    for (const CuptiWork& work : waiting->second) place(work, external.external_id);
    waiting_.erase(waiting);
}

void CuptiJoin::place(CuptiWork work, std::uint64_t id) {
    const WorkPlace place = WorkPlace::unpack(id);
    const auto set = [&](auto& row) {
        row.device = place.device;
        row.stream = place.stream;
        row.correlation = place.correlation;
    };
    if (auto* kernel = std::get_if<CuptiKernel>(&work)) set(kernel->row);
    if (auto* copy = std::get_if<traces::schema::MemcpyRow>(&work)) set(*copy);
    if (auto* fill = std::get_if<traces::schema::MemsetRow>(&work)) set(*fill);
    rows_.add(work);
    ++counts_.placed;
}

CuptiJoin::Counts CuptiJoin::finish() {
    for (const auto& [call, work] : waiting_) counts_.unplaced += std::ssize(work);
    waiting_.clear();
    waiting_order_.clear();
    rows_.flush();
    return counts_;
}

}  // namespace shardscope::profiler
