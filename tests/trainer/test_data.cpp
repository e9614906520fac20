// Samples as functions of (seed, number), text in windows, and the errors about unusable data. Order,
// vocabulary and loading ahead: test_data_sampler.cpp, test_data_bpe.cpp, test_data_loader.cpp.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/traces/temporary_folder.h"
#include "tests/trainer/kernel_testing.h"
#include "trainer/data/source.h"
#include "trainer/data/synthetic.h"
#include "trainer/data/text_files.h"
#include "trainer/job/job.h"
#include "trainer/kernels/activation.h"
#include "trainer/kernels/linear.h"
#include "trainer/kernels/loss.h"
#include "trainer/kernels/optimizer.h"

namespace shardscope::trainer::data {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::Floats;
using ::testing::HasSubstr;

// Step 5, 4 ranks of batch 8: a step takes 32 rows, so it starts at 160, and rank 2 at 160 + 16.
TEST(FirstSample, RanksShareAStepsRows) {
    EXPECT_EQ(first_sample_of(5, 4, 0, 8), 160);
    EXPECT_EQ(first_sample_of(5, 4, 2, 8), 176);
    EXPECT_EQ(first_sample_of(5, 1, 0, 32), 160) << "one rank with the whole batch starts at the same row";
    EXPECT_EQ(first_sample_of(1 << 20, 1024, 1023, 1024), (1ll << 40) + 1023 * 1024) << "no overflow";
}

TEST(SyntheticDataset, SamplesDoNotDependOnTheOrderOfAccess) {
    constexpr int kWidth = 37;
    const SyntheticDataset data(11, kWidth);
    EXPECT_EQ(data.input_bytes(), 37 * 4);
    EXPECT_EQ(data.target_bytes(), 37 * 4);
    Floats x(10 * kWidth), y(10 * kWidth);
    data.fill(100, 10, x.data(), y.data());
    for (int i = 0; i < 10; ++i) {
        Floats x1(kWidth), y1(kWidth);
        const SyntheticDataset again(11, kWidth);
        again.fill(100 + i, 1, static_cast<void*>(x1.data()), static_cast<void*>(y1.data()));
        EXPECT_TRUE(std::equal(x1.begin(), x1.end(), x.begin() + i * kWidth));
        EXPECT_TRUE(std::equal(y1.begin(), y1.end(), y.begin() + i * kWidth));
    }
}

TEST(SyntheticDataset, AnotherSeedGivesOtherSamples) {
    Floats x1(8), y1(8), x2(8), y2(8);
    SyntheticDataset(1, 8).fill(0, 1, x1.data(), y1.data());
    SyntheticDataset(2, 8).fill(0, 1, x2.data(), y2.data());
    EXPECT_NE(x1, x2);
    EXPECT_NE(y1, y2);
}

// Inputs are normal: the mean and variance of 64,000 of them lie within 4 deviations (4/253) of 0 and 1.
TEST(SyntheticDataset, InputsAreNormalAndTargetsBounded) {
    constexpr int kWidth = 64, kSamples = 1000;
    Floats x(kWidth * kSamples), y(x.size());
    SyntheticDataset(5, kWidth).fill(0, kSamples, x.data(), y.data());
    double mean = 0.0, square = 0.0;
    for (const float value : x) {
        mean += value / x.size();
        square += static_cast<double>(value) * value / x.size();
    }
    EXPECT_NEAR(mean, 0.0, 4.0 / std::sqrt(x.size()));
    EXPECT_NEAR(square, 1.0, 4.0 * std::sqrt(2.0 / x.size()));
    for (const float value : y) ASSERT_LT(std::abs(value), 4.0f);
}

TEST(SyntheticDataset, OneElementWideWorks) {
    float x = NAN, y = NAN;
    SyntheticDataset(5, 1).fill(3, 1, &x, &y);
    EXPECT_TRUE(std::isfinite(x));
    EXPECT_TRUE(std::isfinite(y));
}

// Training in miniature: Linear, ReLU, Linear, squared error, SGD. A model that only knew the mean of the
// targets would stay above half of the first loss.
TEST(SyntheticDataset, ATwoLayerModelLearnsIt) {
    constexpr int kWidth = 8, kHidden = 64, kBatch = 64, kTrainingSteps = 600;
    const SyntheticDataset data(3, kWidth);
    Floats w1(kHidden * kWidth), b1(kHidden, 0.0f), w2(kWidth * kHidden), b2(kWidth, 0.0f);
    kernels::fill_normal(w1.data(), w1.size(), 1, 1, 0, 0.0f, 0.4f);
    kernels::fill_normal(w2.data(), w2.size(), 1, 2, 0, 0.0f, 0.1f);
    Floats dw1(w1.size()), db1(b1.size()), dw2(w2.size()), db2(b2.size());
    Floats x(kBatch * kWidth), target(x.size()), h(kBatch * kHidden), y(x.size()), dy(x.size()), dh(h.size());
    const auto step = [](Floats& param, const Floats& grad) {
        kernels::sgd(param.data(), grad.data(), nullptr, param.size(), 0.5, 0.0, false, 0.0);
    };
    double first = 0.0, last = 0.0;
    for (int s = 0; s < kTrainingSteps; ++s) {
        data.fill(first_sample_of(s, 1, 0, kBatch), kBatch, x.data(), target.data());
        kernels::linear_forward(x.data(), w1.data(), b1.data(), h.data(), kBatch, kWidth, kHidden);
        kernels::relu_forward(h.data(), h.data(), h.size());
        kernels::linear_forward(h.data(), w2.data(), b2.data(), y.data(), kBatch, kHidden, kWidth);
        double loss = 0.0;
        kernels::mse_forward(y.data(), target.data(), &loss, y.size());
        kernels::mse_backward(y.data(), target.data(), dy.data(), y.size());
        kernels::linear_backward_input(dy.data(), w2.data(), dh.data(), kBatch, kHidden, kWidth);
        kernels::linear_backward_weight(dy.data(), h.data(), dw2.data(), kBatch, kHidden, kWidth);
        kernels::linear_backward_bias(dy.data(), db2.data(), kBatch, kWidth);
        kernels::relu_backward(dh.data(), h.data(), dh.data(), h.size());
        kernels::linear_backward_weight(dh.data(), x.data(), dw1.data(), kBatch, kWidth, kHidden);
        kernels::linear_backward_bias(dh.data(), db1.data(), kBatch, kHidden);
        step(w1, dw1);
        step(b1, db1);
        step(w2, dw2);
        step(b2, db2);
        if (s == 0) first = loss;
        last = loss;
    }
    EXPECT_LT(last, 0.2 * first);
}

// Each test has its own folder, removed at its end.
class TextData : public ::testing::Test {
  protected:
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name, std::ios::binary) << text;
        return (folder_ / name).string();
    }

    static std::string error_of(const TextSettings& settings) {
        try {
            open_text(settings);
        } catch (const DataError& error) {
            return error.what();
        }
        return "no error";
    }
    static std::string error_of(const std::string& path) {
        return error_of(TextSettings{.path = path, .context = 4});
    }

    traces::TemporaryFolder temporary_;
    const fs::path folder_ = temporary_.path();
};

