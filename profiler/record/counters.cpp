#include "profiler/record/counters.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "profiler/inject/session_format.h"
#include "profiler/sampler/system_files.h"
#include "traces/schema/text.h"

namespace shardscope::profiler {
namespace {

constexpr std::size_t kMostSamples = 200'000;

template <typename Row>
void append(std::vector<Row>& to, std::vector<Row>& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

struct Counters::Queue {
    std::mutex mutex;
    Samples samples;

    void add(Samples more) {
        const std::lock_guard lock(mutex);
        if (samples.counters.size() > kMostSamples) samples.counters.clear();  // nobody takes them any more
        append(samples.counters, more.counters);
        append(samples.notes, more.notes);
        append(samples.devices, more.devices);
        append(samples.topology, more.topology);
        append(samples.facts, more.facts);
    }
    Samples take() {
        const std::lock_guard lock(mutex);
        return std::exchange(samples, {});
    }
};

Counters::Counters(SamplerOptions options, std::vector<WatchedProcess> processes)
    : origin_(options.origin),
      host_(options.host),
      processes_(processes),
      queue_(std::make_shared<Queue>()),
      thread_(std::make_unique<CounterThread>(
          std::move(options), std::move(processes),
          [queue = queue_](Samples samples) { queue->add(std::move(samples)); })) {}

Counters::~Counters() = default;

void Counters::watch(std::vector<WatchedProcess> processes) {
    if (processes == processes_) return;
    processes_ = processes;
    thread_->watch(std::move(processes));
}

Samples Counters::write(traces::store::EventSink& sink, MonotonicTime since) {
    Samples samples = queue_->take();
    add_rows(samples, host_, origin_, since, sink);
    return samples;
}

void Counters::discard() {
    const std::lock_guard lock(queue_->mutex);
    queue_->samples.counters.clear();
}

int rank_of_process(pid_t pid) {
    const std::optional<std::string> text = SystemFiles().read(fmt::format("/proc/{}/environ", pid));
    if (!text) return -1;
    for (const std::string_view variable : kRankVariables) {
        for (std::string_view rest = *text; !rest.empty();) {
            const std::size_t end = std::min(rest.find('\0'), rest.size());
            const std::string_view entry = rest.substr(0, end);
            rest.remove_prefix(std::min(end + 1, rest.size()));
            if (!entry.starts_with(variable) || entry.size() <= variable.size() ||
                entry[variable.size()] != '=')
                continue;
            const std::optional<int> rank = traces::schema::number_of<int>(entry.substr(variable.size() + 1));
            if (rank && *rank >= 0) return *rank;
        }
    }
    return -1;
}

}  // namespace shardscope::profiler
