// SPDX-License-Identifier: Apache-2.0
// Declares the handler of every lowered row, straight from the instruction table: a row's LOWER(name) is
// lower::name, defined in the file named after the row's chapter.
#pragma once

#include "translator/emit/warp_emitter.h"

namespace ptarmigan::translator::lower {

#define LOWER(handler) void handler(WarpEmitter&, const ptx::Instruction&);
#define UNSUPPORTED(reason)
#define PTX_FORM(id, syntax, where, since, sm, effects, shape, lowering, section) lowering
#include "frontend/isa/instruction_table.def"
#undef PTX_FORM
#undef UNSUPPORTED
#undef LOWER

} // namespace ptarmigan::translator::lower
