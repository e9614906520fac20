// The seeds of the fuzz target fuzz_kineto, whole and cut at many positions: each is a trace or an error
// message.
#include <filesystem>
#include <iterator>

#include <gtest/gtest.h>

#include "kineto_text.h"
#include "tests/traces/outcome.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

#ifdef SHARDSCOPE_SANITIZED
constexpr std::size_t kEvery = 5;  // distance of the cuts; the fuzz targets try others
#else
constexpr std::size_t kEvery = 1;
#endif

TEST(FuzzCorpus, everySeedAndEveryCutOfItIsATraceOrAnError) {
    int seeds = 0;
    for (const auto& entry : std::filesystem::directory_iterator(SHARDSCOPE_FUZZ_CORPUS "/kineto")) {
        ++seeds;
        const std::string bytes = bytes_of(entry.path());
        ASSERT_FALSE(bytes.empty());
        // The first byte chooses the options.
        for (std::size_t size = 1; size <= bytes.size(); size += kEvery) {
            const std::string text = bytes.substr(1, size - 1);
            for (const bool partial : {false, true}) {
                try {
                    const auto read = read_text(text, {.partial = partial});
                    EXPECT_NE(read.trace, nullptr);
                } catch (const store::StoreError& error) {
                    EXPECT_NE(std::string(error.what()).find("made.json"), std::string::npos) << error.what();
                }
            }
        }
    }
    EXPECT_GE(seeds, 7);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
