// SPDX-License-Identifier: Apache-2.0
// Which memory accesses are aligned to their size for certain, which are if the kernel's parameters are, and which must
// be checked at run time. A GPU faults on a misaligned access where x86 does not.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Bytes that one lane accesses at once, the alignment that its address needs (manual 6.4.1); 0 if `inst` accesses no
/// memory.
unsigned access_bytes(const ptx::Instruction& inst);

/// Sets GraphInstruction::check_alignment for every access of the graph. With `parameters_aligned`, what depends on
/// kernel parameters alone is not checked but returned: the launch must see to it. Without, nothing is returned.
std::vector<AlignmentDemand> plan_alignment(FunctionGraph& graph, bool parameters_aligned);

} // namespace ptarmigan::translator
