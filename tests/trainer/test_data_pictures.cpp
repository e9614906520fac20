// PNG, JPEG and IDX files: their pixels, folders of classes, and files that are cut off or damaged.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"
#include "tests/trainer/picture_data.h"
#include "trainer/data/dataset.h"
#include "trainer/data/image_files.h"
#include "trainer/data/picture.h"
#include "trainer/data/picture_cache.h"
#include "trainer/data/picture_folder.h"
#include "trainer/data/source.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::data {
namespace TEST_FILE {

using ::testing::HasSubstr;
using testing::idx_file;
using testing::jpeg_file;
using testing::png_file;
using testing::PngKind;
using testing::smooth_pixels;

constexpr int kHeight = 13, kWidth = 21;

Picture decoded(const std::string& file, std::vector<unsigned char>& room, std::int64_t most = kMostPixels) {
    return decode({reinterpret_cast<const unsigned char*>(file.data()), file.size()}, room, most);
}

std::string error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "no error";
}

// The largest difference of a picture's values from those expected.
int largest_difference(const Picture& picture,
                       const std::function<int(int row, int column, int channel)>& expected) {
    int largest = 0;
    for (int y = 0; y < picture.height; ++y) {
        for (int x = 0; x < picture.width; ++x) {
            for (int c = 0; c < 3; ++c) {
                const int value = picture.row(y)[static_cast<std::size_t>(x) * picture.pixel +
                                                 static_cast<std::size_t>(c) * picture.channel];
                largest = std::max(largest, std::abs(value - expected(y, x, c)));
            }
        }
    }
    return largest;
}
int smooth(int y, int x, int c) {
    return 40 + 2 * y + x + 30 * c;
}

