// What the name of a counter says in words: "gpu3_power_watts" is "GPU 3 power", in W. Names that end in no
// unit of ours (other tools') stay as they are. Pure text; any thread.
#pragma once

#include <string>
#include <string_view>

namespace shardscope::traces::lanes {

struct CounterWords {
    std::string label;      // "GPU 3 power"
    std::string_view unit;  // "W", "%", "bytes", "bytes/s"; empty: the name says none
};

// `device`: the GPU's or adapter's number on its host, -1 unknown.
CounterWords counter_words(std::string_view name, int device = -1);

}  // namespace shardscope::traces::lanes
