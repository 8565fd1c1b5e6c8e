// SPDX-License-Identifier: Apache-2.0
// Collectives of the lanes that are here anyhow.
#pragma once

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/function_graph.h"

#include <algorithm>
#include <vector>

namespace ptarmigan::translator {

/// Whether a collective's members are those that are here anyhow, who wait for nobody elsewhere: how the lifter gives
/// all lanes what the first one has (R2UR). Asked of a block's instructions in their order.
class OwnCompany {
public:
    bool operator()(const ptx::Instruction& inst) {
        if (is_query(inst) && inst.operands[0].kind == ptx::Operand::Kind::reg)
            active_.push_back(inst.operands[0].index);
        const ptx::Operand& mask = inst[ptx::Role::membermask];
        return mask.kind == ptx::Operand::Kind::reg && inst.guard == ptx::no_id &&
               std::find(active_.begin(), active_.end(), mask.index) != active_.end();
    }

private:
    std::vector<ValueId> active_; ///< what queries have said in this block
};

} // namespace ptarmigan::translator
