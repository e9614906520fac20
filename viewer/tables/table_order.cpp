// See table_order.h. A row's key is made once: its number, or the rank of its text among the column's
// distinct texts (far fewer than rows in traces), so that sorting compares only numbers.
#include "viewer/tables/table_order.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "traces/schema/text.h"

namespace shardscope::viewer::tables {
namespace {

constexpr std::size_t kLook = 4096;                     // rows or comparisons between checks of `cancel`
constexpr float kFilterShare = 0.6F, kKeyShare = 0.2F;  // shares of the progress; sorting has the rest

std::atomic<int> running = 0;  // threads that currently work for tables

struct Cancelled {};

bool digit(char c) {
    return c >= '0' && c <= '9';
}

// Takes the digits at `at`, without leading zeros.
std::string_view take_digits(std::string_view text, std::size_t& at) {
    while (at + 1 < text.size() && text[at] == '0' && digit(text[at + 1])) ++at;
    const std::size_t from = at;
    while (at < text.size() && digit(text[at])) ++at;
    return text.substr(from, at - from);
}

// One computation of an order.
class Work {
  public:
    Work(const TableModel& model, OrderProgress& progress) : model_(model), progress_(progress) {
        order_.resize(model.rows());
        std::iota(order_.begin(), order_.end(), 0U);
    }

    void filter(const std::string& text) {
        const std::size_t columns = model_.columns().size();
        const auto all = static_cast<float>(order_.size());
        std::size_t kept = 0;
        for (std::size_t i = 0; i < order_.size(); ++i) {
            look(i, kFilterShare * static_cast<float>(i) / all);
            for (std::size_t c = 0; c < columns; ++c) {
                if (!traces::schema::contains_but_for_case(model_.text(order_[i], c), text)) continue;
                order_[kept++] = order_[i];
                break;
            }
        }
        order_.resize(kept);
    }

    void sort(std::size_t column, bool descending) {
        std::vector<Keyed> keyed = model_.columns()[column].kind == TableColumn::Kind::number
                                       ? numbers(column)
                                       : places_of_texts(column);
        std::size_t compared = 0;
        std::sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
            look(++compared, kFilterShare + kKeyShare);
            if (a.key == b.key) return a.row < b.row;  // equal keys keep the model's order
            if (a.key == kLast || b.key == kLast) return b.key == kLast;
            return descending ? a.key > b.key : a.key < b.key;
        });
        std::transform(keyed.begin(), keyed.end(), order_.begin(), [](const Keyed& k) { return k.row; });
    }

    std::vector<std::uint32_t> take() {
        progress_.done = 1;
        return std::move(order_);
    }

  private:
    struct Keyed {
        double key;
        std::uint32_t row;
    };
    static constexpr double kLast = std::numeric_limits<double>::infinity();  // no number: always last

    void look(std::size_t i, float done) {
        if (i % kLook != 0) return;
        if (progress_.cancel) throw Cancelled{};
        progress_.done = done;
    }

    std::vector<Keyed> numbers(std::size_t column) {
        std::vector<Keyed> keyed;
        keyed.reserve(order_.size());
        for (const std::uint32_t row : order_) {
            look(keyed.size(), key_progress(keyed.size()));
            const double number = model_.number(row, column);
            keyed.push_back({std::isnan(number) ? kLast : number, row});
        }
        return keyed;
    }

    std::vector<Keyed> places_of_texts(std::size_t column) {
        std::unordered_map<std::string, std::uint32_t> ids;
        std::vector<Keyed> keyed;
        keyed.reserve(order_.size());
        for (const std::uint32_t row : order_) {
            look(keyed.size(), key_progress(keyed.size()));
            const auto id =
                ids.try_emplace(model_.text(row, column), static_cast<std::uint32_t>(ids.size())).first;
            keyed.push_back({static_cast<double>(id->second), row});
        }
        std::vector<const std::pair<const std::string, std::uint32_t>*> texts;
        texts.reserve(ids.size());
        for (const auto& text : ids) texts.push_back(&text);
        std::size_t compared = 0;
        std::sort(texts.begin(), texts.end(), [&](const auto* a, const auto* b) {
            look(++compared, kFilterShare + kKeyShare);
            return natural_less(a->first, b->first);
        });
        std::vector<double> place(ids.size());
        for (std::size_t i = 0; i < texts.size(); ++i) place[texts[i]->second] = static_cast<double>(i);
        for (Keyed& k : keyed) k.key = place[static_cast<std::size_t>(k.key)];
        return keyed;
    }