// The whole text at `path`, shuffled.
TextDataset dataset_of(const std::string& path, std::int64_t seed, int context) {
    return *open_text({.path = path, .seed = seed, .context = context}).train;
}

// The tokens of one sample, its input followed by its last target.
std::string window_of(const TextDataset& data, std::int64_t sample) {
    const auto context = static_cast<std::size_t>(data.input_bytes() / 4);
    testing::Tokens tokens(context), targets(context);
    data.fill(sample, 1, tokens.data(), targets.data());
    std::string window(tokens.begin(), tokens.end());
    return window + static_cast<char>(targets.back());
}

std::string joined(const TextFiles& text) {
    std::string all;
    for (int i = 0; i < text.files(); ++i) all += text.file(i).whole();
    return all;
}

TEST_F(TextData, ATargetIsItsTokensSuccessor) {
    std::string text;
    for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);  // byte i is at position i
    const TextDataset data = dataset_of(write("bytes", text), 9, 16);
    EXPECT_EQ(data.input_bytes(), 16 * 4);
    EXPECT_EQ(data.target_bytes(), 16 * 4);
    testing::Tokens tokens(20 * 16), targets(20 * 16);
    data.fill(1000, 20, tokens.data(), targets.data());
    for (int i = 0; i < 20; ++i) {
        for (int t = 0; t < 16; ++t) {
            EXPECT_EQ(tokens[i * 16 + t], data.position_of(1000 + i) + t);
            EXPECT_EQ(targets[i * 16 + t], data.position_of(1000 + i) + t + 1);
        }
    }
}

