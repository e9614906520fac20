// A column of a trace: plain values in a row, like a vector. They are on the heap, or they are those of a
// file that is mapped into memory (column_file.h) and then cost memory only where they are looked at.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace shardscope::traces::store {

template <typename T>
class Column {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    using value_type = T;
    using iterator = T*;
    using const_iterator = const T*;

    Column() = default;
    Column(std::vector<T> values) : owned_(std::move(values)) { see_owned(); }
    Column(std::initializer_list<T> values) : owned_(values) { see_owned(); }
    // The values of a file, which `file` keeps mapped. The mapping is private: values that are written stay
    // in memory.
    Column(std::span<T> values, std::shared_ptr<const void> file)
        : data_(values.data()), size_(values.size()), file_(std::move(file)) {}
    Column(const Column& other) : owned_(other.begin(), other.end()) { see_owned(); }
    Column(Column&& other) noexcept { swap(other); }
    Column& operator=(Column other) noexcept {
        swap(other);
        return *this;
    }
    ~Column() = default;

    void swap(Column& other) noexcept {
        owned_.swap(other.owned_);  // which moves no value
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        file_.swap(other.file_);
    }

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* data() { return data_; }
    const T* data() const { return data_; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    T& operator[](std::size_t row) { return data_[row]; }
    const T& operator[](std::size_t row) const { return data_[row]; }
    const T& at(std::size_t row) const {
        if (row >= size_) throw std::out_of_range("row of a column");
        return data_[row];
    }
    T& back() { return data_[size_ - 1]; }
    const T& front() const { return data_[0]; }
    const T& back() const { return data_[size_ - 1]; }

    void push_back(T value) {
        if (file_ != nullptr) own();
        owned_.push_back(value);
        see_owned();
    }
    void reserve(std::size_t rows) {
        own().reserve(rows);
        see_owned();
    }
    void resize(std::size_t rows, T value = {}) {
        own().resize(rows, value);
        see_owned();
    }
    void assign(std::size_t rows, T value) {
        own().assign(rows, value);
        see_owned();
    }
    void shrink_to_fit() {
        owned_.shrink_to_fit();
        if (file_ == nullptr) see_owned();
    }
    void clear() { *this = Column(); }

    std::size_t memory() const { return owned_.capacity() * sizeof(T); }  // bytes on the heap

    friend bool operator==(const Column& a, const Column& b) { return std::ranges::equal(a, b); }

  private:
    std::vector<T>& own() {
        if (file_ != nullptr) *this = Column(std::vector<T>(begin(), end()));
        return owned_;
    }
    void see_owned() {
        data_ = owned_.data();
        size_ = owned_.size();
    }

    std::vector<T> owned_;  // empty if the values are a file's
    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::shared_ptr<const void> file_;
};

}  // namespace shardscope::traces::store