    float key_progress(std::size_t i) const {
        return kFilterShare + kKeyShare * static_cast<float>(i) /
                                  static_cast<float>(std::max<std::size_t>(1, order_.size()));
    }

    const TableModel& model_;
    OrderProgress& progress_;
    std::vector<std::uint32_t> order_;
};

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (digit(a[i]) && digit(b[j])) {
            const std::string_view x = take_digits(a, i), y = take_digits(b, j);
            if (x.size() != y.size()) return x.size() < y.size();
            if (x != y) return x < y;
            continue;
        }
        const auto x = static_cast<unsigned char>(traces::schema::lower_case(a[i++])),
                   y = static_cast<unsigned char>(traces::schema::lower_case(b[j++]));
        if (x != y) return x < y;
    }
    if (i == a.size() && j == b.size()) return a < b;
    return i == a.size();
}

std::optional<std::vector<std::uint32_t>> table_order(const TableModel& model, const TableSort& sort,
                                                      const std::string& filter, OrderProgress& progress) {
    try {
        Work work(model, progress);
        if (!filter.empty()) work.filter(filter);
        const std::size_t columns = model.columns().size();
        if (sort.column >= 0 && static_cast<std::size_t>(sort.column) < columns)
            work.sort(static_cast<std::size_t>(sort.column), sort.descending);
        return work.take();
    } catch (const Cancelled&) {
        return std::nullopt;
    }
}

std::vector<std::uint32_t> table_order(const TableModel& model, const TableSort& sort,
                                       const std::string& filter) {
    OrderProgress progress;
    return table_order(model, sort, filter, progress).value_or(std::vector<std::uint32_t>());
}

TableOrder::~TableOrder() {
    cancel();
}

TableOrder& TableOrder::operator=(TableOrder&& other) noexcept {
    if (this == &other) return *this;
    cancel();
    shown_ = std::move(other.shown_);
    next_for_ = std::move(other.next_for_);
    order_ = std::move(other.order_);
    progress_ = std::move(other.progress_);
    next_ = std::move(other.next_);
    return *this;
}

void TableOrder::cancel() {
    if (progress_) progress_->cancel = true;
    if (next_.valid()) next_.wait();  // the thread checks `cancel` every few thousand rows
    next_ = {};
    progress_.reset();
}

bool TableOrder::any_busy() {
    return running > 0;
}

const std::vector<std::uint32_t>& TableOrder::of(const std::shared_ptr<const TableModel>& model,
                                                 const TableSort& sort, const std::string& filter) {
    static const std::vector<std::uint32_t> kNone;
    if (next_.valid() && next_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
        if (auto order = next_.get()) {
            order_ = std::make_shared<const std::vector<std::uint32_t>>(std::move(*order));
            shown_ = next_for_;
        }
        progress_.reset();
        next_for_ = {};
    }
    Wanted wanted{model, sort, filter};
    const bool there = shown_ == wanted;
    if (there || (next_.valid() && next_for_ == wanted)) {
        if (there) cancel();                             // the order being computed is no longer wanted
        return shown_.model == model ? *order_ : kNone;  // never rows of another table
    }
    cancel();
    if (model->rows() <= kAtOnce) {
        order_ = std::make_shared<const std::vector<std::uint32_t>>(table_order(*model, sort, filter));
        shown_ = std::move(wanted);
        return *order_;
    }
    next_for_ = std::move(wanted);
    progress_ = std::make_shared<OrderProgress>();
    ++running;
    next_ = std::async(std::launch::async, [model, sort, filter, progress = progress_] {
        struct Ends {
            ~Ends() { --running; }
        } ends;
        return table_order(*model, sort, filter, *progress);
    });
    if (shown_.model != model) {
        order_.reset();
        shown_.model.reset();
    }
    return order_ ? *order_ : kNone;
}

std::map<std::string, SavedTable>& table_memory() {
    static std::map<std::string, SavedTable> kMemory;
    return kMemory;
}

}  // namespace shardscope::viewer::tables
