// A table's model, made again only when its source or the appearance changes. Frame thread only; no Dear
// ImGui.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "viewer/tables/table_model.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::widgets {

class KeptModel {
  public:
    // `source` is what the rows are made from (kept alive, so that its address stays unique); `variant`
    // distinguishes models of the same source. make() returns a std::shared_ptr of a TableModel.
    template <class Make>
    std::shared_ptr<const tables::TableModel> of(const std::shared_ptr<const void>& source,
                                                 const std::string& variant, const Make& make) {
        if (model_ == nullptr || source != source_ || variant != variant_ ||
            theme::appearance() != appearance_) {
            model_ = make();
            source_ = source;
            variant_ = variant;
            appearance_ = theme::appearance();
        }
        return model_;
    }

    // Drops the model and its source.
    void forget() { *this = {}; }

  private:
    std::shared_ptr<const tables::TableModel> model_;
    std::shared_ptr<const void> source_;
    std::string variant_;
    theme::Appearance appearance_ = theme::Appearance::dark;
};

}  // namespace shardscope::viewer::widgets