// Windows of 4 + 1 that start 4 apart: 13 bytes hold (13 - 1) / 4 = 3, and so do 14, 15 and 16.
TEST_F(TextData, WindowsMeetInOneTokenAndCoverTheText) {
    EXPECT_EQ(windows_in(4, 4), 0);
    EXPECT_EQ(windows_in(5, 4), 1);
    EXPECT_EQ(windows_in(13, 4), 3);
    EXPECT_EQ(windows_in(16, 4), 3);
    EXPECT_EQ(windows_in(17, 4), 4);
    const TextDataset data = dataset_of(write("text", "0123456789abcdef"), 9, 4);
    ASSERT_EQ(data.samples(), 3);
    std::multiset<std::string> seen;
    for (int i = 0; i < 6; ++i) seen.insert(window_of(data, i));  // two epochs
    EXPECT_EQ(seen, (std::multiset<std::string>{"01234", "01234", "45678", "45678", "89abc", "89abc"}));
}

TEST_F(TextData, SamplesDoNotDependOnTheOrderOfAccess) {
    std::string text;
    for (int i = 0; i < 500; ++i) text += std::to_string(i);
    const std::string path = write("text", text);
    const TextDataset data = dataset_of(path, 9, 8), again = dataset_of(path, 9, 8),
                      other = dataset_of(path, 10, 8);
    testing::Tokens tokens(6 * 8), targets(6 * 8), one(8), one_target(8);
    data.fill(50, 6, tokens.data(), targets.data());
    again.fill(53, 1, static_cast<void*>(one.data()), static_cast<void*>(one_target.data()));
    EXPECT_TRUE(std::equal(one.begin(), one.end(), tokens.begin() + 3 * 8));
    EXPECT_TRUE(std::equal(one_target.begin(), one_target.end(), targets.begin() + 3 * 8));
    EXPECT_NE(data.position_of(50), other.position_of(50)) << "another seed, another order";
}

TEST_F(TextData, ATextOfExactlyOneWindowWorks) {
    const TextDataset data = dataset_of(write("text", "abcde"), 9, 4);
    EXPECT_EQ(data.samples(), 1);
    EXPECT_EQ(window_of(data, 12345), "abcde");
}

TEST_F(TextData, AFoldersFilesAreJoinedInTheOrderOfTheirNames) {
    write("b", "second ");
    write("c", "third");
    write("a", "first ");
    write("aa", "");
    write(".hidden", "never");
    fs::create_directory(folder_ / "0-folder");
    fs::create_symlink(folder_ / "a", folder_ / "0-link");
    ASSERT_EQ(mkfifo((folder_ / "0-pipe").c_str(), 0600), 0);
    const TextFiles text(folder_.string());
    EXPECT_EQ(joined(text), "first second third");
    EXPECT_EQ(text.files(), 4);
    EXPECT_EQ(text.bytes(), 18);
}

// Wherever the boundaries of files are, the windows are those of the joined text.
TEST_F(TextData, AWindowMaySpanSeveralFiles) {
    write("a", "0");
    write("b", "");
    write("c", "12");
    write("d", "3");
    write("e", "456789");
    write("f", "");
    const TextSource source = open_text({.path = folder_.string(), .context = 8});
    EXPECT_EQ(window_of(*source.train, 0), "012345678");
    const TextSource small = open_text({.path = folder_.string(), .context = 1});
    std::set<std::string> seen;
    for (int i = 0; i < 9; ++i) seen.insert(window_of(*small.train, i));
    EXPECT_EQ(seen, (std::set<std::string>{"01", "12", "23", "34", "45", "56", "67", "78", "89"}));
}

TEST_F(TextData, ANamedLinkIsFollowed) {
    write("text", "some words");
    fs::create_symlink(folder_ / "text", folder_ / "link");
    EXPECT_EQ(joined(TextFiles((folder_ / "link").string())), "some words");
}

// A running job keeps its text if another file takes the name, and does not see what is appended.
TEST_F(TextData, AReplacedOrDeletedFileKeepsItsContent) {
    const TextFiles text(write("text", "some words"));
    std::ofstream(folder_ / "text", std::ios::app) << " more";
    write("other", "else");
    fs::rename(folder_ / "other", folder_ / "text");
    fs::remove(folder_ / "text");
    EXPECT_EQ(joined(text), "some words");
}

