// Whose fault it is that a rank waits too long: not that of one who only waits for the next.
#pragma once

#include <string>

#include "trainer/comm/collective_group.h"
#include "trainer/comm/inquiry.h"

namespace shardscope::trainer::collectives {

// Follows from `rank`, which stands so itself, who waits for whom, to the first that waits for nobody or has
// not answered. A circle is nobody's fault. `asked` may be null: then the rank itself is all that is known.
CollectiveTrouble end_of_chain(int rank, const Standing& own, double timeout_s, const Inquiry* asked);

}  // namespace shardscope::trainer::collectives
