// A sink that hands its rows to another one on a thread of its own, so that reading and writing overlap:
// adding a row only fills a batch; a bounded queue of batches keeps the memory small. An exception of the
// other sink is rethrown by the next call here, or by finish().
//
//   OverlappedSink sink(writer);
//   read_file(input, format, sink, request);
//   sink.finish();  // all rows are in the writer now
#pragma once

#include <memory>
#include <string_view>

#include "traces/store/sink.h"

namespace shardscope::traces::importer {

class OverlappedSink final : public store::EachRow<OverlappedSink> {
  public:
    explicit OverlappedSink(store::EventSink& to);
    ~OverlappedSink() override;  // without finish(): waiting rows are dropped
    OverlappedSink(const OverlappedSink&) = delete;
    OverlappedSink& operator=(const OverlappedSink&) = delete;

    void finish();

    schema::StringId intern(std::string_view text) override;
    std::string_view text(schema::StringId id) const override;
    void take(const schema::AnyRow& row);  // called by every add()
    void commit() override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::traces::importer
