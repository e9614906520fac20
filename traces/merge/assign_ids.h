// Decides what the ids of every part become in the merged file, before a row is copied.
//
//   ranks        keep their numbers. Two parts with the same rank are refused if it is the same thread, or if
//                the two processes take part in the same collectives; otherwise the later part's rank gets
//                the next free number, with a note.
//   devices      of a rank get the rank's number; others keep theirs if it is free.
//   processes    keep their pid; machines get numbers of their own (the virtual machine's byte and the
//                hardware's), so that equal pids of two hosts differ. If threads with equal ids on one host
//                work for different ranks (containers), the later part becomes another machine, too.
//   correlation  ids are kept if the parts' ids do not overlap, otherwise they are moved above those of
//                earlier parts; range ids are treated alike.
//   domains      are matched by name: 0 is the default one, 1 NCCL, the others in order of appearance.
//   modules      and units keep their ids if the parts' rows agree, otherwise they are moved above those of
//                earlier parts, together with what refers to them.
//   groups       are kept: NCCL's hash and the trainer's number are equal on all ranks of a job. In a part
//                with renumbered ranks (another job) they are moved if an earlier part has the same number.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "traces/merge/row_ids.h"

namespace shardscope::traces::merge {

struct Part;

struct Assignment {
    std::vector<std::unique_ptr<RowIds>> ids;  // one for each part
    std::set<std::int64_t> devices;            // of the merged file so far; grows while rows are copied
    std::vector<std::string> notes;            // sentences for the user
};

// Texts get their ids from `strings`. Throws StoreError if parts contradict each other.
std::unique_ptr<Assignment> assign_ids(std::vector<std::unique_ptr<Part>>& parts,
                                       store::StringTable& strings);

}  // namespace shardscope::traces::merge
