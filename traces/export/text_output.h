// A text file that is written from front to back, plain or packed with gzip, and gets its name only when it
// is complete. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace shardscope::traces::exports {

class TextOutput {
  public:
    // Throws StoreError if the file exists (without `overwrite`), or cannot be created.
    TextOutput(const std::string& path, bool overwrite, bool pack);
    ~TextOutput();  // without finish(): leaves no file
    TextOutput(const TextOutput&) = delete;
    TextOutput& operator=(const TextOutput&) = delete;

    // Records are appended to this; call flush() now and then, after a complete record.
    std::string& buffer() { return buffer_; }
    void flush_if_full() {
        if (buffer_.size() >= kFull) flush();
    }
    void finish();
    std::int64_t bytes() const { return bytes_; }  // flushed so far, before packing

    // Checks whether the file could be written; throws StoreError with the reason. Changes nothing.
    static void check(const std::string& path, bool overwrite);

  private:
    void flush();

    static constexpr std::size_t kFull = 1 << 18;
    struct File;
    std::string path_;
    bool overwrite_;
    std::unique_ptr<File> file_;
    std::string buffer_;
    std::int64_t bytes_ = 0;
};

// The longest name that is written in full, in bytes: every event repeats its name.
inline constexpr std::size_t kLongestName = std::size_t{64} << 10;
// Cuts a longer name there and adds its length.
std::string cut_name(std::string_view name);

// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
void append_json(std::string& to, std::string_view text);
// Nanoseconds as microseconds with three decimals: 1234 -> 1.234.
void append_us(std::string& to, std::int64_t ns);

}  // namespace shardscope::traces::exports
