// Samples NVML on a thread of its own.
#include "profiler/record/gpu_counters.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "profiler/base/clock.h"
#include "profiler/nvml/library.h"

namespace shardscope::profiler {
namespace {

using namespace std::chrono_literals;

constexpr auto kPeriod = 100ms;
constexpr int kPciePeriods = 10;  // PCIe is read once in this many rounds: it takes NVML 20 ms
constexpr auto kPatience = 300ms;
constexpr std::size_t kMostSamples = 10'000;  // if they are not taken, the oldest are dropped
constexpr unsigned kMostProcesses = 64;

std::atomic<bool> left_behind{false};

class Gpus {
  public:
    // False: the library is missing or too old, or there is no GPU.
    bool open() {
        std::string why;
        nvml_ = nvml::Library::open(&why);
        if (nvml_ == nullptr) return false;
        std::vector<std::string> failures;
        for (const nvml::Gpu& gpu : nvml_->gpus(&failures)) gpus_.push_back({gpu.number, gpu.device, {}, {}});
        return !gpus_.empty();
    }

    // `with_pcie`: also reads the PCIe values, which takes long.
    std::vector<GpuSample> sample(bool with_pcie) {
        std::vector<GpuSample> samples;
        for (Gpu& gpu : gpus_) samples.push_back(sample(gpu, with_pcie));
        return samples;
    }

  private:
    struct Link {
        unsigned long long kib = 0;
        std::int64_t time_ns = 0;
    };
    struct Gpu {
        int number;
        nvml::Device device;
        Link sent, received;
    };

    GpuSample sample(Gpu& gpu, bool with_pcie) {
        const nvml::Functions& call = nvml_->call();
        GpuSample result;
        result.gpu = gpu.number;
        result.time = MonotonicTime::now();
        const auto put = [&](const char* name, double value) { result.values.push_back({name, value}); };
        nvml::Utilization use{};
        if (call.utilization != nullptr && call.utilization(gpu.device, &use) == 0) {
            put("utilization_percent", use.gpu);
            put("memory_utilization_percent", use.memory);
        }
        nvml::Memory memory{};
        if (call.memory != nullptr && call.memory(gpu.device, &memory) == 0) {
            put("memory_used_bytes", static_cast<double>(memory.used));
        }
        unsigned number = 0;
        if (call.power != nullptr && call.power(gpu.device, &number) == 0) {
            put("power_watts", number * 1e-3);
        }
        if (call.clock != nullptr && call.clock(gpu.device, nvml::kClockSm, &number) == 0) {
            put("sm_clock_mhz", number);
        }
        if (call.clock != nullptr && call.clock(gpu.device, nvml::kClockMemory, &number) == 0) {
            put("memory_clock_mhz", number);
        }
        unsigned long long reasons = 0;
        if (call.throttling != nullptr && call.throttling(gpu.device, &reasons) == 0) {
            put("throttle_reasons_bits", static_cast<double>(reasons));
        }
        if (const auto rate = link_rate(gpu, nvml::kNvlinkSent, &gpu.sent)) {
            put("nvlink_sent_bytes_per_second", *rate);
        }
        if (const auto rate = link_rate(gpu, nvml::kNvlinkReceived, &gpu.received)) {
            put("nvlink_received_bytes_per_second", *rate);
        }
        if (with_pcie && call.pcie != nullptr) {
            if (call.pcie(gpu.device, nvml::kPcieSent, &number) == 0) {
                put("pcie_sent_bytes_per_second", number * 1e3);
            }
            if (call.pcie(gpu.device, nvml::kPcieReceived, &number) == 0) {
                put("pcie_received_bytes_per_second", number * 1e3);
            }
        }
        nvml::ProcessInfo processes[kMostProcesses];
        unsigned count = kMostProcesses;
        if (call.processes != nullptr && call.processes(gpu.device, &count, processes) == 0) {
            for (unsigned i = 0; i < std::min(count, kMostProcesses); ++i) {
                result.pids.push_back(static_cast<pid_t>(processes[i].pid));
            }
        }
        return result;
    }

    // Bytes per second since the last reading; none at the first.
    std::optional<double> link_rate(const Gpu& gpu, unsigned field, Link* last) {
        const nvml::Functions& call = nvml_->call();
        nvml::FieldValue value{};
        value.field = field;
        value.scope = nvml::kAllLinks;
        if (call.fields == nullptr || call.fields(gpu.device, 1, &value) != 0 || value.result != 0) {
            return std::nullopt;
        }
        const Link now{value.value_type == nvml::kTypeUnsigned ? value.value.small : value.value.number,
                       monotonic_ns()};
        const Link before = std::exchange(*last, now);
        if (before.time_ns == 0 || now.kib < before.kib || now.time_ns <= before.time_ns) return std::nullopt;
        return static_cast<double>(now.kib - before.kib) * 1024e9 /
               static_cast<double>(now.time_ns - before.time_ns);
    }

    std::unique_ptr<nvml::Library> nvml_;
    std::vector<Gpu> gpus_;
};

}  // namespace

struct GpuCounters::State {
    std::mutex mutex;
    std::condition_variable changed;
    bool stop = false, ended = false;
    std::vector<GpuSample> samples;
    std::thread thread;

    void run() {
        if (Gpus gpus; gpus.open()) {
            for (int round = 0; !stopped(); ++round) keep(gpus.sample(round % kPciePeriods == 0));
        }
        const std::lock_guard lock(mutex);
        ended = true;
        changed.notify_all();
    }

    bool stopped() {
        const std::lock_guard lock(mutex);
        return stop;
    }

    void keep(std::vector<GpuSample> new_samples) {
        std::unique_lock lock(mutex);
        if (samples.size() > kMostSamples) samples.erase(samples.begin(), samples.begin() + kMostSamples / 2);
        for (GpuSample& sample : new_samples) samples.push_back(std::move(sample));
        changed.wait_for(lock, kPeriod, [this] { return stop; });
    }
};

GpuCounters::GpuCounters() : state_(std::make_shared<State>()) {
    state_->thread = std::thread([state = state_] { state->run(); });
}

GpuCounters::~GpuCounters() {
    std::unique_lock lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
    const bool ended = state_->changed.wait_for(lock, kPatience, [this] { return state_->ended; });
    lock.unlock();
    if (ended) {
        state_->thread.join();
        return;
    }
    left_behind = true;
    state_->thread.detach();
}

std::vector<GpuSample> GpuCounters::take() {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->samples, {});
}

bool GpuCounters::stuck() {
    return left_behind;
}

}  // namespace shardscope::profiler
