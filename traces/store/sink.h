// The only interface between a source of events (the recorder, an importer) and their destination (the
// database writer, columns in memory). Not thread safe: one thread feeds a sink.
#pragma once

#include <string_view>

#include "traces/schema/rows.h"

namespace shardscope::traces::store {

// One virtual add() for each kind of row, which does nothing unless overridden.
template <typename Rows>
class Adds;
template <>
class Adds<std::variant<>> {
  public:
    virtual ~Adds() = default;
    void add();  // for the using below
};
template <typename First, typename... Rest>
class Adds<std::variant<First, Rest...>> : public Adds<std::variant<Rest...>> {
  public:
    using Adds<std::variant<Rest...>>::add;
    virtual void add(const First&) {}
};

class EventSink : public Adds<schema::AnyRow> {
  public:
    // The id of a string in this sink; equal strings give equal ids.
    virtual schema::StringId intern(std::string_view text) = 0;
    // The string of such an id, until the next call; empty if the sink does not keep them.
    virtual std::string_view text(schema::StringId) const { return {}; }
    // Makes everything added so far durable (a database commits).
    virtual void commit() = 0;
};

// A sink that treats rows alike: `class X final : public EachRow<X>` and a `template <typename Row> void
// take(const Row&)`, with overloads where a kind differs.
template <typename Self, typename Base, typename Rows>
class EachAdd;
template <typename Self, typename Base>
class EachAdd<Self, Base, std::variant<>> : public Base {
  public:
    using Base::add;
};
template <typename Self, typename Base, typename First, typename... Rest>
class EachAdd<Self, Base, std::variant<First, Rest...>> : public EachAdd<Self, Base, std::variant<Rest...>> {
  public:
    using EachAdd<Self, Base, std::variant<Rest...>>::add;
    void add(const First& row) final { static_cast<Self*>(this)->take(row); }
};
template <typename Self>
using EachRow = EachAdd<Self, EventSink, schema::AnyRow>;

}  // namespace shardscope::traces::store
