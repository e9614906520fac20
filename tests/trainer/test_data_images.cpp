// Images that are made, and CIFAR's files: their values, order and mistakes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"
#include "trainer/data/cifar.h"
#include "trainer/data/images.h"
#include "trainer/data/source.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::data {
namespace TEST_FILE {

using ::testing::HasSubstr;

struct Samples {
    std::vector<float> images;
    std::vector<std::int32_t> labels;
};
Samples read(const Dataset& data, std::int64_t first, int count) {
    Samples samples{std::vector<float>(static_cast<std::size_t>(data.input_bytes() / 4 * count)),
                    std::vector<std::int32_t>(static_cast<std::size_t>(count))};
    data.fill(first, count, samples.images.data(), samples.labels.data());
    return samples;
}

// Two samples of a class differ by noise of deviation 1 each; the means of their patches are the class's.
TEST(SyntheticImages, AreNoiseOverThePatternOfTheirClass) {
    const SyntheticImages data(1, 32, 3);
    const Samples all = read(data, 0, 60), later = read(data, 20, 5);
    EXPECT_TRUE(std::equal(later.images.begin(), later.images.end(), all.images.begin() + 20 * 32 * 32 * 3));
    EXPECT_EQ(std::set<std::int32_t>(all.labels.begin(), all.labels.end()),
              (std::set<std::int32_t>{0, 1, 2}));
    std::vector<std::vector<double>> corner(3);  // the mean of the first patch's red
    for (std::size_t i = 0; i < 60; ++i) {
        double mean = 0;
        for (std::size_t p = 0; p < 64; ++p)
            mean += all.images[i * 32 * 32 * 3 + (p / 8 * 32 + p % 8) * 3] / 64.0;
        corner[static_cast<std::size_t>(all.labels[i])].push_back(mean);
    }
    for (const auto& means : corner) {
        const auto [low, high] = std::minmax_element(means.begin(), means.end());
        EXPECT_LT(*high - *low, 1.0);  // eight deviations of 1 / 8
    }
}

class CifarFiles : public ::testing::Test {
  protected:
    // Image i has the label i % 10, and the bytes i + channel.
    std::string write(const std::string& name, int images, int labels = 1, std::size_t cut = 0) {
        std::string bytes;
        for (int i = 0; i < images; ++i) {
            if (labels == 2) bytes += '\x63';
            bytes += static_cast<char>(i % 10);
            for (int c = 0; c < 3; ++c) bytes += std::string(1024, static_cast<char>(100 + i + c));
        }
        std::ofstream(folder_ / name, std::ios::binary) << bytes.substr(0, bytes.size() - cut);
        return folder_ / name;
    }
    static std::string error_of(const std::string& path, int classes = 10) {
        try {
            const CifarImages data(path, classes);
        } catch (const DataError& error) {
            return error.what();
        }
        return "no error";
    }
    static job::Job job_of(const std::string& path, const std::string& keys = "") {
        return job::parse_job(
            "[model]\nname = 'resnet18'\n[data]\ntype = 'images'\nimage = 32\nclasses = 10\npath = '" + path +
                "'\n" + keys,
            "job.toml");
    }
    traces::TemporaryFolder folder_;
};

TEST_F(CifarFiles, AreReadInAShuffledOrderOnceInAnEpoch) {
    for (const int labels : {1, 2}) {
        const DataSource source = open_data(job_of(write("data.bin", 20, labels)));
        ASSERT_EQ(source.train->samples(), 20);
        const Samples epoch = read(*source.train, 0, 20), next = read(*source.train, 20, 20);
        std::multiset<std::int32_t> seen(epoch.labels.begin(), epoch.labels.end());
        EXPECT_EQ(seen.count(7), 2U);
        EXPECT_NE(epoch.labels, next.labels);
        for (std::size_t i = 0; i < 20; ++i) {
            const float red = epoch.images[i * 3072], blue = epoch.images[i * 3072 + 2];
            const int byte = static_cast<int>(std::lround((red * 0.5F + 0.5F) * 255));
            EXPECT_EQ((byte - 100) % 10, epoch.labels[i]);
            EXPECT_NEAR(blue - red, 2 / 127.5, 1e-6);
        }
    }
}

TEST_F(CifarFiles, OfAFolderFollowEachOther) {
    write("data_batch_1.bin", 3);
    write("data_batch_2.bin", 4);
    EXPECT_EQ(CifarImages(folder_.path(), 10).images(), 7);
}

// As cifar-10-batches-bin and cifar-100-binary have them.
TEST_F(CifarFiles, OfAFolderAreThoseToTrainOn) {
    for (const char* other : {"batches.meta.txt", "readme.html"})
        std::ofstream(folder_ / other) << "airplane";
    const std::string test = write("test_batch.bin", 5);
    write("test.bin", 6);
    EXPECT_EQ(error_of(folder_.path()),
              "data.path: the folder " + folder_.path() +
                  " has no *.bin file to train on (test_batch.bin and test.bin are left out) directly in it; "
                  "give a CIFAR file, or a folder of CIFAR files");
    write("data_batch_1.bin", 3);
    EXPECT_EQ(CifarImages(folder_.path(), 10).images(), 3);
    EXPECT_EQ(CifarImages(folder_.path(), 10, ImageSet::test).images(), 5 + 6);
    EXPECT_EQ(CifarImages(test, 10).images(), 5);
    const std::string cut = write("data_batch_2.bin", 4, 1, 5);
    EXPECT_THAT(error_of(folder_.path()), HasSubstr("data.path: " + cut + " has 12287 bytes"));
}

TEST_F(CifarFiles, OfAFolderToValidateOnAreTheTestSet) {
    const std::string key = "validation_path = '" + folder_.path() + "'";
    const job::Job job = job_of(write("data_batch_1.bin", 3), key);
    EXPECT_THAT([&] { open_data(job); },
                ::testing::ThrowsMessage<DataError>(
                    HasSubstr("job.toml:8: data.validation_path: the folder " + folder_.path() +
                              " has no test_batch.bin or test.bin to validate or test on directly in it")));
    write("test_batch.bin", 5);
    EXPECT_EQ(open_data(job).validation->samples(), 5);
    const job::Job both = job_of(write("data_batch_1.bin", 3), key + "\ntest_path = '" + folder_ / "." + "'");
    EXPECT_THAT([&] { open_data(both); },
                ::testing::ThrowsMessage<DataError>(HasSubstr("job.toml:9: data.test_path: " + folder_ / "." +
                                                              " is also what data.validation_path names")));
}

TEST_F(CifarFiles, SayWhatIsWrong) {
    EXPECT_THAT(error_of(write("short.bin", 3, 1, 5)),
                HasSubstr("short.bin has 9214 bytes, which is not a whole number of images of CIFAR-10"));
    EXPECT_THAT(error_of(write("empty.bin", 0)), HasSubstr("has 0 bytes"));
    EXPECT_THAT(error_of(write("labels.bin", 12), 5),
                HasSubstr("data.classes: " + folder_ / "labels.bin" +
                          " has the label 5 at image 5, which is not below 5; set data.classes"));
    EXPECT_THAT(error_of(folder_ / "none"), HasSubstr("does not exist; give a CIFAR file"));
    const job::Job job = job_of(write("data.bin", 2), "validation_path = '" + folder_ / "none'");
    EXPECT_THAT([&] { open_data(job); },
                ::testing::ThrowsMessage<DataError>(
                    HasSubstr("job.toml:8: data.validation_path: " + folder_ / "none does not exist")));
    const job::Job too_few = job_of(write("data.bin", 2), "validation = 0.1");
    EXPECT_THAT([&] { open_data(too_few); },
                ::testing::ThrowsMessage<DataError>(
                    HasSubstr("job.toml:8: data.validation: 0.1 of 2 images is less than one image")));
}

// Those to validate on are seen once, in one order, and not trained on; the others are.
TEST_F(CifarFiles, HoldOutAShareThatIsNotTrainedOn) {
    const DataSource source = open_data(job_of(write("data.bin", 20), "validation = 0.25\nflip = true"));
    ASSERT_EQ(source.validation->samples(), 5);
    ASSERT_EQ(source.train->samples(), 15);
    const auto bytes_of = [](const Dataset& data, int count) {
        std::set<int> bytes;
        const Samples all = read(data, 0, count);
        for (int i = 0; i < count; ++i)
            bytes.insert(static_cast<int>(std::lround((all.images[i * 3072] * 0.5F + 0.5F) * 255)));
        return bytes;
    };
    const std::set<int> held_out = bytes_of(*source.validation, 5), trained_on = bytes_of(*source.train, 15);
    EXPECT_EQ(held_out.size(), 5U);
    EXPECT_EQ(trained_on.size(), 15U);
    for (const int byte : held_out) EXPECT_EQ(trained_on.count(byte), 0U) << byte;
    EXPECT_NE(*held_out.rbegin() - *held_out.begin(), 4) << "five neighbours in the file";
    EXPECT_EQ(read(*source.validation, 0, 5).images, read(*source.validation, 0, 5).images);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::data
