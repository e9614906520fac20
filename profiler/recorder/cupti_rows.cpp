#include "profiler/recorder/cupti_rows.h"

#include <chrono>
#include <thread>
#include <utility>

namespace shardscope::profiler {

CuptiRows::CuptiRows(Recorder& recorder) : recorder_(recorder) {}

std::uint32_t CuptiRows::name(const char* symbol) {
    if (symbol == nullptr) return 0;
    const auto [known, added] = numbers_.try_emplace(symbol, static_cast<std::uint32_t>(numbers_.size()) + 1);
    if (added) batch_->symbols.emplace_back(symbol);
    return known->second;
}

void CuptiRows::add(const CuptiWork& work) {
    batch_->work.push_back(work);
    if (batch_->work.size() < kBatch) return;
    flush();
    while (writer_->unwritten.load(std::memory_order_relaxed) > kMostUnwritten && !recorder_.failed()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

void CuptiRows::flush() {
    if (batch_->work.empty() && batch_->symbols.empty()) return;
    writer_->unwritten.fetch_add(static_cast<std::int64_t>(batch_->work.size()), std::memory_order_relaxed);
    const std::shared_ptr<const Batch> batch = std::exchange(batch_, std::make_shared<Batch>());
    recorder_.describe_with(
        [batch, writer = writer_](traces::store::EventSink& sink) { writer->write(*batch, sink); });
}

void CuptiRows::Writer::write(const Batch& batch, traces::store::EventSink& sink) {
    for (const std::string& symbol : batch.symbols) names.push_back(intern_names(sink, symbol));
    const auto add_row = [&](const auto& work) {
        if constexpr (std::is_same_v<std::decay_t<decltype(work)>, CuptiKernel>) {
            traces::schema::KernelRow row = work.row;
            fill_row(names[work.name], row);
            sink.add(row);
        } else {
            sink.add(work);
        }
    };
    for (const CuptiWork& work : batch.work) std::visit(add_row, work);
    unwritten.fetch_sub(static_cast<std::int64_t>(batch.work.size()), std::memory_order_relaxed);
}

}  // namespace shardscope::profiler
