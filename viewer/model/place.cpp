// See place.h.
#include "viewer/model/place.h"

#include "viewer/model/time_view.h"

namespace shardscope::viewer::model {

bool is_valid(const TimeRange& range) {
    return range.to > range.from && is_viewable(range.from) && is_viewable(range.to);
}

}  // namespace shardscope::viewer::model