TEST(Pictures, AreReadAsRedGreenAndBlueWhateverTheyStore) {
    const std::vector<unsigned char> colors = smooth_pixels(kHeight, kWidth, 3);
    const std::vector<unsigned char> grey = smooth_pixels(kHeight, kWidth, 1);
    std::vector<unsigned char> transparent = smooth_pixels(kHeight, kWidth, 4);
    // As Adobe's files have it, 255 minus the ink: a color is what is left of the ink by the black.
    std::vector<unsigned char> ink;
    for (std::size_t i = 0; i < colors.size(); i += 3) {
        const int white = 140 + static_cast<int>(i / 3 % kWidth) * 5;  // above each color
        for (std::size_t c = i; c < i + 3; ++c)
            ink.push_back(static_cast<unsigned char>((colors[c] * 255 + white / 2) / white));
        ink.push_back(static_cast<unsigned char>(white));
    }
    std::vector<unsigned char> deep;  // 16 bits, the lower ones not 0
    for (const unsigned char color : colors) deep.insert(deep.end(), {color, 200});
    std::vector<png_color> palette;
    for (int i = 0; i < 256; ++i) {
        const auto color = static_cast<png_byte>(i);
        palette.push_back({color, static_cast<png_byte>(color + 30), static_cast<png_byte>(color + 60)});
    }
    const PngKind with_gamma{.gamma = 100'000}, with_16_bits{.depth = 16}, interlaced{.interlaced = true},
        with_palette{.color = PNG_COLOR_TYPE_PALETTE, .palette = palette};
    struct Case {
        const char* name;
        std::string file;
        bool is_grey;
        int tolerance;
    };
    const std::vector<Case> cases = {
        {"png", png_file(kHeight, kWidth, PNG_FORMAT_RGB, colors), false, 0},
        {"png with transparency", png_file(kHeight, kWidth, PNG_FORMAT_RGBA, transparent), false, 0},
        {"png with gamma, which PIL ignores", png_file(kHeight, kWidth, with_gamma, colors), false, 0},
        {"png of 16 bits", png_file(kHeight, kWidth, with_16_bits, deep), false, 0},
        {"png with a palette", png_file(kHeight, kWidth, with_palette, grey), false, 0},
        {"interlaced png", png_file(kHeight, kWidth, interlaced, colors), false, 0},
        {"grey png", png_file(kHeight, kWidth, PNG_FORMAT_GRAY, grey), true, 0},
        {"jpeg", jpeg_file(kHeight, kWidth, JCS_RGB, 3, colors), false, 6},
        {"progressive jpeg", jpeg_file(kHeight, kWidth, JCS_RGB, 3, colors, true), false, 6},
        {"grey jpeg", jpeg_file(kHeight, kWidth, JCS_GRAYSCALE, 1, grey), true, 4},
        {"cmyk jpeg", jpeg_file(kHeight, kWidth, JCS_CMYK, 4, ink), false, 6}};
    for (const Case& one : cases) {
        std::vector<unsigned char> room;
        const Picture picture = decoded(one.file, room);
        EXPECT_EQ(picture.height, kHeight) << one.name;
        EXPECT_EQ(picture.width, kWidth) << one.name;
        const auto expected = [&](int y, int x, int c) { return smooth(y, x, one.is_grey ? 0 : c); };
        EXPECT_LE(largest_difference(picture, expected), one.tolerance) << one.name;
    }
}

// A scan of ones is no Huffman code; libjpeg goes on with zeros and a warning.
TEST(Pictures, OfJpegWithBadCodesAreRefused) {
    std::string file = jpeg_file(kHeight, kWidth, JCS_RGB, 3, smooth_pixels(kHeight, kWidth, 3));
    for (std::size_t at = file.size() - 40; at < file.size() - 2; at += 2) file.replace(at, 2, "\xFF\0", 2);
    std::vector<unsigned char> room;
    EXPECT_THAT(error_of([&] { decoded(file, room); }),
                HasSubstr("is a JPEG file that is cut off or damaged (Corrupt JPEG data: bad Huffman code"));
}

TEST(Pictures, OfJpegKindsThatAreNotReadSaySo) {
    std::vector<unsigned char> room;
    EXPECT_THAT(error_of([&] {
                    decoded(jpeg_file(kHeight, kWidth, JCS_UNKNOWN, 2, smooth_pixels(kHeight, kWidth, 2)),
                            room);
                }),
                HasSubstr("is a JPEG file of a kind that is not read ("));
    std::string deep = jpeg_file(kHeight, kWidth, JCS_RGB, 3, smooth_pixels(kHeight, kWidth, 3));
    const std::size_t frame = deep.find("\xFF\xC0");
    deep[frame + 1] = '\xC1';  // extended sequential
    deep[frame + 4] = 12;      // bits
    EXPECT_THAT(error_of([&] { decoded(deep, room); }),
                HasSubstr("is a JPEG file of a kind that is not read ("));
}

TEST(Pictures, ThatAreCutOffOrDamagedAreRefusedOrRead) {
    const std::vector<unsigned char> colors = smooth_pixels(kHeight, kWidth, 3);
    for (const std::string& file :
         {png_file(kHeight, kWidth, PNG_FORMAT_RGB, colors), jpeg_file(kHeight, kWidth, JCS_RGB, 3, colors),
          jpeg_file(kHeight, kWidth, JCS_RGB, 3, colors, true)}) {
        std::vector<unsigned char> room;
        for (std::size_t bytes = 4; bytes + 16 < file.size(); ++bytes) {
            EXPECT_THAT(error_of([&] { decoded(file.substr(0, bytes), room); }),
                        HasSubstr("file that is cut off or damaged"))
                << bytes << " of " << file.size();
        }
        for (std::size_t at = 0; at < file.size(); ++at) {
            std::string changed = file;
            changed[at] = static_cast<char>(changed[at] ^ 0x55);
            error_of([&] { decoded(changed, room, 1 << 16); });  // a sanitizer finds what it reads outside
        }
        EXPECT_THAT(error_of([&] { decoded(file, room, kHeight * kWidth - 1); }),
                    HasSubstr("has 21 × 13 pixels, and 272 are the most"));
    }
    std::vector<unsigned char> room;
    EXPECT_THAT(
        error_of([&] { decoded(png_file(1, 65536, PNG_FORMAT_GRAY, smooth_pixels(1, 65536, 1)), room); }),
        HasSubstr("has 65536 × 1 pixels, and 65535 are the most of a side"));
    EXPECT_EQ(error_of([&] { decoded("", room); }), "is empty");
    EXPECT_EQ(error_of([&] { decoded("GIF89a", room); }), "is neither a PNG nor a JPEG file");
}

class ImageFolders : public ::testing::Test {
  protected:
    std::string write(const std::string& name, const std::string& bytes) {
        const std::filesystem::path path = folder_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << bytes;
        return path;
    }
    static job::Job job_of(const std::string& path, const std::string& keys = "") {
        return job::parse_job(
            "[model]\nname = 'resnet18'\n[data]\ntype = 'images'\nimage = 8\nclasses = 3\n"
            "path = '" +
                path + "'\n" + keys,
            "job.toml");
    }
    static std::string open_error(const std::string& path, const std::string& keys = "") {
        return error_of([&] { open_data(job_of(path, keys)); });
    }
    traces::TemporaryFolder folder_;
    const std::string png_ = png_file(kHeight, kWidth, PNG_FORMAT_RGB, smooth_pixels(kHeight, kWidth, 3));
    const std::string jpeg_ = jpeg_file(kWidth, kHeight, JCS_RGB, 3, smooth_pixels(kWidth, kHeight, 3));
};

TEST_F(ImageFolders, HaveAClassForEachFolder) {
    write("train/cat/1.PNG", png_);
    write("train/cat/inside/2.jpeg", jpeg_);
    write("train/cat/notes.txt", "no picture");
    write("train/dog/3.jpg", png_);  // its name is wrong, as one of ImageNet's is
    write("train/.hidden/4.png", png_);
    write("elsewhere/6.png", png_);
    std::filesystem::create_directory_symlink(folder_ / "elsewhere", folder_ / "train/dog/link");
    const DataSource source = open_data(job_of(folder_ / "train", "crop = 'resized'\nflip = true"));
    ASSERT_EQ(source.train->samples(), 4);
    std::vector<float> images(4 * 8 * 8 * 3);
    std::vector<std::int32_t> labels(4);
    source.train->fill(0, 4, images.data(), labels.data());
    EXPECT_EQ(std::multiset<std::int32_t>(labels.begin(), labels.end()),
              (std::multiset<std::int32_t>{0, 0, 1, 1}));
    for (const float value : images) EXPECT_LT(std::abs(value), 1);

    write("val/dog/5.png", png_);
    EXPECT_THAT(open_error(folder_ / "train", "validation_path = '" + folder_ / "val'"),
                HasSubstr("data.validation_path: " + folder_ / "val has other classes than "));
    write("val/cat/6.png", png_);
    const DataSource both = open_data(job_of(folder_ / "train", "validation_path = '" + folder_ / "val'"));
    both.validation->fill(1, 1, images.data(), labels.data());
    EXPECT_EQ(labels[0], 1);
}

// What is in the cache is there after the files are gone, whoever reads it first.
TEST_F(ImageFolders, KeepDecodedPictures) {
    for (int i = 0; i < 6; ++i) {
        const std::vector<unsigned char> pixels(kHeight * kWidth * 3,
                                                static_cast<unsigned char>(10 + 40 * i));
        write(fmt::format("train/cat/{}.png", i), png_file(kHeight, kWidth, PNG_FORMAT_RGB, pixels));
    }
    write("train/dog/1.jpg", jpeg_);
    const DataSource source = open_data(job_of(folder_ / "train", "cache = 1"));
    const auto read = [](const DataSource& from) {
        std::vector<float> images(7 * 8 * 8 * 3);
        std::vector<std::int32_t> labels(7);
        from.train->fill(0, 7, images.data(), labels.data());
        return images;
    };
    const std::vector<float> plain = read(open_data(job_of(folder_ / "train")));
    std::vector<std::vector<float>> found(4);
    std::vector<std::thread> readers;
    for (std::vector<float>& images : found) readers.emplace_back([&] { images = read(source); });
    for (std::thread& reader : readers) reader.join();
    std::filesystem::remove_all(folder_ / "train");
    found.push_back(read(source));
    for (const std::vector<float>& images : found) EXPECT_EQ(images, plain);
}

TEST_F(ImageFolders, KeepNoMorePicturesThanTheBudgetHolds) {
    const std::int64_t size = kHeight * kWidth * 3;
    write("train/cat/1.png", png_);
    write("train/cat/2.png", png_);
    const auto files = std::make_shared<PictureFolder>("data.path", folder_ / "train", 3);
    const auto budget = std::make_shared<std::atomic<std::int64_t>>(2 * size - 1);
    const PictureCache cache(files, budget);
    std::vector<unsigned char> room;
    EXPECT_NE(cache.open(1, room).bytes, room.data());
    EXPECT_EQ(cache.open(0, room).bytes, room.data());
    EXPECT_EQ(*budget, size - 1);
    std::filesystem::remove_all(folder_ / "train");
    EXPECT_EQ(largest_difference(cache.open(1, room), smooth), 0);
    EXPECT_THROW(cache.open(0, room), DataError);
}

TEST_F(ImageFolders, OnlyFilesThatAreDecodedHaveACache) {
    write("train-images-idx3-ubyte", idx_file({2, 8, 8}, std::vector<unsigned char>(128, 51)));
    write("train-labels-idx1-ubyte", idx_file({2}, {0, 1}));
    EXPECT_THAT(open_error(folder_.path(), "cache = 8"),
                HasSubstr("job.toml:8: data.cache: the images of " + folder_.path() + " are not decoded"));
    // That some are validated on is no reason to refuse the key.
    write("train/cat/1.png", png_);
    write("t10k-images-idx3-ubyte", idx_file({2, 8, 8}, std::vector<unsigned char>(128, 51)));
    write("t10k-labels-idx1-ubyte", idx_file({2}, {0, 1}));
    EXPECT_THAT(open_error(folder_ / "train", "cache = 8\nvalidation_path = '" + folder_.path() + "'"),
                HasSubstr("job.toml:9: data.validation_path: " + folder_.path() + " has other classes than"));
}

TEST_F(ImageFolders, SayWhatIsWrong) {
    const std::string cut = write("train/cat/1.png", png_.substr(0, png_.size() - 20));
    const DataSource source = open_data(job_of(folder_ / "train"));
    std::vector<float> images(8 * 8 * 3);
    std::int32_t label = 0;
    EXPECT_THAT(error_of([&] { source.train->fill(0, 1, images.data(), &label); }),
                HasSubstr("data.path: " + cut + " is a PNG file that is cut off or damaged ("));
    std::filesystem::create_directory_symlink(folder_ / "train", folder_ / "train/cat/loop");
    EXPECT_THAT(open_error(folder_ / "train"),
                HasSubstr("data.path: " + folder_ / "train/cat/loop" + " leads to a folder that it is in"));
    std::filesystem::remove(folder_ / "train/cat/loop");
    std::filesystem::create_directories(folder_ / "train/dog");
    EXPECT_THAT(
        open_error(folder_ / "train"),
        HasSubstr("data.path: the folder " + folder_ / "train/dog has no *.png, *.jpg or *.jpeg file"));
    write("train/dog/1.png", png_);
    write("train/eel/1.png", png_);
    write("train/fox/1.png", png_);
    EXPECT_THAT(open_error(folder_ / "train"), HasSubstr("job.toml:6: data.classes: the folder " +
                                                         folder_ / "train has more than 3 folders"));
}

TEST_F(ImageFolders, OfIdxFilesHaveGreyImages) {
    write("train-images-idx3-ubyte", idx_file({4, 8, 8}, std::vector<unsigned char>(256, 51)));
    write("train-labels-idx1-ubyte", idx_file({4}, {0, 1, 2, 2}));
    const DataSource source = open_data(job_of(folder_.path()));
    ASSERT_EQ(source.train->samples(), 4);
    std::vector<float> images(4 * 8 * 8 * 3);
    std::vector<std::int32_t> labels(4);
    source.train->fill(0, 4, images.data(), labels.data());
    for (const float value : images) EXPECT_NEAR(value, -0.6, 1e-6);
    EXPECT_EQ(std::multiset<std::int32_t>(labels.begin(), labels.end()),
              (std::multiset<std::int32_t>{0, 1, 2, 2}));

    const std::string key = "validation_path = '" + folder_.path() + "'";
    EXPECT_THAT(open_error(folder_.path(), key),
                HasSubstr("job.toml:8: data.validation_path: the folder " + folder_.path() +
                          " has no images to validate or test on: neither a folder for each class"));
    write("t10k-images-idx3-ubyte", idx_file({2, 8, 8}, std::vector<unsigned char>(128, 51)));
    write("t10k-labels-idx1-ubyte", idx_file({2}, {1, 1}));
    EXPECT_EQ(open_data(job_of(folder_.path(), key)).validation->samples(), 2);
}

TEST_F(ImageFolders, ThatHaveNothingToTrainOnSaySo) {
    for (const char* name : {"t10k-images-idx3-ubyte", "train-images-idx3-ubyte.gz"}) {
        write(name, "bytes");
        EXPECT_THAT(open_error(folder_.path()),
                    HasSubstr("data.path: the folder " + folder_.path() + " has no images to train on"));
    }
}

TEST_F(ImageFolders, OfIdxFilesSayWhatIsWrong) {
    const std::vector<unsigned char> pixels(256, 51);
    const std::string path = write("a-images-idx3-ubyte", idx_file({4, 8, 8}, pixels));
    EXPECT_THAT(open_error(path), HasSubstr("cannot read " + folder_ / "a-labels-idx1-ubyte: No such file"));
    const std::string labels = write("a-labels-idx1-ubyte", idx_file({3}, {0, 1, 2}));
    EXPECT_THAT(open_error(path), HasSubstr("has 4 images and " + labels + " 3 labels"));
    write("a-labels-idx1-ubyte", idx_file({4}, {0, 1, 2, 3}));
    EXPECT_THAT(open_error(path), HasSubstr("data.classes: " + labels + " has the label 3 at image 3"));
    write("a-labels-idx1-ubyte", idx_file({4}, {0, 1, 2}));
    EXPECT_THAT(open_error(path), HasSubstr(labels + " has 11 bytes, and its header promises 4 images, 12"));
    const std::string cube = idx_file({4, 8, 8}, pixels);
    for (std::size_t bytes = 0; bytes < cube.size(); bytes += bytes < 20 ? 1 : 50) {
        write("a-images-idx3-ubyte", cube.substr(0, bytes));
        EXPECT_THAT(open_error(path),
                    HasSubstr("data.path: " + path + (bytes < 16 ? " does not begin" : " has ")));
    }
    write("a-images-idx3-ubyte", idx_file({4, 0, 8}, {}));
    EXPECT_THAT(open_error(path), HasSubstr("has images with a side of 0 pixels"));
    write("a-images-idx3-ubyte", idx_file({0xFFFFFFFF, 32768, 32768}, pixels));
    EXPECT_THAT(open_error(path), HasSubstr("its header promises 4294967295 images"));
    EXPECT_THAT(open_error(write("idx.gz", "\x1f\x8b......")), HasSubstr("unpack it if it is compressed"));
    EXPECT_THAT(open_error(write("mnist.idx", cube)), HasSubstr("has no \"images\" in its name"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::data