// A mapped file would end the process by SIGBUS here.
TEST_F(TextData, AFileThatIsTruncatedWhileItIsReadIsAnErrorThatSaysSo) {
    const std::string path = write("text", std::string(65'536, 'a'));
    const TextDataset data = dataset_of(path, 9, 16);
    testing::Tokens tokens(16), targets(16);
    data.fill(0, 1, tokens.data(), targets.data());
    fs::resize_file(path, 0);
    try {
        data.fill(0, 1, tokens.data(), targets.data());
        ADD_FAILURE() << "it was read";
    } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr(path + " was truncated while it was read: it had 65536 bytes"));
    }
}

TEST_F(TextData, AFolderMayHoldMoreFilesThanMayUsuallyBeOpen) {
    rlimit usual{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
    constexpr int kFiles = 100;
    if (usual.rlim_max < 2 * kFiles) GTEST_SKIP() << "the hard limit of open files is " << usual.rlim_max;
    rlimit low = usual;
    low.rlim_cur = kFiles / 2;
    std::string joined_text;
    for (int i = 0; i < kFiles; ++i) joined_text += std::to_string(i % 10);
    for (int i = 0; i < kFiles; ++i)
        write(std::to_string(1000 + i), std::string(1, joined_text[static_cast<std::size_t>(i)]));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    EXPECT_EQ(joined(TextFiles(folder_.string())), joined_text);
    setrlimit(RLIMIT_NOFILE, &usual);
}

// 20 bytes, a quarter held out: bytes 0 … 14 are trained on, 15 … 19 held out.
TEST_F(TextData, ValidationIsTheEndOfTheTextInItsOrder) {
    const std::string path = write("text", "abcdefghijklmnopqrst");
    const TextSource source = open_text({.path = path, .context = 2, .validation = 0.25});
    EXPECT_EQ(source.train->samples(), (15 - 1) / 2);
    ASSERT_EQ(source.validation->samples(), (5 - 1) / 2);
    EXPECT_EQ(window_of(*source.validation, 0), "pqr");
    EXPECT_EQ(window_of(*source.validation, 1), "rst");
    testing::Tokens tokens(4), targets(4);
    EXPECT_THROW(source.validation->fill(1, 2, tokens.data(), targets.data()), std::out_of_range);
    for (int i = 0; i < 7; ++i)
        EXPECT_LE(source.train->position_of(i) + 2, 14) << "trained on what is held out";
    EXPECT_EQ(open_text({.path = path, .context = 2}).validation, nullptr);
}

// 20 bytes: 0 … 9 are trained on, 10 … 14 validated on, 15 … 19 tested on.
TEST_F(TextData, TestIsTheVeryEndOfTheText) {
    const std::string path = write("text", "abcdefghijklmnopqrst");
    const TextSource source = open_text({.path = path, .context = 2, .validation = 0.25, .test = 0.25});
    EXPECT_EQ(source.train->samples(), (10 - 1) / 2);
    EXPECT_EQ(window_of(*source.validation, 0), "klm");
    EXPECT_EQ(window_of(*source.test, 0), "pqr");
    EXPECT_EQ(window_of(*source.test, 1), "rst");
    EXPECT_EQ(open_text({.path = path, .context = 2, .test = 0.25}).validation, nullptr);
    EXPECT_EQ(error_of(TextSettings{.path = path, .context = 2, .test = 0.1}),
              "data.test: 0.1 of the 20 bytes of " + path +
                  " holds out 2, and a sample needs model.context + 1 = 3; raise it, name a longer text or "
                  "make model.context smaller");
    EXPECT_EQ(
        error_of(TextSettings{.path = path, .context = 8, .validation = 0.45, .test = 0.45}),
        "data.validation: 0.45 of the 20 bytes of " + path +
            " and data.test = 0.45 leave 2 to train on, and a sample needs model.context + 1 = 9; lower "
            "it, name a longer text or make model.context smaller");
}

TEST_F(TextData, ValidationGivesWholeBatchesOfAllRanks) {
    // 100 bytes, half held out: (50 - 1) / 4 = 12 samples.
    const TextSource source =
        open_text({.path = write("text", std::string(100, 'x')), .context = 4, .validation = 0.5});
    EXPECT_EQ(source.validation->samples(), 12);
    EXPECT_EQ(whole_batches(*source.validation, 2, 6), 1);
    EXPECT_EQ(whole_batches(*source.validation, 1, 5), 2);
    try {
        whole_batches(*source.validation, 4, 8);
        FAIL() << "12 samples are no batch of 32";
    } catch (const DataError& error) {
        EXPECT_STREQ(
            error.what(),
            "data.batch: there are 12 held-out samples, and one batch of all 4 ranks takes 4 × 8 = 32; "
            "lower it, or hold out more (data.validation, data.test)");
    }
}

TEST_F(TextData, SaysWhatIsWrongAndWhatToDo) {
    const std::string missing = (folder_ / "missing").string();
    EXPECT_EQ(error_of(missing),
              "data.path: " + missing + " does not exist; give a text file, or a folder of text files");
    EXPECT_EQ(error_of(""), "data.path: is not set; give a text file, or a folder of text files");
    const std::string empty = write("empty", "");
    EXPECT_EQ(error_of(empty),
              "data.path: " + empty + " is empty; name a text of at least model.context + 1 = 5 bytes");
    const std::string short_text = write("short", "abc");
    EXPECT_EQ(error_of(short_text),
              "data.path: " + short_text +
                  " has 3 bytes, and a sample needs model.context + 1 = 5; name a longer text "
                  "or make model.context smaller");
    fs::create_directory(folder_ / "none");
    EXPECT_THAT(error_of((folder_ / "none").string()), HasSubstr("has no text file directly in it"));
    ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
    EXPECT_THAT(error_of((folder_ / "pipe").string()), HasSubstr("is neither a file nor a folder"));
    EXPECT_THAT(error_of(short_text + "/below"), HasSubstr("Not a directory"));
}

TEST_F(TextData, SaysWhichPartIsTooShort) {
    const std::string path = write("text", "0123456789");
    EXPECT_EQ(
        error_of(TextSettings{.path = path, .context = 4, .validation = 0.2}),
        "data.validation: 0.2 of the 10 bytes of " + path +
            " holds out 2, and a sample needs model.context + 1 = 5; raise it, name a longer text or make "
            "model.context smaller");
    EXPECT_EQ(
        error_of(TextSettings{.path = path, .context = 5, .validation = 0.6}),
        "data.validation: 0.6 of the 10 bytes of " + path +
            " leaves 4 to train on, and a sample needs model.context + 1 = 6; lower it, name a longer text "
            "or make model.context smaller");
}

TEST_F(TextData, AnUnreadableFileIsNamedWithTheReason) {
    const std::string path = write("secret", "some words");
    fs::permissions(path, fs::perms::none);
    if (geteuid() == 0) GTEST_SKIP() << "the superuser reads everything";
    EXPECT_THAT(error_of(path), HasSubstr("cannot read " + path + ": Permission denied"));
    EXPECT_THAT(error_of(folder_.string()), HasSubstr("cannot read " + path)) << "in a folder too";
}

// The data are opened from a job, so an error begins with the place of the key that is at fault.
TEST_F(TextData, AJobsDataIsOpenedAndErrorsNameTheirPlace) {
    job::Job job;
    job.data.type = job::DataType::text;
    job.data.path = write("text", "abcdefghijklmnopqrst");
    job.data.validation = 0.25;
    job.model.context = 2;
    const DataSource source = open_data(job);
    EXPECT_EQ(source.tokenizer->name(), "bytes");
    EXPECT_EQ(source.train->samples(), 7);
    EXPECT_EQ(source.validation->samples(), 2);

    job.data.validation = 0.05;
    job.origins["data.validation"] = "job.toml:7";
    try {
        open_data(job);
        FAIL() << "1 byte holds no window of 3";
    } catch (const DataError& error) {
        EXPECT_THAT(error.what(),
                    ::testing::StartsWith("job.toml:7: data.validation: 0.05 of the 20 bytes of "));
    }
    job.data.type = job::DataType::synthetic;
    EXPECT_THROW(open_data(job), DataError) << "nothing can be held out of made-up samples";
    job.data.validation = 0;
    EXPECT_EQ(open_data(job).train->samples(), 0);
    EXPECT_EQ(open_data(job).tokenizer, nullptr);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::data
