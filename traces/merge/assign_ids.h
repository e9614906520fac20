// Decides what the ids of every part become in the merged file, before a row is copied.
//
//   ranks        kept. Where two parts have one rank: the same thread, and two processes that took part in
//   the
//                same collectives, are refused; else the later part's rank gets the next free number, with a
//                note.
//   devices      of a rank: the rank's number; others keep theirs where it is free.
//   processes    of one machine keep their pid; machines get numbers of their own (the virtual machine's byte
//                and the hardware's), so that equal pids of two hosts differ. Where threads of equal ids on
//                one host work for different ranks (containers), the later part is another machine, too.
//   correlation  kept where the parts' ids lie apart, else moved behind the earlier parts'; so are range ids.
//   domains      by name: 0 the default one, 1 NCCL, then in the order in which they come.
//   modules      and units keep their ids where the parts' rows agree, else they are moved behind the earlier
//                parts', together with what refers to them.
//   groups       kept: NCCL's hash and the trainer's number are equal on all ranks of a job. Of a part whose
//                ranks were renumbered (another job): moved where an earlier part has the same number.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "traces/merge/row_ids.h"

namespace shardscope::traces {

struct Part;

struct Assignment {
    std::vector<std::unique_ptr<RowIds>> ids;  // of each part
    std::set<std::int64_t> devices;            // of the file so far; grows while rows are copied
    std::vector<std::string> notes;            // sentences for people
};

// Texts get ids of `strings`. Throws StoreError where parts contradict one another.
std::unique_ptr<Assignment> assign_ids(std::vector<std::unique_ptr<Part>>& parts, StringTable& strings);

}  // namespace shardscope::traces
