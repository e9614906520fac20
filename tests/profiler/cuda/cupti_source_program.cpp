// Opens the recorder's CUPTI source in a separate program, with the library that the environment names.
// Without an argument it prints why that is not possible and exits with 1; the argument names a fake library,
// on which it "runs" a kernel.
#include <cstdio>
#include <memory>
#include <string>

#include "profiler/recorder/cupti_source.h"
#include "tests/profiler/cuda/fake_library.h"
#include "tests/profiler/memory_sink.h"

namespace profiler = shardscope::profiler;

int main(int argc, char** argv) {
    std::unique_ptr<profiler::testing::FakeLibrary> fake;
    if (argc > 1) fake = std::make_unique<profiler::testing::FakeLibrary>(argv[1]);
    profiler::testing::Received got;
    profiler::Recorder recorder(std::make_unique<profiler::testing::MemorySink>(got), nullptr);
    std::string why;
    const auto source = profiler::CuptiSource::open(recorder, why);
    if (!source) {
        std::printf("%s\n", why.c_str());
        return 1;
    }
    if (!fake) return 0;
    profiler::DeviceWork work;
    work.device = 1;
    work.correlation = (std::int64_t{1} << 32) + 1;
    source->begin(work);
    fake->call(0, "cudaLaunchKernel_v7000", 1);
    source->end();
    const std::int64_t now = profiler::testing::FakeLibrary::now();
    fake->kernel(0, 1, now, now + 1000);
    source->finish();
    recorder.finish();
    for (const auto& row : got.kernels) std::printf("1 kernel of device %d\n", row.device);
}
