// How fast samples are made: bytes and byte pairs, the sampler, the loader with and without workers, and the
// training of a vocabulary. The text is generated: words of 2 to 9 letters from a list of 50,000, drawn as in
// a language (the i-th most frequent with a probability of about 1/i). Not a test; run bin/bench_data, with
// --benchmark_filter=loader for a part of it.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "trainer/data/bpe_training.h"
#include "trainer/data/loader.h"
#include "trainer/data/source.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer::data {
namespace {

constexpr std::size_t kTextBytes = 10'000'000;
constexpr int kContext = 256, kBatch = 8;

std::string made_up_text() {
    constexpr std::uint64_t kWords = 50'000;
    std::vector<std::string> words(kWords);
    for (std::uint64_t w = 0; w < kWords; ++w) {
        const std::uint64_t letters = 2 + kernels::random_bits(1, 1, w) % 8;
        for (std::uint64_t i = 0; i < letters; ++i) {
            const float u = kernels::uniform(1, 2, w * 16 + i);
            words[w] += "etaoinshrdlcumwfgypbvkjxqz"[static_cast<std::size_t>(u * u * 26)];
        }
    }
    std::string text;
    for (std::uint64_t i = 0; text.size() < kTextBytes; ++i) {
        const double u = kernels::uniform(1, 3, i);
        text += words[static_cast<std::size_t>(std::pow(double{kWords}, u)) % kWords];
        text += i % 12 == 11 ? ".\n" : " ";
    }
    return text;
}

const std::string& text() {
    static const std::string made = made_up_text();
    return made;
}

// The generated text, in a file that is removed with the object.
class MadeUpText {
  public:
    MadeUpText()
        : path_(std::filesystem::temp_directory_path() / ("shardscope-bench-" + std::to_string(getpid()))) {
        std::ofstream(path_, std::ios::binary) << text();
    }
    ~MadeUpText() { std::filesystem::remove(path_); }
    MadeUpText(const MadeUpText&) = delete;
    MadeUpText& operator=(const MadeUpText&) = delete;
    std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

void count_tokens(benchmark::State& state) {
    state.counters["tokens"] = benchmark::Counter(static_cast<double>(state.iterations()) * kBatch * kContext,
                                                  benchmark::Counter::kIsRate);
}

void sampler(benchmark::State& state) {
    const Permutation order(state.range(0), 1, 1);
    std::int64_t i = 0;
    for (auto _ : state) benchmark::DoNotOptimize(order(i++ % state.range(0)));
}
BENCHMARK(sampler)->Arg(39'062)->Arg(1 << 20)->Arg((1 << 20) + 1);

// Arguments: vocabulary (0: bytes), workers.
void loader(benchmark::State& state) {
    const MadeUpText file;
    const TextSource source =
        open_text({.path = file.path(), .context = kContext, .vocabulary = static_cast<int>(state.range(0))});
    DataLoader data(*source.train, {.batch = kBatch, .workers = static_cast<int>(state.range(1))});
    std::vector<Token> input(kBatch * kContext), target(input.size());
    for (auto _ : state) {
        data.next(input.data(), target.data());
        benchmark::DoNotOptimize(input.data());
        benchmark::ClobberMemory();
    }
    count_tokens(state);
}
BENCHMARK(loader)->ArgsProduct({{0, 4096}, {0, 1, 2}})->UseRealTime();

void train_vocabulary(benchmark::State& state) {
    const std::string_view whole = text();
    for (auto _ : state)
        benchmark::DoNotOptimize(learn_merges({&whole, 1}, static_cast<int>(state.range(0)) - 256));
}
BENCHMARK(train_vocabulary)->Arg(4096)->Arg(32768)->Unit(benchmark::kMillisecond);

void encode(benchmark::State& state) {
    const std::string_view whole = text();
    const BpeTokenizer tokenizer(learn_merges({&whole, 1}, static_cast<int>(state.range(0)) - 256));
    std::size_t tokens = 0;
    for (auto _ : state) tokenizer.encode(whole, [&](std::span<const Token> some) { tokens += some.size(); });
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(whole.size()));
    state.counters["bytes/token"] = static_cast<double>(whole.size()) *
                                    static_cast<double>(state.iterations()) / static_cast<double>(tokens);
}
BENCHMARK(encode)->Arg(4096)->Arg(32768)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardscope::trainer::data

BENCHMARK_MAIN();
