// A value over time in bounded memory, for a sparkline.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shardscope::traces::watch {

// The whole course of a value: when there are kMost points, neighbours become their mean.
class History {
  public:
    static constexpr std::size_t kMost = 1024;

    void add(double value);  // one that is not finite is left out
    bool is_course() const { return points_.size() + (pending_ > 0 ? 1 : 0) > 1; }
    // At most `width` characters from ▁ to █, the means of as many equal parts; the smallest value is the
    // lowest. Empty without points.
    std::string sparkline(std::size_t width) const;

  private:
    std::vector<double> points_;
    std::size_t each_ = 1;  // values in a point
    double sum_ = 0;        // of those for the next point
    std::size_t pending_ = 0;
};

}  // namespace shardscope::traces::watch
